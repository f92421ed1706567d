"""Rules that query the linked program: each file has ``RULE`` (or several ``RULES``), ``WORDS`` and ``find(view)``.

``WORDS`` are byte strings, one of which a linted file must contain: other files cost nothing. The findings are merged
with those of the per-file checkers; if both report one place, the checker's finding is kept, since it has the fix.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import TYPE_CHECKING, NamedTuple

from ldlm_lint.checkers.rule_files import rule_files

if TYPE_CHECKING:
    from ldlm_lint.checkers.project_code import ProjectCode
    from ldlm_lint.model import Finding

_READERS = (
    "python_environment",
    "python_launches",
    "trainer_settings",
)


class Query(NamedTuple):
    """A query on the program, for one or several rules."""

    symbols: tuple[str, ...]
    words: tuple[bytes, ...]
    find: Callable[[ProjectCode], Iterator[Finding]]


def queries() -> tuple[Query, ...]:
    """The questions of all rules."""
    readers = [importlib.import_module(f"ldlm_lint.checkers.{name}") for name in _READERS]
    moved = [Query(tuple(rule.symbol for rule in file.rules), (b"",), file.find) for file in rule_files()]
    return (*(Query(_symbols(reader), reader.WORDS, reader.find) for reader in readers), *moved)


def _symbols(reader: ModuleType) -> tuple[str, ...]:
    rules = reader.RULES if hasattr(reader, "RULES") else (reader.RULE,)
    return tuple(rule.symbol for rule in rules)
