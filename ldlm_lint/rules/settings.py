"""The description of a set variable from every front end: its name, possible values and places.

A shell script, an ``os.environ`` assignment in Python and, later, a YAML list of variables become the same
`Setting`, so that a rule's decision is one pure function for all of them.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import NamedTuple, Protocol

from ldlm_lint.model import Confidence, Edit, Span


class Origin(enum.Enum):
    """The source of a value: literal, a default such as ``${X:-1800}``, or through another variable."""

    LITERAL = "literal"
    DEFAULT = "default"
    VARIABLE = "variable"


class Value(NamedTuple):
    """One value that a variable may have.

    ``span`` is the text to replace in order to change the value (None if that is not possible), ``quote`` the quotes
    for a replacement when the span includes them. A value that comes through another variable has its ``home``, the
    assignment with its text, and there ``home_value`` as its text (None: not one stretch).
    """

    text: str
    span: Span | None
    origin: Origin = Origin.LITERAL
    quote: str = ""
    home: Span | None = None
    home_value: Span | None = None

    def rewritten(self, text: str) -> Edit | None:
        """The edit that makes the value ``text``, None if it cannot be edited."""
        return None if self.span is None else Edit(self.span, f"{self.quote}{text}{self.quote}")


class Surroundings(NamedTuple):
    """The context of a setting in its file.

    ``scope`` names the branches, functions and commands around it, outermost first: of two settings one of whose scopes
    begins with the other, both can be active at once. ``conditional``: it is under a condition. ``debugging``: the
    condition, the function or the command mentions debugging. ``remark`` is the comment next to or above it.
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
    """The edit that assigns the same value to a second variable: ``before``, its name and ``after``, inserted at
    ``span``."""

    span: Span
    before: str
    after: str


class Setting(NamedTuple):
    """A variable that gets a value and reaches the environment of the training processes.

    ``values`` are all the values it may have, None when unknown; ``span`` is the whole ``NAME=value``. ``expanded``:
    the same file reads the name elsewhere, so it must remain set. ``used``: it is read for more than printing;
    ``needed``: a command there would fail without it. ``key`` is the place of the name (None if it cannot be renamed),
    ``written`` the value as written in the file, without a span where nothing can be written into it.
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
        """HIGH for one literal value, MEDIUM if a default or another variable decides."""
        known = self.values or ()
        literal = len(known) == 1 and known[0].origin is Origin.LITERAL
        return Confidence.HIGH if literal else Confidence.MEDIUM


class Removal(NamedTuple):
    """The removal of a setting from its file.

    ``complete`` is False if something must remain (a ``:`` in a block that would be empty); ``reason`` says why the
    removal may change more than the variable, empty if it cannot.
    """

    edits: tuple[Edit, ...]
    complete: bool = True
    reason: str = ""


class Editor(Protocol):
    """The interface of a front end that can remove settings."""

    def removals(self, groups: Mapping[Setting, str]) -> Mapping[Setting, Removal]:
        """The removals of the given settings, planned together.

        The value of each setting names its group: one group is applied as a whole, different groups may be applied
        alone. A setting that cannot be removed is absent from the result.
        """
