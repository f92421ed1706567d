"""Texts and numbers computed from others, if all operands have few known values."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from ldlm_lint.program.atoms import FALSE, FIRST, HOST, NONE, NOTHING, OF_PYTHON, TRUE, Value
from ldlm_lint.program.counters import counters
from ldlm_lint.program.modules import Module
from ldlm_lint.program.options import Options

LARGEST = 1 << 64
"""Numbers above this are numbers, whichever."""
CHOICES = 8
"""Texts and numbers of one value above which what is made of them is not known."""
LONGEST = 80
"""Characters of a text above which it is a text, whichever."""
_STARS = re.compile(r"\*+")
_PLACEHOLDER = re.compile(r"%[-+ #0-9.]*[sdrifg]")
_ARITHMETIC: dict[str, Callable[[Any, Any], Any]] = {
    "Add": lambda left, right: left + right,
    "Sub": lambda left, right: left - right,
    "Mult": lambda left, right: left * right,
    "FloorDiv": lambda left, right: left // right,
    "Div": lambda left, right: left / right,
    "Mod": lambda left, right: left % right,
}
_PLAIN = frozenset([HOST, TRUE, FALSE, NONE])


class Constants(Options):
    """The results of operations on constants."""

    _counters: dict[int, frozenset[int]]

    def _written(self, value: Value) -> list[str]:
        """The text of a value when it is formatted; ``*`` if unknown."""
        texts = sorted([*self.atoms.texts(value), *map(str, self.atoms.numbers(value))])
        return texts if 0 < len(texts) <= CHOICES else ["*"]

    def _of_texts(self, texts: list[str]) -> Value:
        return frozenset(self.atoms.constant(_STARS.sub("*", text)[:LONGEST]) for text in texts)

    def _counters_of(self, module: Module) -> frozenset[int]:
        known = self._counters.get(module.index)
        if known is None:
            known = self._counters[module.index] = frozenset([module.base | one for one in counters(module)])
        return known

    def _of_constants(self, name: str, left: Value, right: Value, *, counts: bool) -> Value:
        if name == "Add":
            containers = frozenset(one for one in left | right if one >= FIRST and self.atoms.of[one][0] in ("d", "view"))
            if containers:
                return containers
        if counts and name != "BitOr":
            return OF_PYTHON if left or right else NOTHING
        if name in ("Add", "Div") and (self.atoms.texts(left) or self.atoms.texts(right)):
            between = "/" if name == "Div" else ""
            return self._of_texts([f"{one}{between}{two}" for one in self._written(left) for two in self._written(right)])
        if name == "BitOr":
            mappings = frozenset(one for one in left | right if one >= FIRST and self.atoms.of[one][0] == "d")
            if mappings:
                return mappings
        if name == "Mod" and self.atoms.texts(left):
            return self._of_texts([_PLACEHOLDER.sub("*", text) for text in sorted(self.atoms.texts(left))])
        numbers = self._computed(name, left, right)
        return numbers or (OF_PYTHON if left or right else NOTHING)

    def _computed(self, name: str, left: Value, right: Value) -> Value:
        """The results of arithmetic if both sides have few known numbers."""
        function = _ARITHMETIC.get(name)
        ones, others = self.atoms.numbers(left), self.atoms.numbers(right)
        if function is None or not (0 < len(ones) == len(left) <= CHOICES and 0 < len(others) == len(right) <= CHOICES):
            return NOTHING
        results: set[int] = set()
        for one in ones:
            for two in others:
                if abs(one) > LARGEST or abs(two) > LARGEST or (two == 0 and name in ("Div", "FloorDiv", "Mod")):
                    return NOTHING
                results.add(self.atoms.constant(function(one, two)))
        return frozenset(results)

    def may_be_plain(self, value: Value) -> bool:
        """Whether a value may be a number, text or truth value of Python."""
        return not value.isdisjoint(_PLAIN) or any(one >= FIRST and self.atoms.of[one][0] == "k" for one in value)
