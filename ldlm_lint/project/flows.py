"""The data flow of parsed files; in large projects most of it is packed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, TypeVar, cast

if TYPE_CHECKING:
    from ldlm_lint.python.flow import CallSite, Function, ModuleFlow

_MOST = 10_000
"""How many calls and moves are kept ready to be asked, at about a kilobyte each."""


T = TypeVar("T")


class Facts:
    """The flow of a file, with cached look-ups."""

    def __init__(self, flow: ModuleFlow) -> None:
        self.flow = flow
        self._drawn: dict[Callable[[ModuleFlow], object], object] = {}

    def drawn(self, draw: Callable[[ModuleFlow], T]) -> T:
        """A value derived from the flow, cached as long as the flow itself."""
        if draw not in self._drawn:
            self._drawn[draw] = draw(self.flow)
        return cast("T", self._drawn[draw])

    @property
    def size(self) -> int:
        """A measure of its memory."""
        return len(self.flow.calls) + len(self.flow.moves)

    @cached_property
    def functions(self) -> Mapping[str, Function]:
        """The functions by their dotted names."""
        return {function.scope: function for function in self.flow.functions}

    @cached_property
    def calls(self) -> Mapping[str, tuple[CallSite, ...]]:
        """The calls by the function they are in; those of a module under the empty scope."""
        found: dict[str, list[CallSite]] = {}
        for call in self.flow.calls:
            found.setdefault(call.scope, []).append(call)
        return {name: tuple(calls) for name, calls in found.items()}


class Flows:
    """Flows by path. The least recently used are packed when there are too many."""

    def __init__(self, flows: Mapping[str, ModuleFlow] | None = None) -> None:
        self._ready: dict[str, Facts] = {}
        self._packed: dict[str, bytes] = {}
        self._size = 0
        for path, flow in (flows or {}).items():
            self.put(path, flow)

    def put(self, path: str, flow: ModuleFlow) -> Facts:
        """Store the flow of a file, replacing an earlier one; returns the facts of the file."""
        known = self._ready.pop(path, None)
        self._size -= known.size if known is not None else 0
        self._packed.pop(path, None)
        facts = Facts(flow)
        self._keep(path, facts)
        return facts

    def get(self, path: str) -> Facts | None:
        """The facts of a file; None if there are none."""
        found = self._ready.pop(path, None)
        if found is not None:
            self._ready[path] = found
        elif path in self._packed:
            from ldlm_lint.project.flow_packing import unpacked

            found = Facts(unpacked(self._packed[path]))
            self._keep(path, found)
        return found

    def _keep(self, path: str, facts: Facts) -> None:
        self._ready[path] = facts
        self._size += facts.size
        while self._size > _MOST and len(self._ready) > 1:
            oldest = next(iter(self._ready))
            gone = self._ready.pop(oldest)
            self._size -= gone.size
            if oldest not in self._packed:
                from ldlm_lint.project.flow_packing import packed

                self._packed[oldest] = packed(gone.flow)

