"""Accumulation steps that are the quotient of a batch size and a number of ranks, rounded down, and whose remainder no
code looks at."""

from __future__ import annotations

import operator
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from ldlm_lint.code.tokens import depths_of, tokens_of
from ldlm_lint.concepts.micro_batches import MicroBatches
from ldlm_lint.program.codebase import Concept
from ldlm_lint.program.handles import Call, Expr
from ldlm_lint.program.spots import Spot
from ldlm_lint.vocabulary.batch_sizes import is_accumulation, is_world_size

if TYPE_CHECKING:
    from ldlm_lint.model import Span

_NAME = re.compile(r"[A-Za-z_]\w*")
_DIVISIONS = {"FloorDiv": "//", "Div": "/"}
_COMPUTES = {"FloorDiv": operator.floordiv, "Div": operator.truediv, "Mult": operator.mul}


@dataclass(frozen=True)
class Quotient:
    """A quotient under its name, where that is bound: the division, and what the whole name gets."""

    name: str
    division: Expr
    value: Expr
    spot: Spot

    @property
    def dividend(self) -> Expr:
        """What is divided."""
        return self.division.operands[0]

    @property
    def divisor(self) -> Expr:
        """What it is divided by."""
        return self.division.operands[1]

    @property
    def dividend_text(self) -> str:
        """What is divided, as written."""
        return self._texts[0]

    @property
    def divisor_text(self) -> str:
        """What it is divided by, as written."""
        return self._texts[1]

    @property
    def span(self) -> Span:
        """The assignment."""
        code = self.division.code
        begin = code.span(self.spot.function.module, self.spot.place, 0)
        return begin._replace(end=max(begin.end, self.value.span.end)) if self.value.place else begin

    @property
    def _texts(self) -> tuple[str, str]:
        """The texts of both operands: those of names are written elsewhere, too."""
        text, sign = self.division.text, _DIVISIONS[self.division.operator]
        tokens = tokens_of(text) or []
        signs = [token for token, depth in zip(tokens, depths_of(tokens), strict=True) if not depth and token.text in (sign, f"{sign}=")]
        if not signs:
            # ``steps //= ranks``
            return self.name, self.divisor.text
        return _bare(text[: signs[-1].start]), _bare(text[signs[-1].end :])


class RoundedSteps(Concept):
    """Answers for the quotients of a codebase."""

    @cached_property
    def unchecked(self) -> list[Quotient]:
        """The quotients that are steps of several ranks, without a look at the remainder."""
        return [one for one in self._quotients() if self._is_of_ranks(one) and self._may_drift(one) and self._holds_steps(one)]

    def _quotients(self) -> Iterator[Quotient]:
        for function in self.code.functions:
            for event in function.events_of("bind", "store", "write"):
                key = event.expr.index.constant if event.kind == "store" and event.expr.index is not None else event.name
                value = event.expr.put if event.kind == "store" else event.expr
                if isinstance(key, str) and value is not None:
                    division = self._division(value)
                    if division is not None:
                        yield Quotient(key, division, value, event.spot)

    def _division(self, value: Expr) -> Expr | None:
        """The floor division that a value is, also inside ``max(1, …)``, or the quotient inside ``int(…)``."""
        if value.operator == "FloorDiv":
            return self._with_ranks(value)
        if not isinstance(value, Call) or value.receiver is not None or value.called_name not in ("max", "int"):
            return None
        if value.called_name == "int" and value.positional and value.positional[0].operator == "Div":
            return value.positional[0]
        return next((found for one in value.positional if (found := self._division(one)) is not None), None)

    def _with_ranks(self, division: Expr) -> Expr:
        """``a // b // world``: the last division by the number of ranks, the first one if none is."""
        at = division
        while not self._counts_ranks(at.operands[1]) and at.operands[0].operator == "FloorDiv" and not at.operands[0].names:
            at = at.operands[0]
        return at

    def _is_of_ranks(self, one: Quotient) -> bool:
        return any(map(self._divides_by_ranks, (one.division, *_divisions(one.dividend))))

    def _divides_by_ranks(self, division: Expr) -> bool:
        by = division.operands[1]
        # A number that a name holds does not know the name.
        named = _NAME.findall(division.text) if by.kind == "const" else []
        return any(map(is_world_size, named)) or self._counts_ranks(by)

    def _counts_ranks(self, expr: Expr) -> bool:
        """Whether a number of ranks, GPUs or nodes is in an expression, or in the values of its variables."""
        return any(map(is_world_size, _names_behind(expr))) or self.code[MicroBatches].counts_ranks(expr)

    def _holds_steps(self, one: Quotient) -> bool:
        """Whether a quotient is the number of accumulation steps, by its name or its use."""
        if is_accumulation(one.name) or one.division in self._deciding:
            return True
        owner = one.spot.function.owner
        reads = [read for read in owner.reads if read.name == one.name] if owner is not None else []
        return any(_are_steps(use, read) for read in (one.value, *reads) for use in read.users)

    @cached_property
    def _deciding(self) -> set[Expr]:
        return set(self.code[MicroBatches].quotients())

    def _may_drift(self, one: Quotient) -> bool:
        """Whether a remainder may be left: not for one that is rounded up or checked, for numbers that divide, nor for what a
        framework reports, which was checked when it was set."""
        left = one.dividend
        is_named = bool(left.names)
        if not is_named and (left.kind == "un" or left.operator in ("Add", "Sub") or (isinstance(left, Call) and left.receiver is None)):
            return False
        return not _leaves_nothing(left, one.divisor) and not self._is_checked(one)

    def _is_checked(self, one: Quotient) -> bool:
        """Whether the file computes a remainder of the operands, or compares their product with the result."""
        module, operands = one.division.module, _names_behind(one.dividend) | _names_behind(one.divisor)
        if any(operands & _names_in(call) for call in self.code.calls_in(module, "divmod")):
            return True
        for other in self.code.expressions_in(module, "op"):
            if other.operator == "Mod" and not isinstance(other.operands[0].constant, str) and operands & _names_in(other):
                return True
        for other in self.code.expressions_in(module, "cmp"):
            names = _names_in(other) if other.operator in ("Eq", "NotEq") else set()
            if one.name in names and len(operands & names) > 1:
                return True
        return False


def _are_steps(use: Expr, value: Expr) -> bool:
    """Whether a use passes a value on as accumulation steps, or counts the micro-batches of a step."""
    if isinstance(use, Call):
        if any(is_accumulation(name) for name, given in use.keywords if given == value):
            return True
        looped = (loop for loop in use.function.loops if loop.value == use)
        return use.called_name == "range" and any(call.called_name == "backward" for loop in looped for call in loop.calls)
    if use.kind == "upd":
        return use.put == value and use.index is not None and is_accumulation(str(use.index.constant))
    if use.kind == "map":
        pairs = zip(use.operands[: len(use.operands) // 2], use.operands[len(use.operands) // 2 :], strict=True)
        return any(given == value and is_accumulation(str(key.constant)) for key, given in pairs)
    return use.kind == "copy" and any(map(is_accumulation, use.names))


def _own_names(at: Expr) -> set[str]:
    """The names of an expression itself: its variables, its last name, its key, and the environment variable that it reads."""
    names = {at.name, *at.names, at.called_name if isinstance(at, Call) else ""}
    key = at.index.constant if at.index is not None else at.positional[0].constant if isinstance(at, Call) and at.positional else ""
    return {*names, key if isinstance(key, str) else ""} - {"", "self", "cls"}


def _names_in(expr: Expr) -> set[str]:
    """The names that are written in an expression."""
    found, todo = set[str](), [*expr.operands]
    # The ways of names meet again: without this there are as many walks as ways.
    seen = set(todo)
    while todo:
        at = todo.pop()
        found |= _own_names(at)
        new = [one for one in (at.operands if not at.names else []) if one not in seen]
        seen.update(new)
        todo += new
    return found


def _names_behind(expr: Expr) -> set[str]:
    """The names in an expression, and in the values of its variables."""
    found, seen, todo = set[str](), set[Expr](), [expr]
    while todo:
        at = todo.pop()
        seen.add(at)
        # A number that a name holds does not know the name.
        found |= _own_names(at) | set(_NAME.findall(at.text) if at.kind == "op" else ())
        todo += [one for one in (*at.operands, *(at.bound_outside if len(at.bound_outside) == 1 else [])) if one not in seen]
    return found


def _divisions(expr: Expr) -> Iterator[Expr]:
    """The divisions that a number is the result of, the last one first."""
    at, seen = expr.unnamed, set[Expr]()
    while at not in seen:
        seen.add(at)
        if at.operator in _DIVISIONS:
            yield at
            at = at.operands[0].unnamed
        elif isinstance(at, Call) and at.called_name == "int" and len(at.positional) == 1:
            at = at.positional[0].unnamed
        elif len(at.bound_outside) == 1:
            at = at.bound_outside[0].unnamed


def _leaves_nothing(left: Expr, right: Expr) -> bool:
    """Whether a division, and those behind its left side, have only literal numbers and no remainder."""
    for one, divisor in ((left, right), *((at.operands[0], at.operands[1]) for at in _divisions(left))):
        number, by = _number(one), _number(divisor)
        if number is None or by is None or by <= 0 or number % by:
            return False
    return True


def _number(expr: Expr) -> float | None:
    """A number that is written out, or the result of some."""
    at = expr.unnamed
    if type(at.constant) in (int, float):
        return at.constant  # type: ignore[return-value]
    parts = [_number(one) for one in at.operands] if at.operator in _COMPUTES else []
    if len(parts) != 2 or parts[0] is None or not parts[1]:
        return None
    return float(_COMPUTES[at.operator](parts[0], parts[1]))


def _bare(text: str) -> str:
    """A text without blanks and parentheses around it."""
    text = text.strip()
    tokens = tokens_of(text) or []
    is_whole = text.startswith("(") and text.endswith(")") and 0 not in depths_of(tokens)[1:-1]
    return " ".join(text[1:-1].split()) if is_whole else " ".join(text.split())


__all__ = ["Quotient", "RoundedSteps"]
