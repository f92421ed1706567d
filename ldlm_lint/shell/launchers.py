"""Recognizes commands that start training processes, also after wrappers: the cheap part of the launch grammar.

`ldlm_lint.shell.launch_grammar` parses such a command; this module only decides whether it is one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ldlm_lint.patterns import lazily

HINT = lazily(
    rb"torchrun|python|accelerate|deepspeed|composer|srun|mpirun|mpiexec|uv[ \t]+run"
    rb"|llamafactory-cli|axolotl|fairseq-|tune[ \t]+run|lightning|fabric[ \t]+run|trl[ \t]|xtuner|litgpt|swift[ \t]"
)

_ASSIGNMENT = lazily(r"[A-Za-z_]\w*=")
_PYTHON = lazily(r"python[\d.]*")
# `python $(which deepspeed) train.py`, `python .venv/bin/torchrun train.py`
_INSTALLED = lazily(r"(?:\$\(\s*(?:which|command\s+-v)\s+|.*/bin/)(torchrun|deepspeed|accelerate|composer)\s*\)?")
_DIRECT = {
    "torchrun": "torchrun",
    "deepspeed": "deepspeed",
    "composer": "composer",
    "accelerate-launch": "accelerate",
    "srun": "srun",
    "mpirun": "mpirun",
    "mpiexec": "mpirun",
    "mpiexec.hydra": "mpirun",
    "mpirun.openmpi": "mpirun",
}
MODULES = {
    "torch.distributed.run": "torch.distributed.run",
    "torch.distributed.launch": "torch.distributed.launch",
    "accelerate.commands.launch": "accelerate",
    "deepspeed.launcher.runner": "deepspeed",
}
STARTERS = ("srun", "mpirun")
"""Launchers that start any command, such as another launcher."""

# A command that libraries install, and the subcommands of it that train; without any it trains itself.
CONSOLE: dict[str, tuple[str, ...]] = {
    "llamafactory-cli": ("train",),
    "axolotl": ("train",),
    "tune": ("run",),
    "lightning": ("run", "fit"),
    "fabric": ("run",),
    "trl": ("sft", "dpo", "grpo", "kto", "orpo", "reward", "rloo"),
    "xtuner": ("train",),
    "litgpt": ("pretrain", "finetune", "finetune_full", "finetune_lora"),
    "swift": ("sft", "pt", "rlhf"),
    "fairseq-train": (),
    "fairseq-hydra-train": (),
}


class Wrapper(NamedTuple):
    """A command that runs the command after its options.

    ``value``: options whose value is the next word; ``operands``: words between the options and the command;
    ``subcommands``: one of these must be first; ``divided``: the command is after ``--``.
    """

    value: frozenset[str] = frozenset()
    operands: int = 0
    subcommands: tuple[tuple[str, ...], ...] = ()
    divided: bool = False


def _of(value: str = "", operands: int = 0, subcommands: str = "", divided: bool = False) -> Wrapper:
    return Wrapper(
        frozenset(value.split()), operands, tuple(tuple(one.split()) for one in subcommands.split(",") if one), divided
    )


_CONTAINER = (
    "-a --add-host --attach --blkio-weight --cap-add --cap-drop --cgroupns --cidfile -c --cpu-shares --cpus --cpuset-cpus --device -e --env"
    " --env-file --entrypoint --expose --gpus --group-add -h --hostname --init-path --ipc -l --label --link"
    " --log-driver --log-opt -m --memory"
    " --memory-swap --mount --name --net --network --oom-score-adj --pid --platform -p --publish --pull --restart --runtime --security-opt"
    " --shm-size --stop-signal --sysctl --tmpfs --ulimit -u --user --userns --uts -v --volume --volumes-from -w --workdir"
)
_IMAGE_FILE = (
    "-B --bind --add-caps --app --apply-cgroups --drop-caps --env --env-file --fusemount -H --home --hostname --mount"
    " --network --network-args"
    " -o --overlay --pwd --cwd --scratch -S --security --shell -W --workdir --pem-path --dns"
)
_WRAPPERS = {
    "env": _of("-u --unset -C --chdir"),
    "nohup": _of(),
    "exec": _of("-a"),
    "time": _of("-f -o"),
    "command": _of(),
    "sudo": _of("-u -g"),
    "nice": _of("-n"),
    "ionice": _of("-c -n"),
    "stdbuf": _of("-i -o -e"),
    "timeout": _of("-s -k --signal --kill-after", 1),
    "numactl": _of("-C -N -m -i -p"),
    "taskset": _of("", 1),
    "setsid": _of(),
    "xvfb-run": _of("-n -s -e -f -p -w"),
    "ibrun": _of("-n -o"),
    "uv": _of(
        "--with --with-requirements --with-editable -p --python --extra --group --only-group --no-extra --no-group --project --directory"
        " --package --env-file --index --default-index --index-url -i --extra-index-url -f --find-links --refresh-package --config-file",
        subcommands="run",
    ),
    "poetry": _of("-C --directory -P --project", subcommands="run"),
    "pixi": _of("-e --environment --manifest-path", subcommands="run"),
    "pdm": _of("-p --project", subcommands="run"),
    "pipenv": _of("--python", subcommands="run"),
    "rye": _of(subcommands="run"),
    "hatch": _of("-e --env", subcommands="run"),
    **dict.fromkeys(
        ("conda", "mamba", "micromamba"), _of("-n --name -p --prefix --cwd -a --attach", subcommands="run")
    ),
    **dict.fromkeys(("docker", "podman", "nvidia-docker"), _of(_CONTAINER, 1, "run,container run")),
    **dict.fromkeys(("singularity", "apptainer"), _of(_IMAGE_FILE, 1, "exec,run")),
    "nsys": _of(
        "-o --output -t --trace -s --sample -c --capture-range -x --stop-on-exit -y --delay -d --duration -e --env-var -w --show-output -b"
        " --backtrace -f --force-overwrite --capture-range-end --cuda-memory-usage --python-backtrace --gpu-metrics-device --kill",
        subcommands="profile",
    ),
    "ncu": _of(
        "-o --export -k --kernel-name -c --launch-count -s --launch-skip --set --section --metrics --target-processes"
    ),
    "ray": _of(divided=True, subcommands="job submit"),
    "py-spy": _of(divided=True, subcommands="record,top"),
}


def launcher_of(words: Sequence[str]) -> str | None:
    """The launcher at the beginning of a command, behind wrappers; None for any other command."""
    words = list(words)
    while words:
        behind = unwrapped(words)
        if behind is None:
            return named(words)
        if words[0] == "uv" and words[behind:] and words[behind].endswith(".py"):
            return "python"
        words = words[behind:]
    return None


def unwrapped(words: Sequence[str]) -> int | None:
    """The number of a wrapper's words before its command; None if the first word is not a wrapper."""
    wrapper = _WRAPPERS.get(words[0].rpartition("/")[2]) if words else None
    if wrapper is None:
        return None
    start = 1
    if wrapper.subcommands:
        chosen = next((one for one in wrapper.subcommands if tuple(words[1 : 1 + len(one)]) == one), None)
        if chosen is None:
            return None
        start += len(chosen)
    if wrapper.divided:
        return words.index("--", start) + 1 if "--" in words[start:] else None
    return _behind(words, start, wrapper)


def _behind(words: Sequence[str], index: int, wrapper: Wrapper) -> int:
    """The index after a wrapper's options, its assignments and its own operands."""
    while index < len(words) and (words[index].startswith("-") or _ASSIGNMENT.match(words[index])):
        if words[index] == "--":
            index += 1
            break
        index += 2 if words[index] in wrapper.value else 1
    return index + wrapper.operands


def named(words: Sequence[str]) -> str | None:
    """The launcher named by the first words; None for any other command, and for one without a program."""
    name = words[0].rpartition("/")[2]
    if name == "accelerate":
        return "accelerate" if "launch" in words[1:2] else None
    if _PYTHON.fullmatch(name):
        index, module = python_target(words)
        if module is not None:
            return MODULES.get(module, "python")
        match = _INSTALLED.fullmatch(words[index]) if index < len(words) else None
        return match[1] if match else "python"
    if name in CONSOLE:
        return name if not CONSOLE[name] or (len(words) > 1 and words[1] in CONSOLE[name]) else None
    return _DIRECT.get(name)


def python_target(words: Sequence[str]) -> tuple[int, str | None]:
    """The index of the program for python (``-c`` itself for code), and the module if it is one."""
    index = 1
    while index < len(words) and words[index].startswith("-") and words[index] != "-":
        word = words[index]
        if word in ("-W", "-X", "--check-hash-based-pycs"):
            index += 2
        elif not word.startswith("--") and "m" in word and not word.startswith(("-W", "-X")):
            return index + 1, words[index + 1] if index + 1 < len(words) else ""
        elif not word.startswith("--") and "c" in word and not word.startswith(("-W", "-X")):
            return index, None
        else:
            index += 1
    return index, None
