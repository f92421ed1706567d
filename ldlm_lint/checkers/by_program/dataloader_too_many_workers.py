"""`dataloader-too-many-workers`: constants of any file, settings, defaults and counts of the node's CPUs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from ldlm_lint import tables
from ldlm_lint.checkers.by_program.amount_fixes import fewer_fix, shared_fix
from ldlm_lint.checkers.by_program.calls import line_span, place_span
from ldlm_lint.checkers.by_program.view import View
from ldlm_lint.checkers.by_program.written import bound_at, constant_at, written_argument
from ldlm_lint.concepts.replicas import Replicas
from ldlm_lint.concepts.worker_amounts import WorkerAmounts
from ldlm_lint.model import Confidence, Finding, Fix, Related, Span
from ldlm_lint.program.atoms import MASK
from ldlm_lint.program.handles import Expr
from ldlm_lint.program.modules import Module
from ldlm_lint.program.queries import Argument
from ldlm_lint.python.slots import LOADERS
from ldlm_lint.rules.data import DATALOADER_TOO_MANY_WORKERS, SHARE_CORES, WORKERS_LIMIT, fewer_workers
from ldlm_lint.wording import quoted

RULE = DATALOADER_TOO_MANY_WORKERS
WORDS = (b"DataLoader", b"workers", b"WORKERS")
_POSITION = tables.positional("torch.utils.data.DataLoader").index("num_workers")


class _Amount(NamedTuple):
    """A number of workers, or None for the CPUs of the node: its text, its place, and its fix."""

    number: int | None
    text: str
    span: Span
    fix: Fix | None


def find(view: View) -> Iterator[Finding]:
    """All numbers of workers at the limit or above it, once where each is written."""
    looked = _Looked(view)
    seen: set[Span] = set()
    for call in dict.fromkeys(call for call, _ in view.ask.calls_of(LOADERS)):
        module = view.program.module_of(call)
        if view[Replicas].are_of_one_process(module):
            # One process loads for all GPUs of its node.
            continue
        path = view.path(module)
        limit = view.context.facts_of(path).get(WORKERS_LIMIT.name, WORKERS_LIMIT.default)
        workers = view.ask.argument(call, "num_workers", _POSITION)
        for amount in looked.amounts(call, workers, int(str(limit))):
            if amount.span not in seen and _may_matter(view, call, amount):
                seen.add(amount.span)
                yield _finding(view, call, amount, int(str(limit)))


def _may_matter(view: View, call: int, amount: _Amount) -> bool:
    """Whether a number is one of a training; that of all CPUs matters where several ranks share them."""
    if not view.trainings.belong_to(amount.span.path):
        return False
    return amount.number is not None or (view.trainings.run_on_many_ranks(amount.span.path) and _may_train(view, call))


def _may_train(view: View, call: int) -> bool:
    """Whether a loader trains or its use is unknown: data preparation may use all CPUs."""
    passes = view.loaders.concept.passes(call)
    trains = view.context.project.training_files
    return not passes or any(view.path(one.module) in trains for one in passes) or view.loaders.concept.trains(call) is not None


class _Looked:
    """Looks for the numbers of the loaders of a project."""

    def __init__(self, view: View) -> None:
        self.view = view
        self.written = WorkerAmounts(view.ask)

    def amounts(self, call: int, workers: Argument, limit: int) -> Iterator[_Amount]:
        """The numbers at the limit or above it that a loader may get, and the counts of the node's CPUs."""
        for source, by in zip(workers.sources, workers.given_by, strict=True):
            yield from self._constants(call, source, by, limit)
            for one in self.written.written_for(source):
                if one.number >= limit:
                    yield self._number(one.number, one.home, one.place, limit)
            for key in self.written.whole_nodes(source, limit):
                yield self._whole_node(key)

    def _constants(self, call: int, source: int, by: int, limit: int) -> Iterator[_Amount]:
        atoms = self.view.program.atoms
        for fields in atoms.kinds(self.view.program.ask(source), "k"):
            if fields[1].__class__ is not int or fields[1] < limit:
                continue
            for way in Expr(self.view, source).origins_of(fields[1]):
                own = way.expr.key == source and by == call
                place = way.place or (self._bound_at(call, source) if own else 0)
                home = way.home if way.place else self.view.program.module_of(call)
                if not place:
                    home, place = self.view.program.module_of(by), self._place_of(by)
                yield self._number(fields[1], home, place, limit)

    def _place_of(self, by: int) -> int:
        """The beginning of the call that passes a number, or of the dictionary with it."""
        module = self.view.program.module_of(by)
        return module.table.sites[by & MASK].place if by & MASK in module.table.sites else module.table.places[by & MASK]

    def _bound_at(self, call: int, source: int) -> int:
        """Where the name that is at a call is bound to a constant; 0 if the constant itself is there."""
        written = written_argument(self.view, call, "num_workers", _POSITION)
        home = self.view.program.module_of(source)
        return bound_at(home, source & MASK, written.text) if written is not None and written.is_name else 0

    def _number(self, number: int, home: Module, place: int, limit: int) -> _Amount:
        span = constant_at(self.view, home, place, number)
        fix = fewer_fix(span, limit) if span is not None else None
        return _Amount(number, str(number), span or place_span(self.view, home, place), fix)

    def _whole_node(self, key: int) -> _Amount:
        module = self.view.program.module_of(key)
        span = self.view.expression_span(key)
        text = self.view.source(module).slice(span)
        return _Amount(None, text, span, shared_fix(self.view.source(module), span, module.nodes[key & MASK]))


def _finding(view: View, call: int, amount: _Amount, limit: int) -> Finding:
    taker = line_span(view, call)
    related = (Related(taker, "this DataLoader takes the number"),) if not _meet(taker, amount.span) else ()
    advice = SHARE_CORES if amount.number is None else fewer_workers(limit)
    shown = quoted(amount.text) if amount.number is None else amount.text
    confidence = Confidence.MEDIUM if amount.number is None else Confidence.HIGH
    args = {"workers": shown, "advice": advice}
    return view.finding(RULE, amount.span, args, related, fix=amount.fix, confidence=confidence)


def _meet(one: Span, other: Span) -> bool:
    return one.path == other.path and one.start < other.end and other.start < one.end
