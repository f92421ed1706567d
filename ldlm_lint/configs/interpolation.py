"""Interpolations of OmegaConf: ``${a.b}``, ``${.sibling}``, ``${oc.env:NAME,default}``, ``${oc.select:a.b,default}``.

A resolver that a project registers itself (``${eval:...}``) is code of the program: its result is unknown.
Source: https://omegaconf.readthedocs.io/en/2.3_branch/usage.html#variable-interpolation
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

from ldlm_lint.configs.document import Entry, Key, Path, Shape
from ldlm_lint.configs.scalars import yaml_scalar
from ldlm_lint.patterns import lazily
from ldlm_lint.untrusted_numbers import whole

_MAX_DEPTH = 12
_OPEN = "${"
_RESOLVER = lazily(r"([A-Za-z_][\w.]*):(.*)", re.S)
_REFERENCE = lazily(r"(\.*)([\w$/-]+(?:(?:\.[\w$/-]+)|(?:\[[^\[\]]+\]))*)")
_STEP = lazily(r"[^.\[\]]+")


class Resolved(NamedTuple):
    """The resolved value of an entry.

    ``value`` is the scalar as Python data, ``entry`` the place of the literal (the one to edit), ``through`` the
    entries on the way there, outermost first. ``variable`` names the environment variable that takes precedence over
    the value if it is set (``${oc.env:NAME,default}``), empty if there is none.
    """

    value: object
    entry: Entry
    through: tuple[Entry, ...] = ()
    variable: str = ""


Lookup = Callable[[Path], "Entry | None"]
"""From an absolute path of keys to the entry that counts there, None where it is unknown or absent."""


def resolve(entry: Entry, at: Path, lookup: Lookup) -> Resolved | None:
    """The resolved value of the scalar ``entry`` at the absolute path ``at``; None if unknown."""
    return _Resolver(lookup).entry(entry, at, 0)


def is_interpolated(text: str) -> bool:
    """Whether a scalar holds an interpolation."""
    return _OPEN in text


class _Resolver(NamedTuple):
    lookup: Lookup

    def entry(self, entry: Entry, at: Path, depth: int) -> Resolved | None:
        """The resolved value of an entry."""
        if entry.shape is not Shape.SCALAR or entry.tag or depth > _MAX_DEPTH or entry.text == "???":
            return None
        if not isinstance(entry.value, str) or not is_interpolated(entry.value):
            return Resolved(entry.value, entry)
        return self.text(entry.value, entry, at, depth)

    def text(self, text: str, entry: Entry, at: Path, depth: int) -> Resolved | None:
        """The resolved value of a text: a single interpolation keeps its type, several give a string."""
        pieces = _pieces(text)
        if pieces is None:
            return None
        if len(pieces) == 1 and pieces[0][1]:
            return self._expression(pieces[0][0], entry, at, depth + 1)
        joined, variable = "", ""
        for piece, is_expression in pieces:
            if not is_expression:
                joined += piece
                continue
            found = self._expression(piece, entry, at, depth + 1)
            if found is None:
                return None
            joined += _shown(found.value)
            variable = variable or found.variable
        return Resolved(joined, entry, (), variable)

    def _expression(self, text: str, entry: Entry, at: Path, depth: int) -> Resolved | None:
        if depth > _MAX_DEPTH:
            return None
        if is_interpolated(text):
            inner = self.text(text, entry, at, depth)
            if inner is None:
                return None
            text = _shown(inner.value)
            if inner.variable:
                found = self._expression(text, entry, at, depth + 1)
                return None if found is None else found._replace(variable=found.variable or inner.variable)
        if match := _RESOLVER.fullmatch(text.strip()):
            return self._call(match[1], match[2], entry, at, depth)
        match = _REFERENCE.fullmatch(text.strip())
        return self._reference(match[1], match[2], entry, at, depth) if match else None

    def _call(self, name: str, arguments: str, entry: Entry, at: Path, depth: int) -> Resolved | None:
        """A resolver of OmegaConf's own."""
        first, comma, default = (part.strip() for part in arguments.partition(","))
        if name in ("oc.env", "env") and comma:
            # `oc.env` returns text, its predecessor the parsed value.
            value = yaml_scalar(default) if name == "env" or default == "null" else default.strip("\"'")
            return Resolved(value, entry, (), first)
        if name == "oc.decode":
            return Resolved(yaml_scalar(arguments.strip().strip("\"'")), entry)
        if name == "oc.select":
            # Its keys are relative to the enclosing node, like those of `${...}` from the root.
            match = _REFERENCE.fullmatch(first)
            return self._reference(match[1], match[2], entry, at, depth) if match else None
        return None

    def _reference(self, dots: str, keys: str, entry: Entry, at: Path, depth: int) -> Resolved | None:
        base: Path = at[: max(len(at) - len(dots), 0)] if dots else ()
        steps: tuple[Key, ...] = tuple(_STEP.findall(keys))
        for path in dict.fromkeys(((*base, *steps), (*base, *(whole(str(one)) if str(one).isdecimal() else one for one in steps)))):
            target = self.lookup(path)
            if target is not None:
                found = self.entry(target, path, depth + 1)
                return None if found is None else found._replace(through=(entry, *found.through))
        return None


def _pieces(text: str) -> list[tuple[str, bool]] | None:
    """The literal stretches of a text and the insides of its interpolations (True); None if it is not plain."""
    if "\\" in text:
        return None
    pieces: list[tuple[str, bool]] = []
    position = 0
    while (start := text.find(_OPEN, position)) >= 0:
        if start > position:
            pieces.append((text[position:start], False))
        depth, end = 1, start + 2
        while depth and end < len(text):
            depth += text.startswith(_OPEN, end) - (text[end] == "}")
            end += 1
        if depth:
            return None
        pieces.append((text[start + 2 : end - 1], True))
        position = end
    if position < len(text):
        pieces.append((text[position:], False))
    return pieces


def _shown(value: object) -> str:
    """A value inside a longer text, as OmegaConf writes it."""
    return str(value)
