"""Optimizers whose class is a text next to its options: ``dict(class_name="torch.optim.Adam", lr=1e-3)``."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from ldlm_lint.checkers.by_program.view import View
from ldlm_lint.patterns import lazily
from ldlm_lint.program.handles import Expr, expression
from ldlm_lint.program.modules import Module

_NAMED = lazily(rb"[\"']torch\.optim\.(?:\w+\.)?(?:Adam|AdamW|SGD)[\"']", re.S)
_OPTIONS = frozenset({"lr", "params", "betas", "weight_decay", "momentum"})


class Named(NamedTuple):
    """A dictionary or call that names a class by its dotted name, and sets its options."""

    expr: Expr
    name: str


def named_optimizers(view: View, wanted: frozenset[str], choices: frozenset[str]) -> Iterator[Named]:
    """The dictionaries and calls that name one of these classes and set its options without one of ``choices``."""
    for module in view.program.live:
        if _NAMED.search(view.context.project.data(view.path(module))):
            for number, name in _named_in(module, wanted):
                given, is_open = _given(view, module, number)
                if not is_open and not _OPTIONS.isdisjoint(given) and choices.isdisjoint(given):
                    yield Named(expression(view, module.base | number), name)


def _named_in(module: Module, wanted: frozenset[str]) -> Iterator[tuple[int, str]]:
    for number, row in enumerate(module.nodes):
        values = row[2] if row[0] == "map" else [value for _, value in row[3]] if row[0] == "call" else ()
        for value in values:
            text = module.nodes[value]
            if text[0] == "const" and text[1] in wanted:
                yield number, text[1]


def _given(view: View, module: Module, number: int) -> tuple[set[str], bool]:
    """The names of the options, and whether others are possible."""
    row = module.nodes[number]
    if row[0] == "map":
        keys = view.ask.mappings.keys_at(module.base | number)
        return set(keys.entries), keys.is_open
    given, is_open = {name for name, _ in row[3] if name}, False
    for name, value in row[3]:
        if name is None:
            keys = view.ask.mappings.keys_at(module.base | value)
            given, is_open = given | set(keys.entries), is_open or keys.is_open
    if module.last_name(row[1]) == "dict":
        given |= set(view.ask.mappings.keys_at(module.base | number).entries)
    return given, is_open
