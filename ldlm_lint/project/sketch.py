"""A call graph from text alone: every call that the facts of a file would show is in it, and more.

What it rules out need not be parsed. A call stands in one of the definitions above it that are indented less; where the
text leaves several, all of them are taken.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator

from ldlm_lint.project.index import Project
from ldlm_lint.project.traits import Trait

Place = tuple[str, str]
"""A file and the dotted name of a function in it; empty for the module."""

_DEFINITION = re.compile(rb"^([ \t]*)(?:async[ \t]+)?(?:def|class)[ \t]+(\w+)", re.M)
_CLOSES = (b'"""', b"'''", b")", b"]", b"}", b"\\")
_MOST = 4000


class Sketch:
    """Answers which functions may call which, and which may come to a text that somebody looks for."""

    def __init__(self, project: Project, may_call: Callable[[str, str], tuple[str, ...]]) -> None:
        """``may_call`` tells the files that may call a function of a file."""
        self._project = project
        self._may_call = may_call
        self._definitions: dict[str, tuple[list[int], list[tuple[int, str]]]] = {}
        self._callers: dict[Place, frozenset[Place]] = {}
        self._leading: dict[Trait, frozenset[Place] | None] = {}

    def may_come_to(self, place: Place, trait: Trait) -> bool:
        """Whether a function may call, itself or through others, what the trait's pattern finds in a text."""
        if trait not in self._leading:
            self._leading[trait] = self._lead_to(trait)
        leading = self._leading[trait]
        return leading is None or place in leading

    def _lead_to(self, trait: Trait) -> frozenset[Place] | None:
        waiting: list[Place] = []
        for path in self._project.showing(trait):
            data = self._project.data(path)
            for match in trait.pattern.finditer(data):
                waiting.extend((path, scope) for scope in self._scopes(path, match.start()))
        seen = set(waiting)
        while waiting:
            if len(seen) > _MOST:
                return None
            fresh = self.callers(waiting.pop()) - seen
            seen |= fresh
            waiting.extend(fresh)
        return frozenset(seen)

    def callers(self, place: Place) -> frozenset[Place]:
        """The functions that may call a function."""
        if place not in self._callers:
            self._callers[place] = frozenset(self._find_callers(*place)) if place[1] else frozenset()
        return self._callers[place]

    def _find_callers(self, path: str, scope: str) -> Iterator[Place]:
        name = scope.removesuffix(".__init__").rpartition(".")[2]
        called = re.compile(rb"%s(?<!\w%s)[ \t]*\(" % (name.encode(), name.encode()))
        for other in self._may_call(path, scope):
            found = [match.start() for match in called.finditer(self._project.data(other))]
            if name in self._project.skim(other).renamed:
                # It goes by another name there.
                yield from ((other, one) for one in {"", *(inner for _, inner in self._of(other)[1])})
            yield from ((other, one) for at in found for one in self._scopes(other, at))

    def _of(self, path: str) -> tuple[list[int], list[tuple[int, str]]]:
        """Where the definitions of a file begin, and the indentation and dotted name of each."""
        if path not in self._definitions:
            starts: list[int] = []
            named: list[tuple[int, str]] = []
            around: list[tuple[int, str]] = []
            for match in _DEFINITION.finditer(self._project.data(path)):
                indent = len(match[1].expandtabs())
                while around and around[-1][0] >= indent:
                    around.pop()
                name = match[2].decode()
                around.append((indent, f"{around[-1][1]}.{name}" if around else name))
                starts.append(match.start())
                named.append(around[-1])
            self._definitions[path] = starts, named
        return self._definitions[path]

    def _scopes(self, path: str, at: int) -> set[str]:
        """The functions that a place of a text may stand in."""
        starts, named = self._of(path)
        data = self._project.data(path)
        begin = data.rfind(b"\n", 0, at) + 1
        line = data[begin:at]
        text = line.lstrip()
        # A line that ends what an earlier one began says nothing by its indentation.
        indent = len(line.expandtabs()) - len(text.expandtabs()) if not data[begin + len(line) - len(text) :].startswith(_CLOSES) else None
        found, lowest = {""}, None
        for number in range(bisect_right(starts, begin) - 1, -1, -1):
            own, scope = named[number]
            if lowest is not None and own >= lowest:
                continue
            lowest = own
            if indent is None or own < indent or starts[number] == begin:
                found.add(scope)
            if own == 0:
                break
        return found
