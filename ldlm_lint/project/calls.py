"""The call graph of a project by name: who calls whom, what is called again and again, what trains."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from ldlm_lint.project.index import Project
from ldlm_lint.python.flow import Callee, CallSite, Function, ModuleFlow

_DEPTH = 5
_CANDIDATES = 3
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
        self._repeated: dict[tuple[str, str, str], bool] = {}
        self._trains: dict[tuple[str, str], bool] = {}
        self._targets: dict[tuple[str, Callee], tuple[tuple[str, Function], ...]] = {}

    def function(self, path: str, scope: str) -> Function | None:
        """The function of a dotted name in a file; a class gives its constructor."""
        functions = self.project.functions(path)
        return functions.get(scope) or functions.get(f"{scope}.__init__")

    def targets(self, path: str, callee: Callee) -> tuple[tuple[str, Function], ...]:
        """The functions of the project that a call may go to; none for another package's."""
        key = (path, callee)
        if key not in self._targets:
            self._targets[key] = tuple(self._find_targets(path, callee))
        return self._targets[key]

    def _find_targets(self, path: str, callee: Callee) -> Iterator[tuple[str, Function]]:
        if callee.kind in ("def", "self"):
            function = self.function(path, callee.name)
            if function is not None:
                yield path, function
            elif callee.kind == "self":
                yield from self._methods(path, callee.name.rpartition(".")[2])
        elif callee.kind == "import":
            resolved = self.project.resolve(path, callee.name)
            function = self.function(*resolved) if resolved and resolved[1] else None
            if resolved and function is not None:
                yield resolved[0], function
        elif callee.name not in _COMMON_METHODS:
            yield from self._methods(path, callee.name)

    def _methods(self, path: str, name: str) -> Iterator[tuple[str, Function]]:
        """The methods of that name in the files that a file imports; silent where there are too many to tell."""
        holders = [one for one in sorted(self.project.reach(path)) if name in self.project.skim(one).defined]
        # Too many to tell is known from the text, before any of the files is parsed.
        inner = re.compile(rb"^[ \t]+(?:async[ \t]+)?def[ \t]+%s\b" % re.escape(name).encode(), re.M)
        amount = 0
        for one in holders:
            amount += len(inner.findall(self.project.data(one)))
            if amount > _CANDIDATES:
                return
        found = [
            (one, function)
            for one in holders
            for function in self.project.flow(one).functions
            if function.scope.rpartition(".")[2] == name and "." in function.scope
        ]
        if len(found) <= _CANDIDATES:
            yield from found

    def parameter(self, function: Function, call: CallSite, key: int | str) -> str:
        """The parameter that receives an argument; empty where there is none of that name or position."""
        if isinstance(key, str):
            return key if key in function.params else ""
        bound = function.params[:1] in (("self",), ("cls",)) and call.callee.name.rpartition(".")[2] != function.scope
        position = key + 1 if bound else key
        return function.params[position] if position < len(function.params) else ""

    def callers(self, path: str, scope: str) -> Iterator[tuple[str, CallSite]]:
        """The calls of a function (or, for a constructor, of its class) anywhere in the project."""
        wanted = scope.removesuffix(".__init__").rpartition(".")[2]
        for other in self.project.calling(wanted):
            if path not in self.project.reach(other):
                continue
            for call in self.project.flow(other).calls:
                if call.callee.name.rpartition(".")[2] != wanted:
                    continue
                if any(
                    where == path and function.scope in (scope, f"{scope}.__init__")
                    for where, function in self.targets(other, call.callee)
                ):
                    yield other, call

    def repeated(self, path: str, scope: str, within: str = "") -> bool:
        """Whether a function is called in a loop, or by a function that is; calls of ``within`` do not count."""
        key = (path, scope, within)
        if key not in self._repeated:
            self._repeated[key] = False
            self._repeated[key] = scope not in ("", within) and any(
                bool(call.loops) or self.repeated(caller, call.scope, within)
                for caller, call in self.callers(path, scope)
            )
        return self._repeated[key]

    def trains(self, path: str, scope: str, depth: int = 0) -> bool:
        """Whether a function computes gradients, itself or through what it calls."""
        key = (path, scope)
        if key not in self._trains:
            self._trains[key] = False
            function = self.function(path, scope)
            self._trains[key] = bool(function and function.backward_lines) or (
                depth < _DEPTH
                and self._any_trains(
                    path, self.project.calls_in(path, scope), depth
                )
            )
        return self._trains[key]

    def _any_trains(self, path: str, calls: Iterable[CallSite], depth: int = 0) -> bool:
        return any(
            self.trains(where, function.scope, depth + 1)
            for call in calls
            for where, function in self.targets(path, call.callee)
        )

    def loop_trains(self, path: str, scope: str, lines: set[int]) -> bool:
        """Whether one of the loops at these lines of a function computes gradients in its body."""
        function = self.function(path, scope)
        if function is None or not lines:
            return False
        if lines & set(function.backward_lines):
            return True
        flow = self.project.flow(path)
        inside = (call for call in flow.calls if call.scope == scope and lines & set(call.loops))
        return self._any_trains(path, inside) or self._iterates_a_training(flow, scope, lines)

    def _iterates_a_training(self, flow: ModuleFlow, scope: str, lines: set[int]) -> bool:
        """Whether one of the loops goes over a generator that trains: ``for loss in self.steps(): …``."""
        iterated = {
            one.slot.name
            for one in flow.iterations
            if one.slot.kind == "out" and one.scope == scope and one.line in lines
        }
        generators = (call for call in flow.calls if call.position in iterated)
        return any(
            function.yields and self.trains(where, function.scope)
            for call in generators
            for where, function in self.targets(flow.path, call.callee)
        )

    def in_training_loop(self, path: str, scope: str, loops: Iterable[int], depth: int = 0) -> tuple[str, int] | None:
        """The training loop (path, line) that a place stands in, through its callers too; None where it is in none."""
        lines = {line for line in loops if line}
        if self.loop_trains(path, scope, lines):
            return path, min(lines)
        function = self.function(path, scope)
        if function is not None and function.lightning:
            return path, function.line
        if depth >= _DEPTH or not scope:
            return None
        for caller, call in self.callers(path, scope):
            found = self.in_training_loop(caller, call.scope, call.loops, depth + 1)
            if found is not None:
                return found
        return None

    def saves(self, path: str, callee: Callee, depth: int = 0) -> bool:
        """Whether a call ends in a function of the project that writes a checkpoint."""
        for where, function in self.targets(path, callee):
            if function.saves:
                return True
            inner = self.project.calls_in(where, function.scope)
            if depth < 2 and any(self.saves(where, call.callee, depth + 1) for call in inner):
                return True
        return False
