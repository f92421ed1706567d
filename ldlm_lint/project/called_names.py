"""Which files of a project call something by a name: an index that takes the place of each file's names."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from ldlm_lint.python.called import Called


class CalledNames(NamedTuple):
    """By the last names that are called the files, as bits: those that call it, as a member of something, with a blank behind it."""

    names: dict[str, int]
    members: dict[str, int]
    spaced: dict[str, int]


def called_names(files: Iterable[Called]) -> CalledNames:
    """The index of what some files call."""
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
