"""`unsynchronized-copy-to-host`, also if a helper makes the copy and a caller reads it."""

from __future__ import annotations

from collections.abc import Iterator

from ldlm_lint.checkers.by_program.view import View
from ldlm_lint.checkers.by_program.written import without_keywords
from ldlm_lint.code.table import line_of
from ldlm_lint.concepts.async_copies import AsyncCopies, Read, copies_of
from ldlm_lint.model import Applicability, Finding, Fix, Related
from ldlm_lint.program.atoms import MASK
from ldlm_lint.program.modules import Module
from ldlm_lint.rules.copies import UNSYNCHRONIZED_COPY
from ldlm_lint.wording import quoted

RULE = UNSYNCHRONIZED_COPY
WORDS: tuple[bytes, ...] = (b"non_blocking",)
_CAPTURES = (b"CUDAGraph", b"cuda.graph", b"make_graphed_callables")
_CAPTURE_REASON = "a copy that waits cannot be captured in a CUDA graph, and this file captures one"
_READ_HERE = "the copy is read here"


def find(view: View) -> Iterator[Finding]:
    """The copies that their function, or a known caller that receives them, reads before it waits."""
    known: dict[int, AsyncCopies] = {}
    for call in copies_of(view.program):
        module = view.program.module_of(call)
        copies = known.setdefault(module.index, AsyncCopies(view.program, module))
        if copies.is_one(call & MASK):
            read = copies.first_read(call & MASK)
            if read is not None:
                yield _finding(view, call, module, read, _fix(view, call))
            elif _is_returned(module, call & MASK) and not copies.waits_itself(module.table.sites[call & MASK].scope):
                yield from _read_by_callers(view, call, known)


def _is_returned(module: Module, call: int) -> bool:
    scope = module.table.sites[call].scope
    return bool(scope) and any(value == call for value, _ in module.scopes[scope].returns)


def _read_by_callers(view: View, call: int, known: dict[int, AsyncCopies]) -> Iterator[Finding]:
    for caller in view.program.calls_of_function(view.program.function_of(call)):
        home = view.program.module_of(caller)
        read = known.setdefault(home.index, AsyncCopies(view.program, home)).first_read(caller & MASK)
        if read is not None:
            yield _finding(view, call, home, read, None)
            return


def _finding(view: View, call: int, home: Module, read: Read, fix: Fix | None) -> Finding:
    own = view.program.module_of(call)
    span = view.span(home, read.place, read.end)
    described = "an f-string" if read.is_formatted else quoted(view.source(home).slice(span))
    elsewhere = home is not own or line_of(read.place) != line_of(own.table.sites[call & MASK].place)
    related = (Related(view.context.line_span(view.path(home), line_of(read.place)) if home is not own else span, _READ_HERE),)
    return view.finding(RULE, view.call_span(call), {"read": described}, related if elsewhere else (), fix=fix, confidence=RULE.confidence)


def _fix(view: View, call: int) -> Fix | None:
    """Drop the argument."""
    edits = without_keywords(view, call, ["non_blocking"])
    if not edits:
        return None
    data = view.source(view.program.module_of(call)).data
    reason = _CAPTURE_REASON if any(word in data for word in _CAPTURES) else ""
    level = Applicability.UNSAFE if reason else Applicability.SAFE
    return Fix("drop non_blocking=True, so that the copy waits", edits, level, reason)
