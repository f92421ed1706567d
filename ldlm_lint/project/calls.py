"""The call graph of a project by name: callers and callees, repeated calls, training code."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import cached_property
from typing import TYPE_CHECKING

from ldlm_lint.project.abstract_methods import AbstractMethods
from ldlm_lint.project.filesets import FileSet
from ldlm_lint.project.index import Project
from ldlm_lint.project.learning import learns
from ldlm_lint.project.sketch import Sketch
from ldlm_lint.project.training import BACKWARD

if TYPE_CHECKING:
    from ldlm_lint.project.traits import Trait
    from ldlm_lint.python.flow import Callee, CallSite, Function

_DEPTH = 5
_TAKEN = (re.compile(rb"\.([A-Z]\w*)"), re.compile(rb"\"([A-Z]\w*)\""), re.compile(rb"'([A-Z]\w*)'"))
_CLASS = re.compile(rb"class[ \t\f\\]+([\w\x80-\xff]+)")
_CANDIDATES = 3
_FEW = 8
_COMMON_METHODS = {
    "forward",
    "get",
    "update",
    "append",
    "items",
    "keys",
    "values",
    "join",
    "format",
    "split",
    "to",
    "cuda",
    "cpu",
    "step",
    "state_dict",
    "load_state_dict",
    "parameters",
    "write",
    "read",
    "log",
    "copy",
    "reset",
    "size",
    "add",
    "close",
    "",
}


class Calls:
    """Answers questions about functions of a project; a function is a path and its dotted name in the file."""

    def __init__(self, project: Project) -> None:
        self.project = project
        self.sketch = Sketch(project, self.may_call)
        self._abstract = AbstractMethods(project, self.sketch)
        self._trains: dict[tuple[str, str], bool] = {}
        self._callers: dict[tuple[str, str], FileSet] = {}
        self._classes: dict[str, frozenset[bytes]] = {}
        self._held: dict[str, Mapping[str, int]] = {}
        self._calls_between: dict[tuple[str, str, str], tuple[CallSite, ...]] = {}
        self._targets: dict[tuple[str, Callee], tuple[tuple[str, Function], ...]] = {}

    def function(self, path: str, scope: str) -> Function | None:
        """The function with a dotted name in a file; for a class its constructor."""
        name = scope.removesuffix(".__init__").rpartition(".")[2]
        if name and path in self.project.files and name not in self.project.skim(path).defined:
            return None
        functions = self.project.functions(path)
        return functions.get(scope) or functions.get(f"{scope}.__init__")

    def targets(self, path: str, callee: Callee) -> tuple[tuple[str, Function], ...]:
        """The functions of the project that a call may go to; empty for another package's."""
        key = (path, callee)
        if key not in self._targets:
            self._targets[key] = tuple(self._find_targets(path, callee))
        return self._targets[key]

    def _find_targets(self, path: str, callee: Callee) -> Iterator[tuple[str, Function]]:
        if callee.kind in ("def", "self"):
            function = self.function(path, callee.name)
            if function is not None:
                yield path, function
                if callee.kind == "self":
                    yield from self._implementing(path, function.scope)
            elif callee.kind == "self":
                left = list(self._implementing(path, callee.name))
                yield from left or self._methods(path, callee.name.rpartition(".")[2])
        elif callee.kind == "import":
            resolved = self.project.resolve(path, callee.name)
            function = self.function(*resolved) if resolved and resolved[1] else None
            if resolved and function is not None:
                yield resolved[0], function
        elif callee.name not in _COMMON_METHODS:
            yield from self._methods(path, callee.name)

    def _implementing(self, path: str, scope: str) -> Iterator[tuple[str, Function]]:
        """The methods that a call of an abstract one may reach."""
        for where, name in self._abstract.implementing(path, scope):
            function = self.function(where, name)
            if function is not None:
                yield where, function

    def may_lead(self, path: str, callee: Callee, trait: Trait) -> bool:
        """Whether one of the `targets` of a call may reach a match of a trait's pattern, by text alone, without
        parsing."""
        sketch, name = self.sketch, callee.name.rpartition(".")[2]
        if callee.kind == "import":
            resolved = self.project.resolve(path, callee.name)
            return resolved is not None and sketch.any_may_come_to(resolved[0], resolved[1].rpartition(".")[2], trait)
        if callee.kind in ("def", "self") and sketch.any_may_come_to(path, name, trait):
            return True
        if callee.kind == "self" and any(sketch.may_come_to(one, trait) for one in self._abstract.implementing(path, callee.name)):
            return True
        if callee.kind == "def" or (callee.kind == "method" and name in _COMMON_METHODS):
            return False
        return any(sketch.any_may_come_to(one, name, trait) for one in self._method_holders(path, name))

    def _methods(self, path: str, name: str) -> Iterator[tuple[str, Function]]:
        """The methods of that name in the files that a file imports; empty if there are too many."""
        found = [
            (one, function)
            for one in self._method_holders(path, name)
            for function in self.project.flow(one).functions
            if function.scope.rpartition(".")[2] == name and "." in function.scope
        ]
        if len(found) <= _CANDIDATES:
            yield from found

    def _method_holders(self, path: str, name: str) -> list[str]:
        """The files with functions of a name inside of others that a file reaches; empty if there are too many.

        That is known from the text, before any of the files is parsed.
        """
        holders = self.project.methods(name)
        found = self.project.holding(name) & self.project.reach(path)
        if len(found) > _CANDIDATES or sum(holders[one] for one in found) > _CANDIDATES:
            return []
        return list(found)

    def parameter(self, function: Function, call: CallSite, key: int | str) -> str:
        """The parameter that receives an argument; empty if there is none with that name or position."""
        if isinstance(key, str):
            return key if key in function.params else ""
        bound = function.params[:1] in (("self",), ("cls",)) and call.callee.name.rpartition(".")[2] != function.scope
        position = key + 1 if bound else key
        return function.params[position] if position < len(function.params) else ""

    def callers(
        self, path: str, scope: str, among: Collection[str] | None = None
    ) -> Iterator[tuple[str, CallSite]]:
        """The calls of a function (or, for a constructor, of its class) anywhere in the project, or in some files."""
        files = self.may_call(path, scope)
        for other in files if among is None else files & among:
            for call in self._calls_from(other, path, scope):
                yield other, call

    def may_call(self, path: str, scope: str) -> FileSet:
        """The files that may call a function, judging by their text and imports."""
        key = (path, scope)
        if key not in self._callers:
            self._callers[key] = self._find_files(path, scope)
        return self._callers[key]

    def _find_files(self, path: str, scope: str) -> FileSet:
        project = self.project
        wanted = scope.removesuffix(".__init__").rpartition(".")[2]
        head, inside, _ = scope.removesuffix(".__init__").partition(".")
        callers = project.calling(wanted) & project.importers(path)
        by_name = callers & (project.importing(path, head) | {path})
        rest = callers - by_name
        if not inside:
            return project.universe.joined(by_name, filter(project.imports_modules, rest & project.calling_member(wanted)))
        by_method = rest & FileSet(project.universe, self._called_methods(wanted).get(path, 0))
        by_base = self._abstract.bases_calling(path, scope, project.calling(wanted))
        # ``module.Class.method(…)``
        by_module = filter(project.imports_modules, self._taking(path, head, rest - by_method))
        return project.universe.joined(by_name, by_method, by_module, by_base)

    def _taking(self, path: str, name: str, among: FileSet) -> Collection[str]:
        """Those files that may access a class of a file through its module: ``module.Class``."""
        word = name.encode()
        if word not in self._classes_of(path):
            # An inner function is not an attribute of the outer one.
            return ()
        # For few files no index is built.
        if name[0].isupper() and (len(among) > _FEW or "_taken" in vars(self)):
            return among & FileSet(self.project.universe, self._taken.get(word, 0))
        return [other for other in among if word in self.project.data(other)]

    def _classes_of(self, path: str) -> frozenset[bytes]:
        """The names of the classes that a file defines."""
        if path not in self._classes:
            self._classes[path] = frozenset(_CLASS.findall(self.project.data(path)))
        return self._classes[path]

    @cached_property
    def _taken(self) -> dict[bytes, int]:
        """The files, as bits, in which a capitalized name follows a dot, or is a whole text: ``getattr(module,
        "Class")``."""
        found: dict[bytes, int] = {}
        for number, path in enumerate(self.project.universe.paths):
            data = self.project.data(path)
            for name in {one for pattern in _TAKEN for one in pattern.findall(data)}:
                found[name] = found.get(name, 0) | 1 << number
        return found

    def _called_methods(self, name: str) -> Mapping[str, int]:
        """The files that a method call by name alone may reach, with the possible calling files as bits."""
        if name not in self._held:
            found: dict[str, int] = {}
            for other in self.project.calling(name):
                for holder in self._method_holders(other, name):
                    found[holder] = found.get(holder, 0) | 1 << self.project.universe.numbers[other]
            self._held[name] = found
        return self._held[name]

    def _calls_from(self, other: str, path: str, scope: str) -> tuple[CallSite, ...]:
        """The calls in a file of a function of another file, or of its own."""
        key = (other, path, scope)
        if key not in self._calls_between:
            wanted = scope.removesuffix(".__init__").rpartition(".")[2]
            # Many files mention a call only in their documentation: that is found before parsing.
            calls = self.project.flow(other).calls if self.sketch.may_call_in(other, wanted) else ()
            named = (call for call in calls if call.callee.name.rpartition(".")[2] == wanted)
            self._calls_between[key] = tuple(call for call in named if self._goes_to(other, call, path, scope))
        return self._calls_between[key]

    def _goes_to(self, other: str, call: CallSite, path: str, scope: str) -> bool:
        """Whether a function of one file is among the `targets` of a call in another, without reading further files."""
        callee = call.callee
        named = (scope, f"{scope}.__init__")
        if callee.kind == "import":
            resolved = self.project.resolve(other, callee.name)
            function = self.function(*resolved) if resolved and resolved[0] == path and resolved[1] else None
            return function is not None and function.scope in named
        if callee.kind == "method" and callee.name not in _COMMON_METHODS and callee.name != "__init__":
            functions = self.project.functions(path) if path in self._method_holders(other, callee.name) else {}
            return any("." in one and one in functions and one.rpartition(".")[2] == callee.name for one in named)
        return any(where == path and function.scope in named for where, function in self.targets(other, callee))

    def trains(self, path: str, scope: str, depth: int = 0) -> bool:
        """Whether a function computes gradients, directly or through its callees."""
        key = (path, scope)
        if key not in self._trains:
            self._trains[key] = False
            # The text of the project rules out most functions before any of their files is parsed.
            self._trains[key] = self.sketch.may_come_to(key, BACKWARD) and self._finds_training(path, scope, depth)
        return self._trains[key]

    def _finds_training(self, path: str, scope: str, depth: int) -> bool:
        function = self.function(path, scope)
        if function is not None and function.backward_lines and learns(self.project, path):
            return True
        return depth < _DEPTH and self._any_trains(path, self.project.calls_in(path, scope), depth)

    def _any_trains(self, path: str, calls: Iterable[CallSite], depth: int = 0) -> bool:
        return any(
            self.trains(where, function.scope, depth + 1)
            for call in calls
            if self.may_lead(path, call.callee, BACKWARD)
            for where, function in self.targets(path, call.callee)
        )
