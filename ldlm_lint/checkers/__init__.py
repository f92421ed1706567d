"""The checkers of Python files, on astroid trees: one class per group of rules; the command and the pylint plugin use
the list `CHECKERS`.

The linter takes only the checkers of a file's rules at risk from `checkers_of`, and only those are imported.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Collection
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ldlm_lint.checkers.base import LdlmChecker

ROOMS: tuple[str, ...] = ()
"""The groups that have a module here with a checker, and a module of rules: none is left."""


def checkers_of(at_risk: Collection[str] | None) -> tuple[type[LdlmChecker], ...]:
    """The checkers with a rule among these symbols, in the order in which they run; None means all."""
    return tuple(_checker(room) for room in ROOMS if at_risk is None or not symbols_of(room).isdisjoint(at_risk))


@functools.cache
def symbols_of(room: str) -> frozenset[str]:
    """The rules of a group."""
    return frozenset(rule.symbol for rule in importlib.import_module(f"ldlm_lint.rules.{room}").RULES)


@functools.cache
def symbols_of_files() -> frozenset[str]:
    """The rules that are checked per file; all others need the linked program."""
    return frozenset().union(*map(symbols_of, ROOMS))


@functools.cache
def _checker(room: str) -> type[LdlmChecker]:
    name = "".join(part.capitalize() for part in room.split("_"))
    return getattr(importlib.import_module(f"ldlm_lint.checkers.{room}"), f"{name}Checker")


def __getattr__(name: str) -> tuple[type[LdlmChecker], ...]:
    if name == "CHECKERS":
        return checkers_of(None)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
