"""The names of files as patterns: texts in which ``*`` stands for an unknown or counting part."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Sequence
from itertools import product
from typing import TYPE_CHECKING

from ldlm_lint.patterns import lazily
from ldlm_lint.program.atoms import MASK

if TYPE_CHECKING:
    from ldlm_lint.program import Program
    from ldlm_lint.program.modules import Module

OF_PATHS = frozenset({"str", "Path", "PurePath", "fspath", "abspath", "expanduser", "realpath", "normpath"})
"""Functions and classes that make a path of a path."""
JOINS = frozenset({"join", "joinpath"})
_FIELD = lazily(r"\{[^{}]*\}|%[-+ #0]*\d*(?:\.\d+)?[diouxXeEfFgGcrs]")
_STARS = re.compile(r"\*{2,}")
_STEPS = 12
_MOST = 8
"""Names that one path may be; what may be more is anything."""
_LONGEST = 300


class PathPatterns:
    """The patterns of the paths of a program."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self._known: dict[int, frozenset[str]] = {}

    def of(self, key: int, steps: int = 0) -> frozenset[str]:
        """The patterns of a path (key); ``*`` alone if nothing is known."""
        known = self._known.get(key)
        if known is None:
            if steps > _STEPS:
                return _ANYTHING
            self._known[key] = _ANYTHING
            known = self._known[key] = _bounded(self._made(key, steps + 1) or self._texts(key))
        return known

    def _texts(self, key: int) -> Iterable[str]:
        value = self.program.ask(key)
        found = self.program.atoms.texts(value) | self.program.texts_of_flags(value)
        return found if found - {"*"} else ()

    def _made(self, key: int, steps: int) -> Iterable[str]:
        """The patterns that an expression builds."""
        module = self.program.module_of(key)
        row = module.nodes[key & MASK]
        kind = row[0]
        if kind == "fstr":
            return self._joined(module, row[1], "", steps)
        if kind == "op" and row[1] in ("Add", "Div"):
            return self._joined(module, row[2:4], "/" if row[1] == "Div" else "", steps)
        if kind == "op" and row[1] == "Mod":
            return [_FIELD.sub("*", one) for one in self.of(module.base | row[2], steps)]
        if kind == "call":
            return self._called(module, row, steps)
        if kind in ("phi", "copy", "choice"):
            ways = row[1] if kind == "phi" else row[1:2] if kind == "copy" else row[2:4]
            return [one for way in ways for one in self.of(module.base | way, steps)]
        if kind in ("param", "free"):
            return [one for way in self.program.given_or_bound(module, row)[:_MOST] for one in self.of(way, steps)]
        return ()

    def _called(self, module: Module, row: tuple[object, ...], steps: int) -> Iterable[str]:
        function, args = int(str(row[1])), row[2]
        assert isinstance(args, tuple)
        name, called = called_name(self.program, module, function), module.plain(function)
        if name in JOINS and called[0] in ("attr", "free", "impf"):
            first = (called[1],) if name == "joinpath" else ()
            return self._joined(module, (*first, *args), "/", steps)
        if name == "format" and called[0] == "attr":
            return [_FIELD.sub("*", one) for one in self.of(module.base | called[1], steps)]
        if name in OF_PATHS and len(args) >= 1:
            return self._joined(module, args, "/", steps)
        return ()

    def _joined(self, module: Module, parts: Sequence[int], between: str, steps: int) -> Iterable[str]:
        ways = [sorted(self.of(module.base | one, steps)) for one in parts]
        size = 1
        for way in ways:
            size *= len(way)
        if size > _MOST:
            ways = [way if len(way) == 1 else ["*"] for way in ways]
        return [between.join(one) for one in product(*ways)]


def called_name(program: Program, module: Module, function: int) -> str:
    """The last name of a function that a call is of: its original name if it is imported under another one, ``join as
    pjoin``."""
    row = module.plain(function)
    if row[0] in ("free", "impf"):
        known = program.atoms.kinds(program.ask(module.base | function), "x")
        if len(known) == 1:
            return str(known[0][1]).rpartition(".")[2]
    return module.last_name(function)


_ANYTHING = frozenset(["*"])


def _bounded(found: Iterable[str]) -> frozenset[str]:
    """The patterns without consecutive stars; ``*`` if there are many or long ones."""
    names = frozenset(_STARS.sub("*", one) for one in found)
    return names if 0 < len(names) <= _MOST and all(len(one) <= _LONGEST for one in names) else _ANYTHING


def may_meet(names: Iterable[str], others: Iterable[str]) -> bool:
    """Whether the last components of two paths may be one name."""
    mine = [posixpath.basename(one) for one in names]
    theirs = [posixpath.basename(one) for one in others]
    return any(meet(one, two) for one in mine for two in theirs)


def meet(one: str, other: str) -> bool:
    """Whether a text fits two patterns, each with possible stars."""
    if not one.strip("*") or not other.strip("*"):
        return True
    row = [True]
    for letter in other:
        row.append(row[-1] and letter == "*")
    for mine in one:
        last, row = row, [row[0] and mine == "*"]
        for index, letter in enumerate(other):
            if mine == "*" or letter == "*":
                row.append(last[index + 1] or row[index] or last[index])
            else:
                row.append(last[index] and (mine == letter or "?" in (mine, letter)))
    return row[-1]
