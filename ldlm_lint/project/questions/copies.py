"""The question of the rule about copies to the GPU."""

from __future__ import annotations

from ldlm_lint.model import Finding, Related
from ldlm_lint.project.questions.base import Context, Question, Verdict
from ldlm_lint.wording import located


def _loop_takes_pinned_batches(context: Context, finding: Finding, line: str) -> Verdict:
    loader = context.pinning.loops.get((finding.span.path, int(line.partition(":")[0])))
    if loader is None:
        return Verdict(False)
    related = (Related(context.line_span(*loader), "this loader pins its batches"),)
    return Verdict(True, related, (("loader", located(*loader, finding.span.path)),))


QUESTIONS: dict[str, Question] = {
    "loop-takes-pinned-batches": _loop_takes_pinned_batches,
}
