"""Rules that ask the linked program: each file has ``RULE``, ``WORDS`` and ``find(view)``.

``WORDS`` are byte strings of which a linted file has to hold one: what it does not hold costs nothing. The findings join those of
the checkers that read one file at a time; where both speak of one place, the checker's stands, since it has the fix.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from typing import NamedTuple

from ldlm_lint.checkers.by_program.view import View
from ldlm_lint.model import Finding

_ROOMS = (
    "host_sync_in_training_loop",
    "dataloader_conflicting_options",
    "dataloader_in_main_process",
    "dataloader_worker_count_may_be_zero",
    "dataloader_worker_options_without_workers",
    "dataloader_without_persistent_workers",
    "dataloader_without_pin_memory",
    "dataloader_without_prefetch",
)


class Query(NamedTuple):
    """A rule's question to the program."""

    symbol: str
    words: tuple[bytes, ...]
    find: Callable[[View], Iterator[Finding]]


def queries() -> tuple[Query, ...]:
    """The questions of all rules."""
    rooms = [importlib.import_module(f"{__name__}.{name}") for name in _ROOMS]
    return tuple(Query(room.RULE.symbol, room.WORDS, room.find) for room in rooms)
