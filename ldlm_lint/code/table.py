"""The form of a table: expressions as numbers, scopes, loops and guards, in tuples and lists that `marshal` can keep.

*Expressions* (`Table.nodes`) are tuples whose first field is the kind; other expressions are in them by number, and
number 0 stands for a missing expression. They are in the order in which Python evaluates them. Names are resolved: a
read of a local name is the number of what it holds there (SSA form after Braun et al. 2013), so that ``loss =
loss.item()`` separates by itself.

====================================  ===========================================================================================
``("none",)``                         nothing, or something that has no value
``("const", value)``                  a number, string, boolean or None; bytes, complex numbers and ``...`` are the empty string
``("free", scope, name)``             a name that the scope does not bind before: of an outer scope, the module or Python itself
``("param", scope, name)``            a parameter; ``("vararg", scope)``, ``("kwarg", scope)``: ``*args`` and ``**kwargs``
``("attr", base, name)``              ``base.name``
``("call", function, args, kws)``     arguments by number, keywords as (name, number); name None is ``**``; see `Table.sites`
``("star", value)``                   ``*value`` among arguments or elements
``("item", base, key)``               ``base[key]``; ``("slice", lower, upper, step)`` may be a key
``("seq", kind, elements)``           a ``Tuple``, ``List`` or ``Set``
``("map", keys, values)``             a dictionary; key 0 is ``**``
``("op", name, left, right)``         an operation by the name of its class in `ast` (``Add``); ``("un", name, value)``, ``("not", value)``
``("cmp", names, left, rights)``      a chain of comparisons
``("bool", name, values)``            ``And``, ``Or``
``("choice", test, then, other)``     ``then if test else other``
``("comp", element, kind)``           a comprehension that is not a dictionary; ``("dcomp", key, value)`` is one
``("fstr", parts, plain)``            an f-string; ``plain``: without formats and conversions
``("def", scope)``, ``("class", scope)``  a function or class that is defined here
``("elem", iterable)``                what a loop takes from an iterable
``("part", value, index)``            what an unpacking takes; -1 where a star is before it
``("enter", value)``                  what ``with value as`` binds
``("upd", base, key, value)``         a container after ``base[key] = value``
``("imp", module, level)``            ``import module``; ``("impf", module, name, level)``: ``from module import name``
``("phi", numbers)``                  one of several, by the way that was taken; ``("copy", number)``: another one's value
``("decl",)``                         a name that is only annotated
====================================  ===========================================================================================

*Places* are numbers, too: ``line << 20 | column`` with the line from 1 and the column in UTF-8 bytes from 0, see
`line_of`.
"""

from __future__ import annotations

from collections.abc import Iterator, MutableSequence, Sequence
from typing import Any, NamedTuple

Node = tuple[Any, ...]
"""An expression, see the module's table."""
COLUMNS = 20
_COLUMN = (1 << COLUMNS) - 1


def line_of(place: int) -> int:
    """The line of a place, from 1."""
    return place >> COLUMNS


def column_of(place: int) -> int:
    """The column of a place, in UTF-8 bytes from 0."""
    return place & _COLUMN


class Site(NamedTuple):
    """The place of a call: its scope, innermost loop and guard (-1: none), its start and end."""

    scope: int
    loop: int
    guard: int
    place: int
    end: int


class Loop(NamedTuple):
    """A loop: ``for``, ``while`` or ``comp``; its iterable or test; the loop and the guard around it."""

    kind: str
    value: int
    parent: int
    scope: int
    guard: int
    place: int


class Guard(NamedTuple):
    """The conditions on a place, innermost first by ``parent``.

    ``kind`` is ``if``, ``rest`` (of a block, after an ``if`` that leaves it), ``with``, ``except`` or ``case``;
    ``holds`` is the outcome of the test that leads here, None if that does not apply; the test of an ``except`` is its
    exception type. ``ends`` says how the block that the guard begins ends: "", ``raise``, ``return``, ``break`` or
    ``continue``.
    """

    kind: str
    test: int
    holds: bool | None
    parent: int
    place: int
    ends: str


class Try(NamedTuple):
    """The code whose exceptions an ``except`` catches: its scope, where it begins (``try``) and ends; its handlers, which are guards."""

    scope: int
    begin: int
    end: int
    handlers: tuple[int, ...]


def guards_above(guards: Sequence[Guard], guard: int) -> Iterator[int]:
    """A guard and all enclosing ones, innermost first; nothing for -1."""
    while guard >= 0:
        yield guard
        guard = guards[guard].parent


def loops_above(loops: Sequence[Loop], loop: int) -> Iterator[int]:
    """A loop and all enclosing ones of its function, innermost first; nothing for -1."""
    while loop >= 0:
        yield loop
        loop = loops[loop].parent


Event = tuple[str, int, int, int, int, Any]
"""Something that happens to a value: kind, node, loop, guard, place, and what the kind needs besides.

``test``: its truth is asked for; ``format`` (besides: whether a format specification asks for it); ``item``: ``x[key]`` is read;
``store``: ``x[key] = v`` (the ``upd`` row); ``add``: ``x += v`` (besides: the added value); ``bind`` (the name); ``write`` (the name
of the attribute that is set, see `Scope.writes`); ``return``; ``yield``; ``raise``; ``delete`` (the name, if it is one).
"""


class Scope:
    """A module, function, lambda or class: its parameters, bindings, calls and results."""

    __slots__ = (
        "annotations",
        "bases",
        "bindings",
        "calls",
        "decorators",
        "defaults",
        "end",
        "events",
        "globals",
        "keywords",
        "kind",
        "kwarg",
        "name",
        "parameters",
        "params",
        "parent",
        "place",
        "positional",
        "returned",
        "returns",
        "vararg",
        "writes",
        "yields",
    )

    def __init__(self, kind: str, name: str, parent: int, place: int, end: int) -> None:
        self.kind, self.name, self.parent, self.place, self.end = kind, name, parent, place, end
        self.params: tuple[str, ...] = ()
        """The names of parameters without stars; the first ``positional`` may be given by position."""
        self.positional = 0
        self.vararg = ""
        self.kwarg = ""
        self.parameters: dict[str, int] = {}
        """The node of each parameter."""
        self.defaults: dict[str, int] = {}
        self.annotations: dict[str, str] = {}
        """Of parameters and annotated names: the last name of the type, without ``Optional``."""
        self.returned = ""
        """The last name of the annotation of what is returned."""
        self.decorators: tuple[int, ...] = ()
        self.bases: tuple[int, ...] = ()
        self.keywords: tuple[tuple[str, int], ...] = ()
        """Those of a class statement."""
        self.bindings: dict[str, list[int]] = {}
        """What each name is bound to, in order; ``*`` for star imports."""
        self.calls: list[int] = []
        self.events: list[Event] = []
        self.returns: list[tuple[int, int]] = []
        """What is returned, and the guard that the return is under."""
        self.yields: list[int] = []
        self.writes: list[tuple[int, str, int, int]] = []
        """Attributes that are set: base, name, value, place."""
        self.globals: tuple[str, ...] = ()


class Table:
    """The facts of a file: see the module docstring for its expressions."""

    __slots__ = (
        "aliases",
        "decorations",
        "ends",
        "guards",
        "imports",
        "loops",
        "maps",
        "named",
        "nodes",
        "places",
        "scopes",
        "sites",
        "tries",
        "updates",
    )

    def __init__(self) -> None:
        self.nodes: list[Node] = [("none",)]
        self.places: MutableSequence[int] = [0]
        """Where each expression begins; 0 for constants and for what is written nowhere."""
        self.ends: MutableSequence[int] = [0]
        """Where each expression ends, from the beginning of its first line: small numbers, see `end`."""
        self.scopes: list[Scope] = []
        self.loops: list[Loop] = []
        self.guards: list[Guard] = []
        self.sites: dict[int, Site] = {}
        """The sites of calls, by their nodes, in the order of evaluation."""
        self.named: dict[str, list[int]] = {}
        """The calls by the last name of the function; ``()name`` where what a call or an item gives is called."""
        self.imports: list[tuple[str, str, int, int]] = []
        """Module, name or "", level and place of each import."""
        self.aliases: list[tuple[str, str]] = []
        """``from m import name as other``: name and other."""
        self.decorations: list[tuple[int, int, int]] = []
        """A decorator as a call: the call, the decorator, what it decorates."""
        self.updates: list[int] = []
        """The ``upd`` expressions."""
        self.maps: list[int] = []
        """The ``map`` expressions."""
        self.tries: list[Try] = []
        """Those with handlers, outer ones first."""

    def end(self, number: int) -> int:
        """The place after an expression; 0 for constants and for what is written nowhere, such as a call that others make."""
        if number >= len(self.ends):
            return 0
        return (self.places[number] >> COLUMNS << COLUMNS) + self.ends[number]

    def longest_end(self, place: int) -> int:
        """The place after the longest expression that begins at a place; 0 if only a name or a constant does."""
        return max((self.end(number) for number, begin in enumerate(self.places) if begin == place), default=0)
