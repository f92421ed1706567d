"""ddp-find-unused-parameters where the flag is put into a dictionary, handed on, or comes with a class from elsewhere."""

from __future__ import annotations

from collections.abc import Iterator

from ldlm_lint.checkers.by_program.calls import line_span
from ldlm_lint.checkers.by_program.ddp_calls import ENGINES, WRAPPERS
from ldlm_lint.checkers.by_program.view import View
from ldlm_lint.checkers.by_program.ways import Ways
from ldlm_lint.model import Applicability, Claim, Finding, Fix, Related
from ldlm_lint.program.atoms import FALSE, MASK, TRUE
from ldlm_lint.program.queries import State
from ldlm_lint.rules.ddp import FIND_UNUSED_PARAMETERS

RULE = FIND_UNUSED_PARAMETERS
WORDS = (b"DistributedDataParallel", b"DDP", b"find_unused_parameters")
_FLAG, _STATIC = "find_unused_parameters", "static_graph"
_GIVEN = (State.GIVEN, State.MAYBE)
_REASON = "if a parameter gets no gradient, the second step raises; check that first"


def find(view: View) -> Iterator[Finding]:
    """All wrappers that are told True, where nothing chooses that."""
    ways = Ways(view)
    for call in dict.fromkeys(call for call, _ in view.ask.calls_of(WRAPPERS | ENGINES)):
        flag = view.ask.argument(call, _FLAG)
        if flag.state in _GIVEN and not _may_be_static(view, call) and not _is_chosen(view, flag.sources):
            places = [by for source, by in zip(flag.sources, flag.given_by, strict=True) if _is_told(view, ways, source, by)]
            if places:
                yield _finding(view, call, places)


def _may_be_static(view: View, call: int) -> bool:
    """With a static graph DDP neither walks the graph nor keeps the first buckets: the flag does nothing."""
    static = view.ask.argument(call, _STATIC)
    return static.state in _GIVEN and any(view.program.ask(one) != frozenset([FALSE]) for one in static.sources)


def _is_chosen(view: View, sources: tuple[int, ...]) -> bool:
    """Whether the function that wraps decides between True and False; what its callers decide each of them says for itself."""
    given = [view.program.module_of(one).plain(one & MASK)[0] == "param" for one in sources]
    return not all(given) and any(FALSE in view.program.ask(one) for one in sources)


def _is_told(view: View, ways: Ways, source: int, by: int) -> bool:
    """Whether a flag is True without a condition: one that is chosen, or that the user gives, was thought of."""
    if TRUE not in view.program.ask(source) or view.ask.meaning(source).flags or ways.case_of(by):
        return False
    return any(not way.case and _is_true(view, way.key) for way in ways.to(source, TRUE))


def _is_true(view: View, key: int) -> bool:
    return view.program.module_of(key).nodes[key & MASK] == ("const", True)


def _finding(view: View, call: int, places: list[int]) -> Finding:
    related = [Related(line_span(view, one), "the flag is set here") for one in places if one != call]
    fix = Fix("set find_unused_parameters=False once every parameter is known to get a gradient", (), Applicability.DISPLAY, _REASON)
    return view.finding(RULE, view.call_span(call), {}, related, claims=(Claim("stands-outside-tests"),), fix=fix)
