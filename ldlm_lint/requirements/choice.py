"""What the files of a project leave of the versions of a package.

A file that chooses a version, by an upper bound or exactly, is a choice; the project can run on any of several choices.
A bound that is open above, such as ``torch>=1.8``, chooses nothing: beside a choice that it allows it adds nothing, and
alone it allows every newer version. A lock file states what most runs have. A page of documentation that contradicts what is
required is out of date. The nearest folder that chooses decides.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from ldlm_lint.requirements import Bound, Package, Version


class Choice(NamedTuple):
    """The oldest and the newest version; None where nothing bounds it. ``bounds`` are the requirements that say so.

    ``all`` are these and the requirements that a lock file replaces: an install from those may give another version.
    """

    oldest: Version | None = None
    newest: Version | None = None
    bounds: tuple[Bound, ...] = ()
    all: tuple[Bound, ...] = ()


NO_CHOICE = Choice()


def chosen(package: Package, levels: Iterable[Sequence[Bound]]) -> Choice:
    """What the bounds of folders leave, those of the nearest folder first."""
    found = NO_CHOICE
    for level in levels:
        outer = _of_level([one for one in level if one.package == package.name])
        found = _within(found, outer)
        if found.newest is not None or (found.bounds and outer.newest is not None):
            break
    return found


def together(choices: Sequence[Choice]) -> Choice:
    """What several programs leave for a file that all of them use."""
    oldest, newest = [one.oldest for one in choices], [one.newest for one in choices]
    return Choice(
        min((one for one in oldest if one), default=None) if None not in oldest else None,
        max((one for one in newest if one), default=None) if None not in newest else None,
        tuple(dict.fromkeys(bound for one in choices for bound in one.bounds)),
        tuple(dict.fromkeys(bound for one in choices for bound in one.all)),
    )


def _of_level(bounds: Sequence[Bound]) -> Choice:
    required = [one for one in bounds if not one.is_told and one.allowed]
    bounds = [one for one in bounds if not one.is_told or not any(_differ(one, other) for other in required)]
    known = [one for one in bounds if one.allowed]
    closed = [one for one in known if not one.is_open]
    strong = [one for one in closed if one.locked] or closed
    if not known:
        return NO_CHOICE._replace(all=tuple(bounds))
    ruling = [*strong, *(one for one in known if one not in strong and all(_differ(one, other) for other in strong))] if strong else known
    counted = ruling if any(one.locked for one in strong) else known
    oldest = None if any(one.lower is None for one in counted) else min(one.lower or one.allowed[0] for one in counted)
    newest = None if any(one.is_open for one in ruling) else max(one.allowed[-1] for one in ruling)
    return Choice(oldest, newest, tuple(counted), tuple(bounds))


def _within(inner: Choice, outer: Choice) -> Choice:
    """A choice in a folder inside of another: it decides, and what it leaves open above is chosen outside."""
    if not inner.bounds:
        return outer._replace(all=(*inner.all, *outer.all))
    everything = (*inner.all, *outer.all)
    if outer.newest is None or any(_differ(one, other) for one in inner.bounds for other in outer.bounds):
        return inner._replace(all=inner.all if outer.newest is not None else everything)
    return Choice(inner.oldest, outer.newest, outer.bounds, everything)


def _differ(one: Bound, other: Bound) -> bool:
    """Whether no version fulfils both."""
    return set(one.allowed).isdisjoint(other.allowed)
