"""Questions about timeouts of process groups: whether they may be shorter, and whether DeepSpeed reads one."""

from __future__ import annotations

from astroid import nodes

from ldlm_lint.model import Applicability, Finding, Fix
from ldlm_lint.patterns import lazily
from ldlm_lint.project.questions.base import Context, Question, Verdict
from ldlm_lint.project.traits import Trait
from ldlm_lint.python.calls import Arguments
from ldlm_lint.python.group_timeouts import DEFAULT_GROUP, makes_default_group
from ldlm_lint.python.names import qualified
from ldlm_lint.python.walks import nodes_of
from ldlm_lint.rules.collectives import DO_WORK_BEFORE

_DEEPSPEED = Trait(lazily(rb"\bdeepspeed\b"), (b"deepspeed",), code=True)


def _timeout_may_be_lowered(context: Context, finding: Finding, _subject: str) -> Verdict:
    """The finding is confirmed; its fix is only described if ranks of the program wait for long work of one of them."""
    wait = context.view.trainings.wait_for_one_rank(finding.span)
    if wait is None:
        return Verdict(True)
    fix = Fix(DO_WORK_BEFORE, (), Applicability.DISPLAY, wait.why) if finding.fix is not None else None
    return Verdict(True, wait.related, withdraws=fix is None, fix=fix)


def _deepspeed_reads_timeout(context: Context, _finding: Finding, _subject: str) -> Verdict:
    """Some file lets DeepSpeed create its process group without passing a timeout."""
    project = context.project
    key = ("deepspeed-reads-timeout", "")
    if key not in context.answers:
        making = project.showing(_DEEPSPEED) & project.plain
        context.answers[key] = any(_leaves_timeout_to_deepspeed(context.trees.of(one)) for one in making)
    return Verdict(context.answers[key])


def _leaves_timeout_to_deepspeed(module: nodes.Module | None) -> bool:
    """Whether a file creates DeepSpeed's group by a call without ``timeout=``: ``initialize`` reuses an existing
    group.
    """
    calls = [(call, next(iter(names))) for call in nodes_of(module, nodes.Call) if len(names := qualified(call.func)) == 1] if module else []
    groups = [call for call, name in calls if name in ("deepspeed.init_distributed", "deepspeed.comm.init_distributed", DEFAULT_GROUP)]
    if groups:
        return any(not makes_default_group(call) and Arguments(call)["timeout"].absent for call in groups)
    return any(name == "deepspeed.initialize" for _, name in calls)


QUESTIONS: dict[str, Question] = {
    "deepspeed-reads-timeout": _deepspeed_reads_timeout,
    "timeout-may-be-lowered": _timeout_may_be_lowered,
}
