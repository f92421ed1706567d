"""Where code runs: its function, the conditions and the loops around it, and what happens to values there."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from ldlm_lint.code.table import line_of

_LEAVES = ("raise", "return", "break", "continue")

if TYPE_CHECKING:
    from ldlm_lint.model import Span
    from ldlm_lint.program.handles import Expr, Function, Guard, Loop, Try


class Spot(NamedTuple):
    """Where something runs: a function, the innermost condition and loop around it there, and the place in the text."""

    function: Function
    guard: Guard | None
    loop: Loop | None
    place: int
    """For ``program/`` and `Codebase.span`."""

    @property
    def guards(self) -> list[Guard]:
        """The conditions in its function, innermost first."""
        return list(self.guard.around) if self.guard is not None else []

    @property
    def loops(self) -> list[Loop]:
        """The loops in its function, innermost first."""
        return list(self.loop.around) if self.loop is not None else []

    def is_beside(self, other: Spot) -> bool:
        """Whether two places are in one function, under the same conditions and in the same loop."""
        return (self.function, self.guard, self.loop) == (other.function, other.guard, other.loop)

    def excludes(self, other: Spot) -> bool:
        """Whether conditions let only one of two places run, in one run of the code around both."""
        mine, its = self.guards, other.guards
        known = [fact for one in mine if one not in its for fact in one.facts]
        return any(fact.contradicts(one) for fact in known for guard in its if guard not in mine for one in guard.facts)

    def leads_to(self, other: Spot) -> bool:
        """Whether control flows from it to another place, further down in the same function."""
        below = other.guards
        own = [guard for guard in self.guards if guard not in below]
        return not any(guard.ends in _LEAVES or guard.kind in ("except", "case") for guard in own) and not self.excludes(other)

    @property
    def line(self) -> int:
        """The line, from 1."""
        return line_of(self.place)

    @property
    def line_span(self) -> Span:
        """The whole line."""
        return self.function.code.line_span(self.function.module, self.place)

    @property
    def tries(self) -> list[Try]:
        """The blocks around it in its function whose exceptions an ``except`` catches, innermost first."""
        return self.function.tries_at(self.place)

    def is_under(self, guard: Guard) -> bool:
        """Whether a condition is around it."""
        return self.guard is not None and guard in self.guard.around

    def is_in(self, loop: Loop) -> bool:
        """Whether a loop is around it."""
        return self.loop is not None and loop in self.loop.around


class Event(NamedTuple):
    """Something that happens to a value: it is tested, formatted, bound, set, returned, see `ldlm_lint.code.table.Event`."""

    kind: str
    expr: Expr
    spot: Spot
    name: str = ""
    """The name that it is bound to, or the attribute that it is set as."""
    added: Expr | None = None
    """What ``x += added`` adds."""

    @property
    def is_specified(self) -> bool:
        """Whether a format specification asks for it: a tensor then gives its number, not its text."""
        return self.kind == "format" and bool(self.name)

    @property
    def span(self) -> Span:
        """From where it happens to the end of the expression that begins there."""
        return self.expr.code.span(self.expr.module, self.spot.place, 0)


class Write(NamedTuple):
    """An attribute that is set: ``base.name = value``."""

    base: Expr
    name: str
    value: Expr
    spot: Spot


__all__ = ["Event", "Spot", "Write"]
