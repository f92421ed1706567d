"""Family 72: the fate of the process when a collective fails or times out."""

from __future__ import annotations

from collections.abc import Iterator

from ldlm_lint.model import Applicability, Consequence, Probe, Reference, Rule
from ldlm_lint.rules.environment_view import Draft, Plan, View, drop, members, number, rewrite
from ldlm_lint.rules.settings import Value

NAME = "TORCH_NCCL_ASYNC_ERROR_HANDLING"
OLD_NAME = "NCCL_ASYNC_ERROR_HANDLING"
NAMES = (NAME, OLD_NAME)

_TORCHRUN = frozenset({"torchrun", "torch.distributed.run", "torch.distributed.launch"})
_PREFIXED_SINCE = (2, 2)
_PROCESS_GROUP = Reference(
    "ProcessGroupNCCL environment variables",
    "https://docs.pytorch.org/docs/stable/torch_nccl_environment_variables.html",
)
_AGENT = Reference(
    "torchrun's local agent sets TORCH_NCCL_ASYNC_ERROR_HANDLING",
    "https://github.com/pytorch/pytorch/blob/main/torch/distributed/elastic/agent/server/local_elastic_agent.py",
)

NCCL_ERROR_HANDLING_DISABLED = Rule(
    code="E7208",
    symbol="nccl-error-handling-disabled",
    consequence=Consequence.HANG,
    message="%(setting)s switches NCCL's asynchronous error handling off: a process keeps running, and holds its GPUs, "
    "after a collective has failed or timed out; remove it, or set it to 1",
    summary="NCCL's asynchronous error handling is switched off.",
    rationale="The variable is a number: 0 ignores errors, 1 aborts the communicators and ends the process, 2 only "
    "aborts them, 3 (the default since torch 2.2) ends the process without aborting. With 0 the NCCL watchdog still "
    "sees that a collective has failed or exceeded its timeout, but does nothing, so every rank waits for a partner "
    "that never comes.",
    cost="A failed job keeps all its GPUs until a person ends it.",
    exceptions="Programs that watch their collectives themselves. Under torchrun the name without TORCH_ is "
    "overridden by the value that torchrun sets, so there it is only reported as deprecated.",
    versions="Both names work in torch 2.2 to 2.13; up to torch 2.1 only NCCL_ASYNC_ERROR_HANDLING is read.",
    verification="ProcessGroupNCCL logs its `TORCH_NCCL_ASYNC_ERROR_HANDLING` at its start with `TORCH_CPP_LOG_LEVEL=INFO`.",
    references=(_PROCESS_GROUP, _AGENT),
    reads=("sh", "py", "cfg"),
    triggers=(b"NCCL_ASYNC_ERROR_HANDLING",),
    applicability=Applicability.UNSAFE,
    fix_safety="Unsafe: from then on an error ends a process that survived it before.",
    probe=Probe(
        "group-environment",
        "the variable was off when a process group of NCCL was made",
        device_bound=True,
        whole_run=True,
    ),
    overrides="the numbers stay the same, and the rule is about this value",
)

REDUNDANT_ERROR_HANDLING_VARIABLE = Rule(
    code="I7209",
    symbol="redundant-error-handling-variable",
    consequence=Consequence.CONFIG,
    message="%(setting)s changes nothing, because torchrun sets this value itself: remove it",
    summary="A file sets a value that torchrun sets by itself.",
    rationale="The launcher torchrun exports TORCH_NCCL_ASYNC_ERROR_HANDLING=1 to its workers if it is not set, so "
    "the line changes nothing; it only looks as if the job depended on it.",
    cost="No run time; one more line that the next reader has to understand.",
    exceptions="Not reported: files that also start processes without torchrun, whose default is 3, and Python files, "
    "whose launcher is unknown.",
    versions="The torchrun of torch 2.2 to 2.13 sets TORCH_NCCL_ASYNC_ERROR_HANDLING, that of 2.0 and 2.1 the name "
    "without TORCH_.",
    verification="`torchrun --nproc_per_node=1 --no-python printenv TORCH_NCCL_ASYNC_ERROR_HANDLING` prints 1.",
    references=(_AGENT, _PROCESS_GROUP),
    reads=("sh", "cfg"),
    triggers=(b"TORCH_NCCL_ASYNC_ERROR_HANDLING",),
    default=False,
    applicability=Applicability.UNSAFE,
    fix_safety="Unsafe: torchrun sets the variable only if it is not set, so a value that the job inherits from the "
    "user's shell or the cluster takes effect. No fix is offered if the file also gives the variable another value.",
    overrides="it is the default",
)

RULES = (NCCL_ERROR_HANDLING_DISABLED, REDUNDANT_ERROR_HANDLING_VARIABLE)


def drafts(view: View) -> Iterator[Draft]:
    """The findings of this topic."""
    by_torchrun = bool(view.scene.launchers) and set(view.scene.launchers) <= _TORCHRUN
    for setting in view.named(NAMES):
        overridden = setting.name == OLD_NAME and by_torchrun and not view.older_than(_PREFIXED_SINCE)
        if (off := members(setting, _is_off)) and not overridden:
            reason = "an error that the process survived so far then ends it"
            plans: tuple[Plan, ...] = (drop(setting, reason), rewrite(setting, _is_off, "1", reason))
            yield Draft(NCCL_ERROR_HANDLING_DISABLED, setting, (("value", off[0].text),), plans)
        elif (
            setting.name == NAME and by_torchrun and setting.values and all(number(one) == 1 for one in setting.values)
        ):
            args = (("value", setting.values[0].text),)
            same = all(one.values and all(number(value) == 1 for value in one.values) for one in view.named([NAME]))
            plans = (drop(setting, "a value that the job inherits takes effect"),) if same else ()
            yield Draft(REDUNDANT_ERROR_HANDLING_VARIABLE, setting, args, plans)


def _is_off(value: Value) -> bool:
    return number(value) == 0
