"""Other possible targets of a method call: the same method of other classes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ldlm_lint.project.calls import Calls
    from ldlm_lint.python.flow import CallSite

Place = tuple[str, str]


def other_methods(calls: Calls, path: str, call: CallSite, place: Place) -> Iterator[Place]:
    """The methods that a call in a file may reach instead of the one at a place.

    ``self.save()`` of a class may be that of a class derived from it in the same file; ``trainer.save()`` any of its
    name.
    """
    home, scope = place
    owner, _, name = scope.rpartition(".")
    if not owner or name == "__init__":
        return
    if call.callee.kind == "self":
        functions = calls.project.functions(home)
        derived = calls.project.derivations.derived_in(home, owner)
        yield from ((home, f"{one}.{name}") for one in derived if f"{one}.{name}" in functions)
    elif call.callee.kind == "method":
        found = ((where, function.scope) for where, function in calls.targets(path, call.callee))
        yield from (one for one in found if one != place)
