"""What every front end says to a rule about a variable that is set: its name, possible values and places.

A shell script, an ``os.environ`` assignment in Python and, later, a YAML list of variables become the same
`Setting`, so that a rule's decision is one pure function for all of them.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import NamedTuple, Protocol

from ldlm_lint.model import Confidence, Edit, Span


class Origin(enum.Enum):
    """How a value is known: written there, a default such as ``${X:-1800}``, or through another variable."""

    LITERAL = "literal"
    DEFAULT = "default"
    VARIABLE = "variable"


class Value(NamedTuple):
    """One value that a variable may have.

    ``span`` is the text to replace in order to change the value (None where that is not possible), ``quote``
    what a replacement is wrapped in when the span includes the quotes. A value that comes through another variable
    has its ``home``, the assignment that spells it, and there ``home_value`` as its text (None: not one stretch).
    """

    text: str
    span: Span | None
    origin: Origin = Origin.LITERAL
    quote: str = ""
    home: Span | None = None
    home_value: Span | None = None

    def rewritten(self, text: str) -> Edit | None:
        """The edit that makes the value ``text``, None where it cannot be edited."""
        return None if self.span is None else Edit(self.span, f"{self.quote}{text}{self.quote}")


class Surroundings(NamedTuple):
    """Where in its file a setting stands.

    ``scope`` names the branches, functions and commands around it, outermost first: of two settings one of whose
    scopes begins with the other, both can be in force at once. ``conditional``: a condition decides whether it is
    made at all. ``debugging``: the condition, the function or the command speaks of debugging. ``remark`` is the
    comment beside or above it.
    """

    scope: tuple[int, ...] = ()
    conditional: bool = False
    debugging: bool = False
    remark: str = ""

    def shared_with(self, other: Surroundings) -> bool:
        """Whether a process may see both settings."""
        shorter = min(len(self.scope), len(other.scope))
        return self.scope[:shorter] == other.scope[:shorter]


class Twin(NamedTuple):
    """How the same value is given to a second variable: ``before``, its name and ``after``, inserted at ``span``."""

    span: Span
    before: str
    after: str


class Setting(NamedTuple):
    """A variable that gets a value and reaches the environment of the training processes.

    ``values`` are all the values it may have, None when unknown; ``span`` is the whole ``NAME=value``.
    ``expanded``: the same file reads the name elsewhere, so that it must stay set. ``used``: it reads it to do
    something other than to print it; ``needed``: a command there would fail without it. ``key`` is the place of the name (None where it cannot be renamed), ``written``
    the value as the file spells it, without a span where nothing can be written into it.
    """

    name: str
    values: tuple[Value, ...] | None
    span: Span
    expanded: bool = False
    used: bool = False
    needed: bool = False
    key: Value | None = None
    written: Value | None = None
    twin: Twin | None = None
    place: Surroundings = Surroundings()

    @property
    def confidence(self) -> Confidence:
        """HIGH for one literal value, MEDIUM where a default or another variable decides."""
        known = self.values or ()
        literal = len(known) == 1 and known[0].origin is Origin.LITERAL
        return Confidence.HIGH if literal else Confidence.MEDIUM


class Removal(NamedTuple):
    """How a setting can be taken out of its file.

    ``complete`` is False where something had to stay in its place (a ``:`` in a block that would be empty);
    ``reason`` says why the removal may change more than the variable, empty where it cannot.
    """

    edits: tuple[Edit, ...]
    complete: bool = True
    reason: str = ""


class Editor(Protocol):
    """What a front end that can remove settings offers."""

    def removals(self, groups: Mapping[Setting, str]) -> Mapping[Setting, Removal]:
        """The removals of the given settings, planned together.

        The value of each setting names its group: one group is applied as a whole, different groups may be
        applied alone. A setting that cannot be removed is absent from the answer.
        """
