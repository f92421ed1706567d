"""Questions about skips of one rank: whether the calls before them reduce over the ranks, and whether there are several."""

from __future__ import annotations

import re

from ldlm_lint.model import Finding
from ldlm_lint.patterns import lazily
from ldlm_lint.project.questions.base import Context, Question, Verdict
from ldlm_lint.project.training import trainings_of
from ldlm_lint.project.traits import Trait
from ldlm_lint.python.flow import Function

_REDUCES = lazily(r"all_?reduce|all_?gather|^reduce|^gather|broadcast|synchronize_between")
_DEVICES = Trait(
    re.compile(
        rb"strategy[ \t]*=[ \t]*[\"'](?:ddp|fsdp|deepspeed)|(?:DDP|FSDP|DeepSpeed)Strategy\(|num_nodes[ \t]*=|devices[ \t]*=[ \t]*(?:-1|[2-9]|1\d)"
    ),
    (b"strategy", b"Strategy(", b"num_nodes", b"devices"),
)


def _nothing_is_reduced(context: Context, finding: Finding, positions: str) -> Verdict:
    """None of these calls calls a function of the project that reduces over the ranks."""
    path = finding.span.path
    wanted = set(positions.split(";"))
    calls = (call for call in context.project.flow(path).calls if call.position in wanted)
    targets = (target for call in calls for target in context.calls.targets(path, call.callee))
    return Verdict(not any(_reduces(context, where, function) for where, function in targets))


def _lightning_uses_several_devices(context: Context, finding: Finding, _subject: str) -> Verdict:
    """Lightning may use one or many devices; only the settings of a training show which."""
    return Verdict(context.project.any_shows(trainings_of(context.project, finding.span.path), _DEVICES))


def _reduces(context: Context, path: str, function: Function, depth: int = 0) -> bool:
    inner = [call for call in context.project.flow(path).calls if call.scope == function.scope]
    if any(_REDUCES.search(call.callee.name.rpartition(".")[2]) for call in inner):
        return True
    targets = (target for call in inner for target in context.calls.targets(path, call.callee))
    return depth < 1 and any(_reduces(context, where, one, depth + 1) for where, one in targets)


QUESTIONS: dict[str, Question] = {
    "nothing-is-reduced": _nothing_is_reduced,
    "lightning-uses-several-devices": _lightning_uses_several_devices,
}
