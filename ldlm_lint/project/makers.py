"""The calls that created the value of a variable or attribute, over all files of a project."""

from __future__ import annotations

from collections.abc import Iterator

from ldlm_lint.project.wrapped import Wraps
from ldlm_lint.python.flow import CallSite
from ldlm_lint.python.slots import Slot

_STEPS = 200


class Makers(Wraps):
    """Follows values backwards, through assignments, parameters and results, to the calls that created them."""

    def calls_behind(self, path: str, slot: Slot) -> Iterator[tuple[str, CallSite]]:
        """Every call whose result, or an element of it, may be in a slot of a file."""
        waiting, seen = [(path, slot)], {(path, slot)}
        while waiting and len(seen) < _STEPS:
            where, current = waiting.pop()
            if current.kind in ("out", "new"):
                calls = self._project.flow(where).calls
                yield from ((where, call) for call in calls if call.position == current.name)
            for state in self._sources(where, current):
                if state not in seen:
                    seen.add(state)
                    waiting.append(state)
