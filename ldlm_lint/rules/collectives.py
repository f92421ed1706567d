"""Family 72, distributed: how long a collective may hang before the job is torn down."""

from __future__ import annotations

from ldlm_lint.model import Applicability, Consequence, Option, Probe, Reference, Rule

COLLECTIVE_LIMIT = Option("collective-limit", 7200, "longest collective timeout that is not reported, in seconds", minimum=1)
COLLECTIVE_TIMEOUT = Option(
    "collective-timeout", 1800, "collective timeout that the fix writes, in seconds (whole minutes)", minimum=1, at_most="collective-limit"
)

EXCESSIVE_COLLECTIVE_TIMEOUT = Rule(
    code="W7202",
    symbol="excessive-collective-timeout",
    consequence=Consequence.HANG,
    message="a collective that hangs ends this job only after %(length)s: every GPU stays allocated and idle until then; "
    "set a timeout of at most %(limit)s",
    summary="A process-group timeout above `collective-limit` (2 hours), including `DEEPSPEED_TIMEOUT` (in minutes).",
    rationale="The timeout of the process group ends a job whose ranks are out of step: if a collective does not "
    "finish in time, the NCCL watchdog aborts it and the process crashes with a report. The default is 10 minutes for "
    "NCCL and 30 minutes for other backends (torch >= 2.2). Once one rank misses a collective, the job hangs; a value "
    "of many hours keeps the whole cluster idle for that long.",
    cost="All GPUs of the job are idle from the hang until the timeout.",
    exceptions="A rank that really works alone for hours while the others wait at a barrier, such as tokenizing on "
    "rank 0. Better: do that work before the group is created, or give that barrier its own gloo group with a long "
    "timeout.",
    versions="torch 2.0 to 2.13. `new_group()` does not inherit the timeout of the default group.",
    verification="Read `torch.distributed.distributed_c10d._world.pg_map` and each group's `_get_backend(device).options._timeout` at run time.",
    references=(
        Reference(
            "torch.distributed.init_process_group",
            "https://docs.pytorch.org/docs/stable/distributed.html#torch.distributed.init_process_group",
        ),
        Reference("pytorch#110947: NCCL default of 10 minutes", "https://github.com/pytorch/pytorch/pull/110947"),
        Reference("TrainingArguments.ddp_timeout", "https://huggingface.co/docs/transformers/main_classes/trainer"),
    ),
    reads=("py", "sh", "cfg"),
    triggers=(b"DEEPSPEED_TIMEOUT",),
    setting_triggers=(b"timeout", b"timedelta", b"DEEPSPEED_TIMEOUT"),
    applicability=Applicability.UNSAFE,
    fix_safety="Unsafe: a phase in which one rank works alone for longer than the new timeout now ends the job. If "
    "the program has such a phase, the timeout is not changed and the fix only says what to do: one rank downloads, "
    "tokenizes or reads a corpus under a check of the rank, or in `main_process_first()`, while the others wait at a "
    "barrier or another collective. Move that work before `init_process_group` or into a separate run, then shorten "
    "the timeout.",
    options=(COLLECTIVE_LIMIT, COLLECTIVE_TIMEOUT),
    probe=Probe(
        "group-timeout",
        "the process group that was made there has this timeout",
        experiment="process-groups",
        bound_experiment=True,
    ),
)

RULES = (EXCESSIVE_COLLECTIVE_TIMEOUT,)


def compared(seconds: float, limit: float) -> dict[str, str]:
    """A duration and the limit that it is above, as text: in seconds if they would look the same."""
    length, most = length_of(seconds), length_of(limit)
    return {"length": length if length != most else f"{seconds:g} seconds", "limit": most}


def length_of(seconds: float) -> str:
    """A duration in seconds in the unit that people read: ``10 hours``, ``138.9 days``."""
    for unit, size in (("days", 86400), ("hours", 3600), ("minutes", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:.1f}".removesuffix(".0") + f" {unit}"
    return f"{seconds:g} seconds"
