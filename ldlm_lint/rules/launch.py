"""Family 72, launch: how a script starts the training processes and handles their exit."""

from __future__ import annotations

from ldlm_lint.model import Applicability, Consequence, Reference, Rule

LAUNCHERS: tuple[bytes, ...] = (b"torchrun", b"python", b"accelerate", b"deepspeed", b"srun", b"mpirun", b"mpiexec", b"composer", b"uv run")
LAUNCHERS += (b"llamafactory-cli", b"axolotl", b"fairseq-", b"tune run", b"lightning", b"fabric run", b"trl ", b"xtuner", b"litgpt", b"swift ")

_TORCHRUN = Reference("torchrun (elastic launch)", "https://docs.pytorch.org/docs/stable/elastic/run.html")

TRUNCATED_COMMAND = Rule(
    code="E7224",
    symbol="truncated-command",
    consequence=Consequence.WRONG_RESULT,
    message="this `%(launcher)s` command is cut off at this line (%(cause)s): it runs without %(lost)s; repair the line continuation",
    summary="A launch command over several lines that ends before its last line, so arguments are lost.",
    rationale="A command continues on the next line only if `\\` is the very last character of a line. After `\\` and "
    "a space the shell sees an escaped space, which the program gets as an argument, and then the end of the command. "
    "A line without its `\\`, a comment line or an empty line in between also ends the command. The rest runs as a "
    "separate command, such as `--nnodes=4: command not found`, and the script continues unless `set -e` is on. "
    "`NAME=value \\` before an empty line sets a variable of the shell, which the launch below does not inherit.",
    cost="Training starts with defaults instead of the lost arguments, without its script, or not at all. If every "
    "lost argument has a default, the run is silently not the one that was meant.",
    exceptions="A following line that is a command on purpose. The line is reported only if it starts like an "
    "argument: with a dash, as `key.name=value`, or after a line that ends in `\\`.",
    versions="Every shell.",
    verification="`bash -n` accepts such a script. Put `echo` before the launcher and read the arguments that it "
    "would get.",
    references=(
        Reference(
            "Bash manual: escape character", "https://www.gnu.org/software/bash/manual/bash.html#Escape-Character"
        ),
        Reference("ShellCheck SC2215", "https://github.com/koalaman/shellcheck/wiki/SC2215"),
    ),
    reads=("sh",),
    triggers=LAUNCHERS,
    applicability=Applicability.UNSAFE,
    fix_safety="Unsafe: the launcher gets arguments that it may never have run with. Comments move above the command.",
)

PIPELINE_HIDES_FAILURE = Rule(
    code="W7225",
    symbol="pipeline-hides-failure",
    consequence=Consequence.WRONG_RESULT,
    message="the exit status of this pipeline is that of `%(filter)s`, because `pipefail` is not set: a training that "
    "fails looks like a success; add `set -o pipefail`",
    summary="A training whose output goes through `tee` or another filter in a script without `pipefail`.",
    rationale="The exit status of a pipeline is that of its last command. `tee` succeeds whatever happens before it, "
    "so a training that raises, runs out of memory or is killed ends with status 0: `set -e` does not stop, `&&` "
    "continues, and the scheduler records a completed job.",
    cost="Failures go unnoticed: the next stage runs on an old checkpoint, and a job that should be restarted is not.",
    exceptions="Not reported: `set -o pipefail` before the pipeline, a check of `PIPESTATUS` after it, and a script "
    "that sources another one which may set the option. A filter whose status is the one that is wanted.",
    versions="Bash 3.0 and later, zsh, ksh; dash since 0.5.13. A script for plain `sh` is reported without a fix.",
    verification="Let the training raise at its start and print `$?` after the pipeline.",
    references=(
        Reference("Bash manual: pipelines", "https://www.gnu.org/software/bash/manual/bash.html#Pipelines"),
        Reference("Bash manual: set", "https://www.gnu.org/software/bash/manual/bash.html#The-Set-Builtin"),
    ),
    reads=("sh",),
    triggers=LAUNCHERS,
    applicability=Applicability.UNSAFE,
    fix_safety="Unsafe: the option applies to every pipeline of the script. With `set -e`, a pipeline that was "
    "allowed to fail, such as a `grep` that finds nothing, now ends the script.",
)

DEPRECATED_LAUNCHER = Rule(
    code="W7221",
    symbol="deprecated-launcher",
    consequence=Consequence.DEPRECATED,
    message="`torch.distributed.launch` is deprecated and will be removed: start the script with `torchrun`, which sets "
    "`LOCAL_RANK` in the environment instead of passing `--local-rank`",
    summary="Processes are started with `python -m torch.distributed.launch`.",
    rationale="`torch.distributed.launch` is a wrapper around torchrun that is kept for old scripts. Without "
    "`--use-env` it adds `--local-rank=N` to the arguments of the script. torch 1 wrote `--local_rank`, so a script "
    "whose parser accepts only one spelling fails after an upgrade.",
    cost="No run time. A FutureWarning on every start, and a script that stops working with a later release.",
    exceptions="Images with a torch before 1.10, which has no torchrun. In a Dockerfile or job file only the commands "
    "that containers run are checked (`CMD`, `ENTRYPOINT`, `command`, `args`, `run`), except those whose names "
    "mention tests.",
    versions="A FutureWarning in torch 2.0 to 2.13. The argument is `--local-rank` since torch 2.0.",
    verification="The start prints `The module torch.distributed.launch is deprecated`.",
    references=(
        Reference(
            "Transitioning from torch.distributed.launch to torchrun",
            "https://docs.pytorch.org/docs/stable/elastic/run.html#transitioning-from-torch-distributed-launch-to-torchrun",
        ),
        Reference("Launch utility", "https://docs.pytorch.org/docs/stable/distributed.html#launch-utility"),
    ),
    reads=("sh", "cfg"),
    needs="torchrun",
    triggers=(b"torch.distributed.launch",),
    applicability=Applicability.UNSAFE,
    fix_safety="Unsafe: the script no longer gets a rank argument and must read `LOCAL_RANK` from its environment, "
    "and torchrun must be on the PATH of the same environment. No fix is offered if the script is known to take "
    "`--local_rank` and not to read the variable, because every rank would then train as if it were alone.",
)

RULES = (DEPRECATED_LAUNCHER, TRUNCATED_COMMAND, PIPELINE_HIDES_FAILURE)
