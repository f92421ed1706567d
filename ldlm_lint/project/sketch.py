"""A call graph from text alone: a superset of the calls in the facts of a file.

Functions that it rules out need not be parsed. A call is in one of the definitions above it that are indented less; if
several are possible, all of them are used. Everything below the header of a definition belongs to it up to the first
line that is not indented more: that line may begin a statement outside, or continue one inside.
"""

from __future__ import annotations

import re
from array import array
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from ldlm_lint.patterns import lazily
from ldlm_lint.project.filesets import FileSet
from ldlm_lint.project.index import Project
from ldlm_lint.project.opened import Opened
from ldlm_lint.project.traits import Trait
from ldlm_lint.python.called import calls_of
from ldlm_lint.python.definitions import outside_of
from ldlm_lint.python.skim import headers

Place = tuple[str, str]
"""A file and the dotted name of a function in it; empty for the module."""


class _Definition(NamedTuple):
    """A function or class: the columns it is indented by, its dotted name, and whether it is a class."""

    indent: int
    scope: str
    is_class: bool


_HEADER_ENDS = lazily(rb":[ \t]*(?:#[^\n]*)?\r?\n")
_ON_LINE = lazily(rb"\)[ \t]*(?:->[^\n:]*)?:[ \t]*([^\s#][^\n]*)$", re.M)
_CLOSES = (b'"""', b"'''", b")", b"]", b"}", b"\\")
_MOST = 4000


class Sketch:
    """Answers which functions may call which, and which may reach a searched text."""

    def __init__(self, project: Project, may_call: Callable[[str, str], FileSet]) -> None:
        """``may_call`` returns the files that may call a function of a file."""
        self._project = project
        self._may_call = may_call
        self._definitions: dict[str, tuple[array[int], list[_Definition]]] = {}
        self._functions: dict[str, frozenset[str]] = {}
        self._known: dict[str, frozenset[str]] = {}
        self._bodies: dict[tuple[str, int], tuple[int, int]] = {}
        self._calls: dict[tuple[str, str], tuple[str, ...]] = {}
        self._leading: dict[Trait, frozenset[Place] | None] = {}
        self._names: dict[Trait, frozenset[Place] | None] = {}

    def may_come_to(self, place: Place, trait: Trait) -> bool:
        """Whether a function may call, directly or through others, a match of the trait's pattern."""
        leading = self._leading_to(trait)
        return leading is None or place in leading or not self._knows(*place)

    def any_may_come_to(self, path: str, name: str, trait: Trait) -> bool:
        """As `may_come_to`, for the functions and classes of a file with this last name, at any depth."""
        if trait not in self._names:
            leading = self._leading_to(trait)
            self._names[trait] = None if leading is None else frozenset((one, _called_as(scope)) for one, scope in leading)
        names = self._names[trait]
        # ``super().__init__()`` names no class.
        return names is None or name == "__init__" or (path, name) in names

    def _leading_to(self, trait: Trait) -> frozenset[Place] | None:
        if trait not in self._leading:
            self._leading[trait] = self._lead_to(trait)
        return self._leading[trait]

    def _knows(self, path: str, scope: str) -> bool:
        """Whether a function has the same name here as in the facts of its file: one below an ``if`` may not."""
        name = scope.removesuffix(".__init__")
        if path not in self._known:
            self._known[path] = frozenset(one.scope for one in self._of(path)[1])
        return not name or name in self._known[path]

    def _lead_to(self, trait: Trait) -> frozenset[Place] | None:
        waiting: list[Place] = []
        for path in self._project.showing(trait):
            data = self._project.data(path)
            for match in trait.pattern.finditer(data):
                if not _is_no_code(data, match.start()):
                    waiting.extend((path, scope) for scope in self._scopes(path, match.start()))
        seen = set(waiting)
        while waiting:
            if len(seen) > _MOST:
                return None
            place = waiting.pop()
            fresh = (self.callers(place) | self._making(*place)) - seen
            seen |= fresh
            waiting.extend(fresh)
        return frozenset(seen)

    def _making(self, path: str, scope: str) -> frozenset[Place]:
        """The function that defines another one inside, and may pass it on to be called."""
        around = scope.rpartition(".")[0]
        return frozenset({(path, around)}) if around and around in self._functions_of(path) else frozenset()

    def _functions_of(self, path: str) -> frozenset[str]:
        if path not in self._functions:
            self._functions[path] = frozenset(one.scope for one in self._of(path)[1] if not one.is_class)
        return self._functions[path]

    def functions(self, path: str) -> list[str]:
        """The dotted names of the functions that the text of a file defines."""
        return sorted(self._functions_of(path))

    def callers(self, place: Place, tests: bool = True) -> frozenset[Place]:
        """The functions that may call a function; without ``tests`` those in test suites are left out."""
        # Callers cache the result: the callers of all functions of a large project would fill the memory.
        return frozenset(self._find_callers(*place, tests)) if place[1] else frozenset()

    def may_call_in(self, path: str, name: str) -> bool:
        """Whether a file may call something by its last name: examples in documentation and printed text do not
        count.
        """
        return bool(self._calling(path, name))

    def _find_callers(self, path: str, scope: str, tests: bool) -> Iterator[Place]:
        name = _called_as(scope)
        files = self._may_call(path, scope)
        for other in files if tests else files & self._project.plain:
            yield from ((other, one) for one in self._calling(other, name))

    def _calling(self, path: str, name: str) -> tuple[str, ...]:
        """The functions of a file that may call something by its last name."""
        key = (path, name)
        if key not in self._calls:
            self._calls[key] = tuple(dict.fromkeys(self._find_calls(path, name)))
        return self._calls[key]

    def _find_calls(self, path: str, name: str) -> Iterator[str]:
        if name in self._project.skim(path).renamed:
            # It has another name there.
            yield from ("", *(inner.scope for inner in self._of(path)[1]))
            return
        for at in self._calls_at(path, name):
            yield from self._scopes(path, at)

    def _calls_at(self, path: str, name: str) -> Iterator[int]:
        """Where a text may call something by its last name."""
        data = self._project.data(path)
        for at in calls_of(data, name, self._project.calls_spaced(path, name)):
            if not (_defines(data, at) or _is_no_code(data, at)):
                yield at

    def _of(self, path: str) -> tuple[array[int], list[_Definition]]:
        """The positions of the definitions of a file, and their kinds."""
        if path not in self._definitions:
            starts = array("Q")
            found: list[_Definition] = []
            around: list[tuple[_Definition, Opened]] = []
            data = self._project.data(path)
            for begin, blanks, name, is_class in sorted(headers(data)):
                indent = len(blanks.expandtabs())
                while around and (around[-1][0].indent >= indent or around[-1][1].is_left(data, begin)):
                    around.pop()
                found.append(_Definition(indent, f"{around[-1][0].scope}.{name}" if around else name, is_class))
                around.append((found[-1], Opened(begin, len(blanks))))
                starts.append(begin)
            self._definitions[path] = starts, found
        return self._definitions[path]

    def _scopes(self, path: str, at: int) -> set[str]:
        """The functions that may contain a place of a text."""
        return self._named(path, self._around(path, at))

    def _named(self, path: str, numbers: Iterable[int | None]) -> set[str]:
        """The dotted names of definitions by their numbers; None is the module."""
        definitions = self._of(path)[1]
        return {"" if number is None else definitions[number].scope for number in numbers}

    def _around(self, path: str, at: int) -> Iterator[int | None]:
        """The numbers of the definitions that may contain a place of a text, the inner ones first; None for the
        module.
        """
        starts, definitions = self._of(path)
        data = self._project.data(path)
        begin = data.rfind(b"\n", 0, at) + 1
        indent = _indent(data, begin, at)
        lowest = None
        for number in range(bisect_right(starts, begin) - 1, -1, -1):
            own, _, is_class = definitions[number]
            if lowest is not None and own >= lowest:
                continue
            lowest = own
            first, last = self._body(path, number)
            inside = first <= begin < last
            if inside or indent is None or own < indent or starts[number] == begin:
                yield number
            if inside and not is_class:
                return
            if own == 0:
                break
        yield None

    def body_of(self, path: str, scope: str) -> bytes | None:
        """The text of a function below its header, as far as it certainly belongs to it; None if it is not found."""
        for number, one in enumerate(self._of(path)[1]):
            if one.scope == scope and not one.is_class:
                first, last = self._body(path, number)
                return self._project.data(path)[first:last]
        return None

    def _body(self, path: str, number: int) -> tuple[int, int]:
        """The stretch of a text that is a definition's own for certain."""
        key = (path, number)
        if key not in self._bodies:
            starts, definitions = self._of(path)
            data = self._project.data(path)
            header = _HEADER_ENDS.search(data, starts[number])
            following = starts[number + 1] if number + 1 < len(starts) else len(data)
            # ``def save(self) -> None: ...`` ends on its line: the next header belongs to another one.
            on_line = _ON_LINE.search(data, starts[number], following) if header is None or header.start() > following else None
            first = on_line.start(1) if on_line else header.end() if header else len(data)
            outside = outside_of(definitions[number].indent).search(data, max(first - 1, 0))
            last = outside.start() + 1 if outside else len(data)
            self._bodies[key] = first, on_line.end() if on_line else last
        return self._bodies[key]


def _called_as(scope: str) -> str:
    """The last name in calls of a function; for a constructor that of its class."""
    return scope.removesuffix(".__init__").rpartition(".")[2]


def _defines(data: bytes, at: int) -> bool:
    """Whether a name with a parenthesis after it is that of a definition."""
    return data[max(at - 12, 0) : at].rstrip(b" \t").endswith((b"def", b"class")) and data[at - 1 : at] in (b" ", b"\t")


def _is_no_code(data: bytes, at: int) -> bool:
    """Whether a place is in a comment, an example or a plain text at the beginning of a line.

    What may end such a text before the place, or put a call into it, makes it code.
    """
    begin = data.rfind(b"\n", 0, at) + 1
    line = data[begin:at].lstrip(b" \t")
    if b"{" in line or b'"""' in line or b"'''" in line or b"\\" in data[max(begin - 3, 0) : begin]:
        return False
    mark = line[:1]
    return line.startswith((b"#", b">>>")) or (mark in (b'"', b"'") and mark not in line[1:])


def _indent(data: bytes, begin: int, at: int) -> int | None:
    """The columns a line is indented by; None if it ends a construct of an earlier line, so that the indentation is
    meaningless."""
    line = data[begin:at]
    text = line.lstrip()
    if data[begin + len(line) - len(text) :].startswith(_CLOSES):
        return None
    return len(line.expandtabs()) - len(text.expandtabs())
