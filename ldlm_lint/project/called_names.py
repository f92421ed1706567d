"""An index of the files of a project that call a name; it replaces the names of each file."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from ldlm_lint.python.called import Called


class CalledNames(NamedTuple):
    """Files (as bits) by called last name: plain calls, calls as a member, calls with a blank before the
    parenthesis.
    """

    names: dict[str, int]
    members: dict[str, int]
    spaced: dict[str, int]


def called_names(files: Iterable[Called]) -> CalledNames:
    """The index of the calls in these files."""
    found = CalledNames({}, {}, {})
    for number, called in enumerate(files):
        bit = 1 << number
        for name in called.names:
            found.names[name] = found.names.get(name, 0) | bit
        for name in called.members:
            found.members[name] = found.members.get(name, 0) | bit
        for name in called.spaced:
            found.spaced[name] = found.spaced.get(name, 0) | bit
    # Most names are called in one way: two numbers for one set of files would take twice the memory.
    for name, bits in found.members.items():
        if found.names[name] == bits:
            found.members[name] = found.names[name]
    return found


__all__ = ["CalledNames", "called_names"]
