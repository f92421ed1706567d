"""The names of files as patterns: texts in which ``*`` stands for an unknown or counting part."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Sequence
from itertools import product

from ldlm_lint.patterns import lazily
from ldlm_lint.program.codebase import Codebase, Concept
from ldlm_lint.program.handles import Call, Expr

OF_PATHS = frozenset({"str", "Path", "PurePath", "fspath", "abspath", "expanduser", "realpath", "normpath"})
"""Functions and classes that make a path of a path."""
JOINS = frozenset({"join", "joinpath"})
_FIELD = lazily(r"\{[^{}]*\}|%[-+ #0]*\d*(?:\.\d+)?[diouxXeEfFgGcrs]")
_STARS = re.compile(r"\*{2,}")
_MOST = 8
"""Names that one path may be; what may be more is anything."""
_LONGEST = 300
_ANYTHING = frozenset(["*"])


class PathPatterns(Concept):
    """The patterns of the paths of a program."""

    def __init__(self, code: Codebase) -> None:
        super().__init__(code)
        self._known: dict[Expr, frozenset[str]] = {}

    def of(self, path: Expr) -> frozenset[str]:
        """The patterns of a path; ``*`` alone if nothing is known."""
        known = self._known.get(path)
        if known is None:
            # What is made of itself may be anything.
            self._known[path] = _ANYTHING
            known = self._known[path] = _bounded(self._made(path) or path.texts)
        return known

    def are_named(self, path: Expr) -> frozenset[str]:
        """Those patterns whose last component is known."""
        return frozenset(one for one in self.of(path) if "*" not in posixpath.basename(one))

    def _made(self, path: Expr) -> Iterable[str]:
        """The patterns that an expression builds."""
        if path.kind == "fstr":
            return self._joined(path.operands, "")
        if path.kind == "op":
            left, right = path.operands
            if path.operator == "Mod":
                return [_FIELD.sub("*", one) for one in self.of(left)]
            return self._joined([left, right], {"Add": "", "Div": "/"}[path.operator]) if path.operator in ("Add", "Div") else ()
        if isinstance(path, Call):
            return self._called(path)
        ways = path.given if path.kind == "param" else path.bound_outside if path.kind == "free" else path.ways if path.kind != "bool" else ()
        return [one for way in ways[:_MOST] for one in self.of(way)]

    def _called(self, call: Call) -> Iterable[str]:
        name, callee = called_name(call), call.callee.plain
        if name in JOINS and callee.kind in ("attr", "free", "impf"):
            first = [callee.base] if name == "joinpath" and callee.base is not None else []
            return self._joined([*first, *call.positional], "/")
        if name == "format" and callee.kind == "attr" and callee.base is not None:
            return [_FIELD.sub("*", one) for one in self.of(callee.base)]
        return self._joined(call.positional, "/") if name in OF_PATHS and call.positional else ()

    def _joined(self, parts: Sequence[Expr], between: str) -> Iterable[str]:
        ways = [sorted(self.of(one)) for one in parts]
        size = 1
        for way in ways:
            size *= len(way)
        if size > _MOST:
            ways = [way if len(way) == 1 else ["*"] for way in ways]
        return [between.join(one) for one in product(*ways)]


def called_name(call: Call) -> str:
    """The last name of a function that a call is of: its original name if it is imported under another one, ``join as
    pjoin``."""
    names = call.callee.outside_names if call.callee.plain.kind in ("free", "impf") else frozenset()
    return next(iter(names)).rpartition(".")[2] if len(names) == 1 else call.called_name


def behind_paths(path: Expr) -> Expr:
    """An expression without conversions to a path."""
    at = path.unnamed
    while isinstance(at, Call) and len(at.positional) == 1 and not at.keywords and at.called_name in OF_PATHS:
        at = at.positional[0].unnamed
    return at


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
