"""Family 72: variables that have two names, of which one takes precedence."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping

from ldlm_lint import tables
from ldlm_lint.model import Applicability, Claim, Confidence, Consequence, Edit, Finding, Reference, Related, Rule, Span
from ldlm_lint.rules.environment_names import RENAMED
from ldlm_lint.rules.environment_view import (
    FALSE,
    OUTSIDE_TESTS,
    TRUE,
    Draft,
    Plan,
    View,
    always_beside,
    assigned,
    drop,
    number,
    rewrite,
)
from ldlm_lint.rules.environment_watchdog import is_blocking
from ldlm_lint.rules.settings import Setting, Value

# The loser and the winner: the CUDA allocator looks at the old name first in every release.
ALLOCATOR = {"PYTORCH_ALLOC_CONF": "PYTORCH_CUDA_ALLOC_CONF"}
_WINNERS = {**RENAMED, **ALLOCATOR}
NAMES = (*RENAMED, *RENAMED.values(), *ALLOCATOR, *ALLOCATOR.values())

_RENAMED_IN = (2, 2)
_ACTIVATED = "under torchrun it can activate a value that has had no effect so far"
_INHERITED = f"{_ACTIVATED}, or replace one that the job inherits"
_NUMBERS = ("NCCL_ASYNC_ERROR_HANDLING",)
_PROCESS_GROUP = Reference(
    "ProcessGroupNCCL environment variables",
    "https://docs.pytorch.org/docs/stable/torch_nccl_environment_variables.html",
)
_LOOKUP = Reference(
    "Old and new names in ProcessGroupNCCL.hpp",
    "https://github.com/pytorch/pytorch/blob/main/torch/csrc/distributed/c10d/ProcessGroupNCCL.hpp",
)
_ALLOCATOR_OPTIONS = Reference(
    "PYTORCH_CUDA_ALLOC_CONF",
    "https://docs.pytorch.org/docs/stable/notes/cuda.html#optimizing-memory-usage-with-pytorch-cuda-alloc-conf",
)
_IGNORED = Reference("pytorch#183387: PYTORCH_ALLOC_CONF in torch 2.9", "https://github.com/pytorch/pytorch/issues/183387")

DEPRECATED_NCCL_VARIABLE = Rule(
    code="W7210",
    symbol="deprecated-nccl-variable",
    consequence=Consequence.DEPRECATED,
    message="`%(name)s` was renamed in torch 2.2, which warns about the old name in every process: rename it to "
    "`%(new)s`",
    summary="A variable of PyTorch under its old name, which starts with `NCCL_` instead of `TORCH_NCCL_`.",
    rationale="NCCL itself never had these variables. torch 2.2 renamed its own to TORCH_NCCL_ and still reads the "
    "old names with a warning, but only if the new name is not set. torchrun sets TORCH_NCCL_ASYNC_ERROR_HANDLING=1 "
    "for its workers, so under torchrun NCCL_ASYNC_ERROR_HANDLING has no effect at all, whatever its value.",
    cost="No run time; a warning per process, and a setting that the new name silently overrides.",
    exceptions="With a `target-torch` below 2.2 only the old names exist, and nothing is reported. If the new name "
    "has another value in the same file, conflicting-environment-alias is reported instead.",
    versions="torch 2.2 to 2.13 read both names; up to torch 2.1 only the old ones are read.",
    verification="The log says `Environment variable NAME is deprecated; use TORCH_NAME instead`.",
    references=(_PROCESS_GROUP, _LOOKUP),
    reads=("sh", "py", "cfg"),
    needs="TORCH_NCCL_* variables",
    triggers=tuple(name.encode() for name in RENAMED),
    applicability=Applicability.UNSAFE,
    fix_safety="Unsafe: torch up to 2.1 does not read the new name, and under torchrun the new name can activate a "
    "value that had no effect under the old one. With a `target-torch` that includes torch before 2.2 both names are "
    "set, and files that already set both are not reported. No fix is offered if the file mentions the name "
    "elsewhere, or sets the new name only for some processes.",
    overrides="the new name has the same value",
)

CONFLICTING_ENVIRONMENT_ALIAS = Rule(
    code="W7211",
    symbol="conflicting-environment-alias",
    consequence=Consequence.CONFIG,
    message="%(setting)s has no effect, because torch reads %(winner)s instead: keep one of the two",
    summary="Two names of one variable are set to different values.",
    rationale="If both an old NCCL_ name and its TORCH_NCCL_ successor are set, torch reads only the successor. If "
    "both names of the allocator's options are set, the CUDA allocator takes PYTORCH_CUDA_ALLOC_CONF. The other value "
    "is silently ignored, so editing it changes nothing.",
    cost="No run time, but the run is not configured as the script says.",
    exceptions="Equal values, which support old and new releases of torch, and unknown values. Only settings that the "
    "same processes see are compared.",
    versions="torch 2.2 to 2.13. Up to torch 2.1 only the old NCCL_ names are read, up to torch 2.9 only "
    "PYTORCH_CUDA_ALLOC_CONF.",
    verification="Change the ignored value: the start-up log of ProcessGroupNCCL (`TORCH_CPP_LOG_LEVEL=INFO`) or "
    "`torch.cuda.memory_stats()` does not change.",
    references=(_PROCESS_GROUP, _LOOKUP, _ALLOCATOR_OPTIONS, _IGNORED),
    reads=("sh", "py", "cfg"),
    triggers=(*DEPRECATED_NCCL_VARIABLE.triggers, b"PYTORCH_ALLOC_CONF"),
    applicability=Applicability.UNSAFE,
    fix_safety="Unsafe: it keeps the value that has an effect today, but only you know which of the two was meant.",
    overrides="the value under the other name is in force",
)

RULES = (DEPRECATED_NCCL_VARIABLE, CONFLICTING_ENVIRONMENT_ALIAS)


def drafts(view: View) -> Iterator[Draft]:
    """The findings of this topic; a line that loses against its new name is not also called deprecated."""
    for setting in view.named(_WINNERS):
        winner = next((one for one in view.beside(setting, [_WINNERS[setting.name]]) if _differ(setting, one)), None)
        if winner is not None:
            yield _conflicting(setting, winner)
        elif setting.name in RENAMED and not view.older_than(_RENAMED_IN):
            new = RENAMED[setting.name]
            present = [*view.named([new])]
            if view.supports_older_than(_RENAMED_IN) and any(always_beside(one, setting) for one in present):
                continue
            plans = () if is_blocking(setting) else _renaming(setting, new, present, view)
            yield Draft(DEPRECATED_NCCL_VARIABLE, setting, (("new", new),), plans, confidence=Confidence.HIGH)


def candidates(settings: Iterable[Setting], found: Collection[Span], options: Mapping[str, object]) -> Iterator[Finding]:
    """The values that win in their own file, but may lose to one of a script that shares the shell.

    ``found`` are the settings with a known conflict. The claim's subject is the name that wins, and the value that
    loses.
    """
    view = View(tuple(settings), options)
    for setting in view.named(_WINNERS):
        value, winner = _only(setting), _WINNERS[setting.name]
        if value is None or setting.span in found or setting.place.conditional or any(view.beside(setting, [winner])):
            continue
        draft = Draft(CONFLICTING_ENVIRONMENT_ALIAS, setting, (("value", value), ("winner", winner)))
        yield draft.finding(None)._replace(claims=(OUTSIDE_TESTS, Claim("winner-differs-beside", f"{winner}|{setting.name}|{value}")))


def winner_beside(settings: Iterable[Setting], subject: str) -> tuple[Setting, str] | None:
    """The setting of another script that wins over the value of a candidate, also as text; None if none has another
    value."""
    winner, name, value = subject.split("|", 2)
    for setting in (one for one in settings if one.name == winner):
        kept = _only(setting)
        if kept is not None and not setting.place.conditional and _meaning(name, value) != _meaning(name, kept):
            return setting, assigned(winner, kept)
    return None


def _conflicting(setting: Setting, winner: Setting) -> Draft:
    value, kept = _only(setting) or "", _only(winner) or ""
    reason = "only the author knows which of the two values was meant"
    # Blocking wait has its own fix, which must not be split. Its expansion may be the winning value, which would then
    # refer to itself.
    plans = () if is_blocking(setting) or setting.expanded else (drop(setting, reason), rewrite(setting, lambda _: True, kept, reason))
    return Draft(
        CONFLICTING_ENVIRONMENT_ALIAS,
        setting,
        (("value", value), ("winner", assigned(winner.name, kept))),
        plans,
        (Related(winner.span, "torch reads this one"),),
        confidence=min(setting.confidence, winner.confidence),
    )


def _renaming(setting: Setting, new: str, present: list[Setting], view: View) -> tuple[Plan, ...]:
    """Both names where an old torch is supported, else the new one; empty if other processes get the new one."""
    if present:
        reason = _INHERITED if view.needs(_RENAMED_IN) else f"torch up to 2.1 does not read {new}"
        return (drop(setting, reason),) if any(always_beside(one, setting) for one in present) else ()
    if view.supports_older_than(_RENAMED_IN):
        if setting.twin is None or setting.expanded:
            return ()
        twin = Edit(setting.twin.span, f"{setting.twin.before}{new}{setting.twin.after}")
        return (Plan(f"set {new} too", (twin,), _ACTIVATED),)
    if setting.key is None or setting.expanded:
        return ()
    reason = _INHERITED if view.needs(_RENAMED_IN) else f"torch up to 2.1 does not read the new name, and {_ACTIVATED}"
    needs = (tables.interface("TORCH_NCCL_* variables"),)
    return (Plan(f"rename it to {new}", _edits(setting.key.rewritten(new)), reason, needs=needs),)


def _edits(edit: Edit | None) -> tuple[Edit, ...] | None:
    return None if edit is None else (edit,)


def _differ(setting: Setting, winner: Setting) -> bool:
    """Whether both values are known and mean different things."""
    value, kept = _only(setting), _only(winner)
    return value is not None and kept is not None and _meaning(setting.name, value) != _meaning(setting.name, kept)


def _only(setting: Setting) -> str | None:
    return setting.values[0].text if setting.values is not None and len(setting.values) == 1 else None


def _meaning(name: str, text: str) -> object:
    if name in ALLOCATOR:
        return frozenset(text.replace(" ", "").split(","))
    if name in _NUMBERS:
        return number(Value(text, None))
    return text.lower() in TRUE, text.lower() in FALSE
