"""What the rules of amp ask of the project."""

from __future__ import annotations

from collections.abc import Iterator

from ldlm_lint.checkers.autocasts import Precision
from ldlm_lint.code.table import line_of
from ldlm_lint.concepts.precision import is_chosen_by_precision
from ldlm_lint.model import Finding, Related
from ldlm_lint.patterns import lazily
from ldlm_lint.program.atoms import MASK
from ldlm_lint.project.questions.base import Context, Question, Verdict
from ldlm_lint.project.training import trainings_of
from ldlm_lint.python.skim import without_comments
from ldlm_lint.wording import located

_AUTOCAST = lazily(rb"(?<!def )\b(autocast)\s*\(")
_NOT_IN_FORCE = lazily(rb"\(\s*False\b|enabled\s*=\s*False\b|float32|torch\.float\b|[\"']cpu[\"']")
_BFLOAT16 = lazily(rb"torch\.bfloat16")
_CHOSEN = lazily(rb"\bif\b|float16(?<!bfloat16)|\bhalf\b")
_LONGEST = 400


def _autocasts_need_no_scaling(context: Context, finding: Finding, beside: str) -> Verdict:
    """No autocast of the trainings computes in anything but bfloat16; without one in the file itself, another has one."""
    project, path = context.project, finding.span.path
    if project.is_test(path) or _is_asked_for_by_precision(context, finding):
        return Verdict(False)
    files = trainings_of(project, path)
    shown: Related | None = None
    for one in sorted(files - {path} if beside else files):
        for line, precision in _precisions(context, one):
            if precision is Precision.OTHER:
                return Verdict(False)
            if precision is Precision.BFLOAT16:
                shown = shown or Related(context.line_span(one, line), "the forward pass computes in bfloat16")
    if beside:
        return Verdict(bool(files))
    if shown is None:
        return Verdict(False)
    line = project.data(shown.span.path).count(b"\n", 0, shown.span.start) + 1
    where = f"the autocast at {located(shown.span.path, line, path)}"
    return Verdict(True, (shown,), (("where", where),))


def _is_asked_for_by_precision(context: Context, finding: Finding) -> bool:
    """Whether whoever calls the function that makes a scaler does so for one precision alone."""
    view, module = context.view, context.view.module(finding.span.path)
    call = view.call_at(module, view.place_at(module, finding.span.start)) if module is not None else None
    return module is not None and call is not None and is_chosen_by_precision(context.program, module.base | call)


def _precisions(context: Context, path: str) -> Iterator[tuple[int, Precision]]:
    """The line of every autocast of a file and what it computes in; by its words in a file that takes part in no training."""
    module = context.view.module(path) if b"autocast" in context.project.data(path) else None
    if module is not None:
        for call, precision in context.view.autocasts.of(module.index):
            yield line_of(module.table.sites[call & MASK].place), precision
        return
    for line, arguments in _autocasts(context.project.data(path)):
        if not _NOT_IN_FORCE.search(arguments):
            plain = _BFLOAT16.search(arguments) and not _CHOSEN.search(arguments)
            yield line, Precision.BFLOAT16 if plain else Precision.OTHER


def _autocasts(data: bytes) -> Iterator[tuple[int, bytes]]:
    """The line and the arguments of every call of something named ``autocast``."""
    if b"autocast" not in data:
        return
    code = data if b"#" not in data else b"\n".join(map(without_comments, data.split(b"\n")))
    for match in _AUTOCAST.finditer(code):
        text = code[match.end() - 1 : match.end() + _LONGEST]
        yield code.count(b"\n", 0, match.start()) + 1, text[: _closing(text)]


def _closing(text: bytes) -> int:
    depth = 0
    for index, byte in enumerate(text):
        depth += (byte == ord("(")) - (byte == ord(")"))
        if depth == 0:
            return index + 1
    return len(text)


QUESTIONS: dict[str, Question] = {
    "autocasts-need-no-scaling": _autocasts_need_no_scaling,
}
