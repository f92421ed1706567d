"""Family 72: timeouts of process groups that torch rejects, that are too short, or that a sub-group does not
inherit.
"""

from __future__ import annotations

from ldlm_lint.model import Applicability, Consequence, Option, Probe, Reference, Rule

COLLECTIVE_MINIMUM = Option(
    "collective-minimum", 30, "shortest collective timeout that is not reported, in seconds", minimum=1, at_most="collective-timeout"
)

_PROCESS_GROUPS = Reference(
    "torch.distributed.init_process_group",
    "https://docs.pytorch.org/docs/stable/distributed.html#torch.distributed.init_process_group",
)

INVALID_COLLECTIVE_TIMEOUT = Rule(
    code="E7203",
    symbol="invalid-collective-timeout",
    consequence=Consequence.CRASH,
    message="a collective timeout of %(value)s %(problem)s",
    summary="A process-group timeout that is not a `datetime.timedelta`, or one below `collective-minimum` (30 "
    "seconds).",
    rationale="`init_process_group` and `new_group` take a `datetime.timedelta`. A number or a string raises before "
    "the first step. A timedelta of a few seconds, often a mistake in the unit, ends a healthy job: the time that a "
    "rank waits for the slowest one counts, and the first batch, a checkpoint or a compilation on one rank takes "
    "longer than that. `TrainingArguments.ddp_timeout` is the other way round: it takes seconds as a number.",
    cost="The job ends when the group is created, or when the first rank is late.",
    exceptions="A short timeout of a test that waits for the failure, or of a fault-tolerant trainer that gives up "
    "early on purpose. Tests and scripts that debug or measure are not reported.",
    versions="torch 2.0 to 2.13; `ddp_timeout` in all versions of transformers that have it.",
    verification="Run the script on one rank with the gloo backend: the error comes before any training. One machine "
    "cannot show whether a short timeout is too short for a cluster.",
    references=(
        _PROCESS_GROUPS,
        Reference("datetime.timedelta", "https://docs.python.org/3/library/datetime.html#datetime.timedelta"),
        Reference("TrainingArguments.ddp_timeout", "https://huggingface.co/docs/transformers/main_classes/trainer"),
    ),
    reads=("py",),
    triggers=(
        b"init_process_group",
        b"new_group",
        b"new_subgroups",
        b"split_group",
        b"InitProcessGroupKwargs",
        b"ddp_timeout",
        b"DDPStrategy",
        b"FSDPStrategy",
        b"init_distributed",
    ),
    requires=((b"timeout",),),
    applicability=Applicability.UNSAFE,
    fix_safety="Unsafe: a number is read as seconds and a short timeout becomes `collective-timeout`, which may not "
    "be what was meant.",
    options=(COLLECTIVE_MINIMUM,),
    probe=Probe("group-timeout", "the process group that was made there has a timeout below 30 seconds"),
)

SUBGROUP_TIMEOUT_NOT_INHERITED = Rule(
    code="W7233",
    symbol="subgroup-timeout-not-inherited",
    consequence=Consequence.CONFIG,
    message="%(groups)s not inherit the timeout of `init_process_group()` (%(timeout)s): their collectives end after the "
    "default of their backend instead; give them a `timeout` too",
    summary="A sub-group or a device mesh without a timeout, although the default group has one.",
    rationale="`new_group()` takes the default of its backend, 10 minutes for NCCL and 30 minutes for the others "
    "(torch 2.2 and newer), whatever timeout the default group has. Collectives that a sharded or tensor-parallel "
    "training runs in sub-groups therefore still fail after 10 minutes if the job was given an hour, or hang for 30 "
    "if it should give up after two. The sub-groups of a mesh with several dimensions are created the same way.",
    cost="A job that dies, or hangs, at another time than the one that was set.",
    exceptions="Not reported: separate `gloo` groups next to another default group, which carry short messages; a "
    "timeout that is set later with `_set_pg_timeout`; a default timeout that equals the backend's.",
    versions="torch 2.0 to 2.13; before 2.2 the default was 30 minutes for NCCL too.",
    verification="Print `group._get_backend(torch.device('cuda')).options._timeout` for each group.",
    references=(
        Reference(
            "torch.distributed.new_group", "https://docs.pytorch.org/docs/stable/distributed.html#torch.distributed.new_group"
        ),
        Reference("pytorch#135352: sub-groups of hybrid sharding", "https://github.com/pytorch/pytorch/issues/135352"),
        Reference("pytorch#110947: NCCL default of 10 minutes", "https://github.com/pytorch/pytorch/pull/110947"),
    ),
    reads=("py",),
    triggers=(b"new_group", b"new_subgroups", b"split_group", b"init_device_mesh"),
    applicability=Applicability.UNSAFE,
    fix_safety="Unsafe: collectives of the group now fail, or hang, after a different time.",
    probe=Probe(
        "group-timeout",
        "the sub-group has its backend's default, and the default group has another timeout",
        experiment="process-groups",
    ),
)

RULES = (INVALID_COLLECTIVE_TIMEOUT, SUBGROUP_TIMEOUT_NOT_INHERITED)
