"""The classes of a model: its own, its bases, and those of the layers that they build.

A model is given by its places; the calls that created it are followed to classes of the project. Only certain imports
count, so that another class with the same name is never mistaken for a part of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from astroid import nodes

from ldlm_lint.project.filesets import FileSet
from ldlm_lint.project.index import Project
from ldlm_lint.project.trees import Trees
from ldlm_lint.project.wrapped import Wraps
from ldlm_lint.python.names import UNKNOWN, qualified
from ldlm_lint.python.slots import Slot
from ldlm_lint.python.walks import nodes_of

_MOST = 300


class Part(NamedTuple):
    """A class or function of a model, by its name and the file that defines it."""

    path: str
    name: str


class Models:
    """The parts of the models of a project."""

    def __init__(self, project: Project, wraps: Wraps, trees: Trees) -> None:
        self._project = project
        self._wraps = wraps
        self.trees = trees
        self._mentions: dict[Part, tuple[Part, ...] | None] = {}

    def parts(self, path: str, slots: Iterable[Slot], towards: FileSet | None = None) -> Iterator[Part]:
        """Every class and function of the models in these places, the outer ones first."""
        yield from self.inside((Part(*one) for slot in slots for one in self._made_of(path, slot)), towards)

    def inside(self, parts: Iterable[Part], towards: FileSet | None = None) -> Iterator[Part]:
        """These classes and functions and every one of the project that they name, the outer ones first.

        Parts that reach none of the files in ``towards`` are left out.
        """
        waiting = list(dict.fromkeys(parts))
        seen = set(waiting)
        while waiting and len(seen) < _MOST:
            part = waiting.pop(0)
            if towards is not None and towards.isdisjoint(self._project.reach(part.path)):
                continue
            mentions = self._mentions_of(part)
            if mentions is None:
                continue
            yield part
            for inner in mentions:
                if inner not in seen:
                    seen.add(inner)
                    waiting.append(inner)

    def definition(self, part: Part) -> nodes.ClassDef | nodes.FunctionDef | None:
        """The tree of a class or function; None if the file defines nothing with that name."""
        module = self.trees.of(part.path)
        found = module.locals.get(part.name.partition(".")[0], ()) if module is not None else ()
        return next((one for one in found if isinstance(one, (nodes.ClassDef, nodes.FunctionDef))), None)

    def resolve(self, path: str, name: str) -> tuple[str, str] | None:
        """The file of the project that defines the object behind a name in a file, and its name there."""
        return self._project.resolve(path, name)

    def _mentions_of(self, part: Part) -> tuple[Part, ...] | None:
        """The parts named by a part, None if it is not a class or function of the project."""
        if part not in self._mentions:
            node = self.definition(part)
            self._mentions[part] = None if node is None else tuple(dict.fromkeys(self.mentioned(part.path, node)))
        return self._mentions[part]

    def _made_of(self, path: str, slot: Slot) -> Iterator[tuple[str, str]]:
        """The definitions, by file and name, that the calls behind a place go to."""
        for where, call, _ in self._wraps.makers(path, slot):
            if call.callee.kind == "def":
                yield where, call.callee.name
            elif call.callee.kind == "import":
                resolved = self._project.resolve(where, call.callee.name)
                if resolved is not None and resolved[1]:
                    yield resolved

    def mentioned(self, path: str, node: nodes.NodeNG) -> Iterator[Part]:
        """The definitions of the project that an expression, a class or a function of a file names."""
        for one in nodes_of(node, (nodes.Name, nodes.Attribute)):
            names = qualified(one)
            name = next(iter(names))
            if len(names) != 1 or UNKNOWN in name:
                continue
            if name.startswith(".") and name.count(".") == 1 and name[1:] in node.root().locals:
                yield Part(path, name[1:])
                continue
            resolved = self._project.resolve(path, name)
            if resolved is not None and resolved[1] and "." not in resolved[1]:
                yield Part(*resolved)


__all__ = ["Models", "Part"]
