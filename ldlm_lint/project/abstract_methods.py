"""The methods that implement an abstract one: the targets of ``self.train_epoch()`` in a base class, from the texts.

A method that a class calls on itself and leaves to subclasses counts as an abstract one.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Iterator

from ldlm_lint.patterns import lazily
from ldlm_lint.project.filesets import FileSet
from ldlm_lint.project.index import Project
from ldlm_lint.project.sketch import Place, Sketch

# Unambiguous alternatives, so that the pattern never backtracks.
_REMARK = lazily(
    rb"\s+|#[^\n]*|[rRuU]?\"{3}(?:(?!\"{3})[\s\S])*\"{3}|[rRuU]?'{3}(?:(?!'{3})[\s\S])*'{3}"
    rb"|\"(?!\"\")[^\"\n]*\"|'(?!'')[^'\n]*'"
)
_NOTHING = lazily(rb"raise\s+NotImplementedError\b[^\n]*|pass\b|\.\.\.")
_CLASS = rb"(?m)^class[ \t]+%s\b"
_EVALUATES = lazily(r"(?:Inferenc\w*|Evaluat\w*|Tester|Validator|Predictor|Generator|Sampler)$")
_SET = rb"(?m)^[ \t]*(?:self\.)?%s[ \t]*(?::|=(?!=))"
_LONGEST = 10_000
"""How many bytes of a body are looked at: what is longer is no declaration."""
_MOST = 3


@functools.lru_cache(maxsize=1024)
def _pattern(form: bytes, name: str) -> re.Pattern[bytes]:
    return re.compile(form % re.escape(name.encode()))


class AbstractMethods:
    """Answers which methods implement an abstract one in a class derived from its own, and the other way round."""

    def __init__(self, project: Project, sketch: Sketch) -> None:
        self._project = project
        self._sketch = sketch
        self._implementing: dict[Place, tuple[Place, ...]] = {}
        self._abstract: dict[Place, bool] = {}
        self._left_out: dict[Place, bool] = {}
        self._methods: dict[str, dict[str, list[str]]] = {}

    def implementing(self, path: str, scope: str) -> tuple[Place, ...]:
        """The methods that implement an abstract one; empty for another function, or if there are too many."""
        place = (path, scope)
        if place not in self._implementing:
            found = tuple(self._find(path, scope)) if self._is_abstract(place) else tuple(self._heirs(path, scope))
            self._implementing[place] = found if len(found) <= _MOST else ()
        return self._implementing[place]

    def _heirs(self, path: str, scope: str) -> Iterator[Place]:
        """The implementations of a method that a class only calls; their names must show which subclass a training
        uses."""
        if self._is_left_out((path, scope)):
            yield from ((where, name) for where, name in self._find(path, scope) if not _EVALUATES.search(name.rpartition(".")[0]))

    def _find(self, path: str, scope: str) -> Iterator[Place]:
        owner, _, name = scope.rpartition(".")
        for other in self._project.holding(name):
            if other == path or path in self._project.reach(other):
                yield from ((other, f"{one}.{name}") for one in self._derived(other, owner, name))

    def _derived(self, path: str, owner: str, name: str) -> Iterator[str]:
        """The classes of a file that name a class as one of their bases and have a method of that name."""
        base = owner.rpartition(".")[2]
        yield from (one for one in self._owners(path, name) if base in self._bases(path, one))

    def _owners(self, path: str, name: str) -> list[str]:
        """The dotted names of the owners of a method with that name."""
        if path not in self._methods:
            found = self._methods[path] = {}
            for scope in self._sketch.functions(path):
                owner, _, last = scope.rpartition(".")
                if owner:
                    found.setdefault(last, []).append(owner)
        return self._methods[path].get(name, [])

    def _bases(self, path: str, owner: str) -> frozenset[str]:
        return self._project.derivations.bases(path, owner.rpartition(".")[2])

    def bases_calling(self, path: str, scope: str, calling: FileSet) -> FileSet:
        """The files, of those that call a method by name, with a base class in which it is abstract."""
        owner, _, name = scope.rpartition(".")
        bases = self._bases(path, owner) if owner and not name.startswith("__") else frozenset()
        near = calling & self._project.reach(path) & self._defining(bases) if bases else ()
        return self._project.universe.of(
            [one for one in near if one != path and (self._is_declared(one, bases, name) or self._leaves_out(one, bases, name))]
        )

    def _defining(self, names: Iterable[str]) -> FileSet:
        """The files that define one of these names."""
        return self._project.universe.joined(*map(self._project.defining, names))

    def _is_declared(self, path: str, bases: frozenset[str], name: str) -> bool:
        """Whether one of these bases is a class of a file with an abstract method of that name."""
        owners = (one for one in self._owners(path, name) if one.rpartition(".")[2] in bases)
        return any(self._is_abstract((path, f"{one}.{name}")) for one in owners)

    def _leaves_out(self, path: str, bases: frozenset[str], name: str) -> bool:
        return any(self._is_left_out((path, f"{one}.{name}")) for one in bases)

    def _is_left_out(self, place: Place) -> bool:
        """Whether a class calls on itself a method that neither it nor a base in the project has."""
        path, scope = place
        owner, _, name = scope.rpartition(".")
        if place not in self._left_out:
            data = self._project.data(path)
            self._left_out[place] = (
                f"self.{name}(".encode() in data
                and f"class {owner}".encode() in data
                and owner not in self._owners(path, name)
                and _pattern(_SET, name).search(data) is None
                and _pattern(_CLASS, owner).search(data) is not None
                and not self._defining(self._bases(path, owner))
            )
        return self._left_out[place]

    def _is_abstract(self, place: Place) -> bool:
        if place not in self._abstract:
            body = self._sketch.body_of(*place) if "." in place[1] else None
            self._abstract[place] = body is not None and _declares(body)
        return self._abstract[place]


def _declares(body: bytes) -> bool:
    """Whether a body contains only comments and a statement without effect: ``raise NotImplementedError``."""
    if len(body) > _LONGEST or not body.strip():
        return False
    at = _behind_remarks(body, 0)
    statement = _NOTHING.match(body, at)
    return _behind_remarks(body, statement.end() if statement else at) == len(body)


def _behind_remarks(body: bytes, at: int) -> int:
    """The first position after blanks, comments and texts."""
    while (found := _REMARK.match(body, at)) is not None:
        at = found.end()
    return at
