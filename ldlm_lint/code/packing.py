"""Tables as bytes: for caches, and to save memory."""

from __future__ import annotations

import marshal
from array import array
from collections.abc import Iterable
from typing import Any

from ldlm_lint.code.table import Guard, Loop, Scope, Site, Table, Try

FORM = 3
"""The form of the bytes and of what they say; another number is unreadable to this version."""
_SCOPE = tuple(name for name in Scope.__slots__)
_SITE_FIELDS = len(Site._fields) - 2
"""Those that are kept: the place and the end of a call are also those of its expression."""


def packed(table: Table) -> bytes:
    """A table as bytes of `marshal`, for the same process: no untrusted data is read with it."""
    return marshal.dumps(plain(table))


def plain(table: Table) -> tuple[Any, ...]:
    """A table as tuples, lists, dictionaries, numbers and texts only."""
    sites = array("q")
    for call, site in table.sites.items():
        sites.append(call)
        sites.extend(site[:_SITE_FIELDS])
    ends = _ends(table.ends)
    return (
        FORM,
        table.nodes,
        array("q", table.places).tobytes(),
        ends.typecode,
        ends.tobytes(),
        [tuple([getattr(scope, name) for name in _SCOPE]) for scope in table.scopes],
        [tuple(one) for one in table.loops],
        [tuple(one) for one in table.guards],
        sites.tobytes(),
        table.named,
        table.imports,
        table.aliases,
        table.decorations,
        table.updates,
        table.maps,
        [tuple(one) for one in table.tries],
    )


def _ends(ends: Iterable[int]) -> array[int]:
    """Half as large as the places, unless an expression goes over thousands of lines."""
    try:
        return array("I", ends)
    except OverflowError:
        return array("q", ends)


def unpacked(data: bytes) -> Table:
    """The table of some bytes; raises ValueError if they do not have this form."""
    try:
        fields = marshal.loads(data)
    except (EOFError, TypeError) as error:
        raise ValueError("no table") from error
    return restored(fields)


def restored(fields: Any) -> Table:
    """The table encoded by `plain`; raises ValueError if it does not have this form."""
    try:
        if fields[0] != FORM:
            raise ValueError(f"a table of form {fields[0]}")
        return _restored(fields)
    except (TypeError, IndexError, AttributeError, KeyError) as error:
        raise ValueError("no table") from error


def _restored(fields: tuple[Any, ...]) -> Table:
    table = Table()
    _, table.nodes, places, form, ends, scopes, loops, guards, sites, *rest = fields
    # Numbers that large have no object of their own in an array.
    table.places = array("q", places)
    table.ends = array(form, ends)
    table.scopes = [_scope(values) for values in scopes]
    table.loops = list(map(Loop._make, loops))
    table.guards = list(map(Guard._make, guards))
    numbers = array("q", sites)
    step = _SITE_FIELDS + 1
    for at in range(0, len(numbers), step):
        call = numbers[at]
        table.sites[call] = Site._make((*numbers[at + 1 : at + step], table.places[call], table.end(call)))
    table.named, table.imports, table.aliases, table.decorations, table.updates, table.maps, tries = rest
    table.tries = list(map(Try._make, tries))
    return table


def _scope(values: tuple[Any, ...]) -> Scope:
    scope = Scope.__new__(Scope)
    for name, value in zip(_SCOPE, values, strict=True):
        setattr(scope, name, value)
    return scope
