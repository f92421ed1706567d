"""The files' facts for the linked program: their tables, built when a file is parsed anyway, and cached by content."""

from __future__ import annotations

import ast
from typing import NamedTuple

from ldlm_lint.cache.values import decode, encode
from ldlm_lint.code import Table, packed, plain, restored, table_of, unpacked
from ldlm_lint.program.modules import Shown
from ldlm_lint.program.program import STANDING
from ldlm_lint.program.slices import shown_by


class Tabled(NamedTuple):
    """The table of a file, as bytes to save memory, and its `Shown`."""

    shown: Shown
    table: Table | bytes


def tabled(tree: ast.Module) -> Tabled | None:
    """The table of a file from its tree; None if it is nested too deeply to be walked here."""
    try:
        table = table_of(tree)
    except (RecursionError, MemoryError):
        return None
    return Tabled(shown_by(table), table)


def small(one: Tabled) -> Tabled:
    """The same as bytes, for this process and those that it starts."""
    return one if isinstance(one.table, bytes) else one._replace(table=packed(one.table))


def remembered(one: Tabled | None) -> bytes:
    """The cached form, empty for a file without a table: plain values only, see `ldlm_lint.cache.values`."""
    if one is None:
        return b""
    table = unpacked(one.table) if isinstance(one.table, bytes) else one.table
    return encode((tuple(one.shown), plain(table)))


def recalled(data: bytes) -> Tabled | None:
    """The table from the cache; raises ValueError for invalid bytes."""
    if not data:
        return None
    try:
        shown, table = decode(data)
        return Tabled(Shown(*shown), restored(table))
    except (TypeError, KeyError) as error:
        raise ValueError("no table") from error


class Tables:
    """Tables built before the program is linked; many of them are stored as bytes."""

    def __init__(self) -> None:
        self._known: dict[str, Tabled] = {}
        self._expressions = 0

    def put(self, path: str, one: Tabled) -> None:
        """Keep the table of a file."""
        if not isinstance(one.table, bytes):
            self._expressions += len(one.table.nodes)
        self._known[path] = small(one) if self._expressions > STANDING else one

    def take(self, path: str) -> Tabled | None:
        """The table of a file, which is the taker's from now on."""
        return self._known.pop(path, None)
