"""`dataloader-too-many-workers`: constants of any file, settings, defaults and counts of the node's CPUs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from ldlm_lint import tables
from ldlm_lint.checkers.by_program.amount_fixes import fewer_fix, shared_fix
from ldlm_lint.checkers.by_program.view import View
from ldlm_lint.checkers.by_program.written import bound_at, constant_at, written_argument
from ldlm_lint.concepts.loader_passes import LoaderPasses
from ldlm_lint.concepts.replicas import Replicas
from ldlm_lint.concepts.roles import Roles
from ldlm_lint.concepts.workers import Workers
from ldlm_lint.model import Confidence, Finding, Fix, Related, Span
from ldlm_lint.program.handles import Call, Expr
from ldlm_lint.program.modules import Module
from ldlm_lint.rules.data import DATALOADER_TOO_MANY_WORKERS, SHARE_CORES, WORKERS_LIMIT, fewer_workers
from ldlm_lint.vocabulary.loaders import LOADERS_OF_TORCH
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


def find(code: View) -> Iterator[Finding]:
    """All numbers of workers at the limit or above it, once where each is written."""
    seen: set[Span] = set()
    for call in code.calls(LOADERS_OF_TORCH):
        if code[Replicas].are_of_one_process(call.module):
            # One process loads for all GPUs of its node.
            continue
        limit = int(str(code.facts(call.module).get(WORKERS_LIMIT.name, WORKERS_LIMIT.default)))
        for amount in _amounts(code, call, limit):
            if amount.span not in seen and _may_matter(code, call, amount):
                seen.add(amount.span)
                yield _finding(code, call, amount, limit)


def _may_matter(code: View, call: Call, amount: _Amount) -> bool:
    """Whether a number is one of a training; that of all CPUs matters where several ranks share them."""
    if not code.trainings.belong_to(amount.span.path):
        return False
    return amount.number is not None or (code.trainings.run_on_many_ranks(amount.span.path) and _may_train(code, call))


def _may_train(code: View, call: Call) -> bool:
    """Whether a loader trains or its use is unknown: data preparation may use all CPUs."""
    passes = code[LoaderPasses].of(call)
    return not passes or any(code[Roles].trains(one.function.module) for one in passes) or code[LoaderPasses].trains(call) is not None


def _amounts(code: View, call: Call, limit: int) -> Iterator[_Amount]:
    """The numbers at the limit or above it that a loader may get, and the counts of the node's CPUs."""
    workers = call.argument("num_workers", _POSITION)
    for value, giver in zip(workers.values, workers.givers, strict=True):
        yield from _constants(code, call, value, giver, limit)
        for number, spot in code[Workers].settings_of(value):
            if number >= limit:
                yield _number(code, number, spot.function.module, spot.place, limit)
        for count in code[Workers].of_whole_node(value, limit):
            source = code.source(count.module)
            yield _Amount(None, source.slice(count.span), count.span, shared_fix(source, count.span, count.row))


def _constants(code: View, call: Call, value: Expr, giver: Expr, limit: int) -> Iterator[_Amount]:
    for number in value.may_be().constants:
        if type(number) is not int or number < limit:
            continue
        for origin in value.origins_of(number):
            home, place = origin.home, origin.place
            if not place and origin.expr == value and giver == call:
                home, place = call.module, _bound_at(code, call, value)
            if not place:
                home, place = giver.module, giver.place
            yield _number(code, number, home, place, limit)


def _bound_at(code: View, call: Call, value: Expr) -> int:
    """Where the name that is at a call is bound to a constant; 0 if the constant itself is there."""
    written = written_argument(code, call.key, "num_workers", _POSITION)
    return bound_at(value.module, value.key - value.module.base, written.text) if written is not None and written.is_name else 0


def _number(code: View, number: int, home: Module, place: int, limit: int) -> _Amount:
    span = constant_at(code, home, place, number)
    fix = fewer_fix(span, limit) if span is not None else None
    return _Amount(number, str(number), span or code.line_span(home, place), fix)


def _finding(code: View, call: Call, amount: _Amount, limit: int) -> Finding:
    taker = call.spot.line_span
    related = (Related(taker, "this DataLoader takes the number"),) if not _meet(taker, amount.span) else ()
    advice = SHARE_CORES if amount.number is None else fewer_workers(limit)
    shown = quoted(amount.text) if amount.number is None else amount.text
    confidence = Confidence.MEDIUM if amount.number is None else Confidence.HIGH
    return code.finding(RULE, amount.span, {"workers": shown, "advice": advice}, related, fix=amount.fix, confidence=confidence)


def _meet(one: Span, other: Span) -> bool:
    return one.path == other.path and one.start < other.end and other.start < one.end
