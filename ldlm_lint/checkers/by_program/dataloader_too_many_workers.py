"""dataloader-too-many-workers where the number is a constant of another file, bound with others, or handed on."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ldlm_lint import tables
from ldlm_lint.checkers.by_program.calls import line_span, place_span
from ldlm_lint.checkers.by_program.view import View
from ldlm_lint.checkers.by_program.ways import Ways
from ldlm_lint.model import Claim, Finding, Related, Span
from ldlm_lint.program.atoms import MASK
from ldlm_lint.program.queries import Argument
from ldlm_lint.python.slots import LOADERS
from ldlm_lint.rules.data import DATALOADER_TOO_MANY_WORKERS, WORKERS_LIMIT, fewer_workers

RULE = DATALOADER_TOO_MANY_WORKERS
WORDS = (b"DataLoader", b"workers", b"WORKERS")
_POSITION = tables.positional("torch.utils.data.DataLoader").index("num_workers")


def find(view: View) -> Iterator[Finding]:
    """All numbers of workers at the limit or above it, once where each is written."""
    ways = Ways(view)
    seen: set[Span] = set()
    for call in dict.fromkeys(call for call, _ in view.ask.calls_of(LOADERS)):
        path = view.path(view.program.module_of(call))
        limit = view.context.facts_of(path).get(WORKERS_LIMIT.name, WORKERS_LIMIT.default)
        workers = view.ask.argument(call, "num_workers", _POSITION)
        for number, span in _numbers(view, ways, call, workers):
            if isinstance(limit, int) and number >= limit and span not in seen:
                seen.add(span)
                yield _finding(view, call, number, span, limit)


def _numbers(view: View, ways: Ways, call: int, workers: Argument) -> Iterator[tuple[int, Span]]:
    """The whole numbers that a loader may get, and where each is written."""
    atoms = view.program.atoms
    for source, by in zip(workers.sources, workers.given_by, strict=True):
        for fields in atoms.kinds(view.program.ask(source), "k"):
            if fields[1].__class__ is not int:
                continue
            for way in ways.to(source, atoms.constant(fields[1])):
                place = way.place or (_bound_at(view, ways, call, source) if way.key == source and by == call else 0)
                home = way.home if way.place else view.program.module_of(call)
                yield fields[1], place_span(view, home, place) if place else _span_of(view, by)


def _span_of(view: View, by: int) -> Span:
    """The call that gives a number, or the dictionary that holds it."""
    module = view.program.module_of(by)
    return view.call_span(by) if by & MASK in module.table.sites else view.span(module, module.table.places[by & MASK])


def _bound_at(view: View, ways: Ways, call: int, source: int) -> int:
    """Where the name that stands at a call is bound to a constant; 0 where the constant itself stands there."""
    return ways.bound_at(source, name) if (name := _name_at(view, call)) else 0


def _name_at(view: View, call: int) -> str:
    module = view.program.module_of(call)
    text = view.call_text(call)
    try:
        tree = ast.parse(f"({text}\n)", mode="eval").body
    except (SyntaxError, ValueError):
        return ""
    if not isinstance(tree, ast.Call) or not module.table.sites.get(call & MASK):
        return ""
    given = [one.value for one in tree.keywords if one.arg == "num_workers"] or tree.args[_POSITION : _POSITION + 1]
    return given[0].id if given and isinstance(given[0], ast.Name) else ""


def _finding(view: View, call: int, number: int, span: Span, limit: int) -> Finding:
    taker = line_span(view, call)
    related = (Related(taker, "this DataLoader takes the number"),) if not _meet(taker, span) else ()
    args = {"workers": str(number), "advice": fewer_workers(limit)}
    return view.finding(RULE, span, args, related, claims=(Claim("belongs-to-training"),))


def _meet(one: Span, other: Span) -> bool:
    return one.path == other.path and one.start < other.end and other.start < one.end
