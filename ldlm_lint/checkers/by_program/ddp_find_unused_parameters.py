"""ddp-find-unused-parameters: wrappers, strategies and settings that get True, through any flow of the flag and the
class."""

from __future__ import annotations

from collections.abc import Iterator

from ldlm_lint.checkers.by_program.calls import confidence_of, line_span
from ldlm_lint.checkers.by_program.ddp_calls import ENGINES, SEARCHING_STRATEGY, TAKE_STRATEGY, WRAPPERS
from ldlm_lint.checkers.by_program.mm_wrappers import mm_switches
from ldlm_lint.checkers.by_program.view import View
from ldlm_lint.checkers.by_program.written import keyword_of, written_argument
from ldlm_lint.model import Applicability, Claim, Edit, Finding, Fix, Related, Span
from ldlm_lint.program.atoms import FALSE, MASK, TRUE
from ldlm_lint.program.handles import Expr
from ldlm_lint.program.queries import State
from ldlm_lint.rules.ddp import FIND_UNUSED_PARAMETERS

RULE = FIND_UNUSED_PARAMETERS
WORDS = (b"DistributedDataParallel", b"DDP", b"find_unused_parameters")
_FLAG, _STATIC = "find_unused_parameters", "static_graph"
_OF_MM = (Claim("is-setting-of-mm"), Claim("some-child-keeps-setting", _FLAG))
_GIVEN = (State.GIVEN, State.MAYBE)
_REASON = "if a parameter gets no gradient, the second step raises; check that first"


def find(view: View) -> Iterator[Finding]:
    """All wrappers that get True unconditionally, and equivalent settings of frameworks."""
    for call in dict.fromkeys(call for call, _ in view.ask.calls_of(WRAPPERS | ENGINES)):
        flag = view.ask.argument(call, _FLAG)
        if flag.state in _GIVEN and not _may_be_static(view, call) and not _is_chosen(view, flag.sources):
            places = [by for source, by in zip(flag.sources, flag.given_by, strict=True) if _is_told(view, source, by if by != call else None)]
            if places:
                yield _finding(view, call, places)
    for call in dict.fromkeys(call for call, _ in view.ask.calls_of(TAKE_STRATEGY)):
        strategy = view.ask.argument(call, "strategy")
        if strategy.sources and view.ask.meaning(*strategy.sources).only == SEARCHING_STRATEGY:
            yield _of_strategy(view, call, strategy.sources[0])
    for switch in mm_switches(view):
        yield view.finding(RULE, switch.span, {}, claims=_OF_MM, fix=_fix(switch.flag, "False"), confidence=RULE.confidence)


def _may_be_static(view: View, call: int) -> bool:
    """With a static graph DDP neither walks the graph nor keeps the first buckets: the flag has no effect."""
    static = view.ask.argument(call, _STATIC)
    return static.state in _GIVEN and any(view.program.ask(one) != frozenset([FALSE]) for one in static.sources)


def _is_chosen(view: View, sources: tuple[int, ...]) -> bool:
    """Whether the function that wraps decides between True and False; decisions of callers are judged at the
    callers.
    """
    given = [view.program.module_of(one).plain(one & MASK)[0] == "param" for one in sources]
    return not all(given) and any(FALSE in view.program.ask(one) for one in sources)


def _is_told(view: View, source: int, by: int | None) -> bool:
    """Whether a flag is True without a condition: a chosen or user-supplied one is deliberate.

    ``by`` is the code that fills its dictionary; a condition on wrapping the model at all does not choose the flag.
    """
    if TRUE not in view.program.ask(source) or view.ask.meaning(source).flags or (by is not None and view.origins.case_of(by)):
        return False
    return any(not one.case and one.expr.row == ("const", True) for one in Expr(view, source).origins_of(True))


def _finding(view: View, call: int, places: list[int]) -> Finding:
    keyword = keyword_of(view, call, _FLAG)
    related = [Related(line_span(view, one), "the flag is set here") for one in places if one != call]
    span = keyword.whole if keyword is not None else view.call_span(call)
    fix = _fix(keyword.span if keyword is not None and keyword.is_constant else None, "False")
    return view.finding(RULE, span, {}, related, fix=fix, confidence=confidence_of(view, RULE, call))


def _of_strategy(view: View, call: int, source: int) -> Finding:
    """Lightning takes the flag inside the name of its strategy."""
    written = written_argument(view, call, "strategy")
    span = written.span if written is not None else line_span(view, source)
    fix = _fix(span if written is not None and written.is_constant else None, '"ddp"')
    return view.finding(RULE, span, {}, fix=fix, confidence=confidence_of(view, RULE, call))


def _fix(literal: Span | None, value: str) -> Fix:
    """The other value, to use once every parameter is known to get a gradient."""
    edits = (Edit(literal, value),) if literal is not None else ()
    return Fix("set find_unused_parameters=False once every parameter is known to get a gradient", edits, Applicability.DISPLAY, _REASON)
