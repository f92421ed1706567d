"""Whether a confirmed path leads from the related places of findings to the findings: judged by the program's own calls,
imports, launches and readers of configurations, not by what a rule claims.

A related place is accounted for if it

- is in the finding's function, class or configuration file, or in one that contains it,
- is in a function that calls the finding's function, directly or through others, or is called by it, or both are called
  by one caller of the finding's function that passes on a value,
- is in the code of a module or class (a definition), and the finding's module imports that module, or is imported by it,
- is in a file that a launch, a sourcing script or a reader of configurations joins with the finding's file,
- says which versions of torch the finding's file may run with.

A note about a file on the disk is joined by the file's path instead (`ldlm_lint.concepts.file_paths`), or by what is in it
(`ldlm_lint.concepts.own_entries`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from ldlm_lint.budget import deep
from ldlm_lint.concepts.reach import Reach
from ldlm_lint.discover import kind_of_name
from ldlm_lint.model import Report, Span
from ldlm_lint.program.atoms import MASK
from ldlm_lint.project import Project
from ldlm_lint.project.questions import Context
from ldlm_lint.source import Kind

_OF_ONE_FILE = frozenset({"the project writes the file here", "the project writes such entries here"})


class Unaccounted(NamedTuple):
    """A related place without a path, as text."""

    rule: str
    finding: str
    related: str
    note: str


def context_of(root: Path) -> Context:
    """The analyses of the project that a folder is."""
    found = {path.as_posix(): kind_of_name(path.as_posix()) for path in sorted(root.rglob("*")) if path.is_file() and ".git" not in path.parts}
    texts = {path: Path(path).read_bytes() for path, kind in found.items() if kind is not None}
    python = {path: data for path, data in texts.items() if found[path] is Kind.PYTHON}
    others = {path: kind for path, kind in found.items() if kind is not None and kind is not Kind.PYTHON}
    return Context(Project(root.as_posix(), python, texts, None, others))


class RelatedPlaces:
    """The paths between places of a project."""

    def __init__(self, root: Path) -> None:
        self.context = context_of(root)
        self._above: dict[int, frozenset[int]] = {}
        with deep():
            # What a training step reaches is known once its calls were followed.
            _ = self.context.view[Reach]

    def unaccounted(self, report: Report) -> Iterator[Unaccounted]:
        """The related places of a report's findings without a path."""
        for finding in report.findings:
            for related in finding.related:
                if related.message in _OF_ONE_FILE:
                    continue
                with deep():
                    is_joined = self.are_joined(finding.span, related.span)
                if not is_joined:
                    yield Unaccounted(finding.rule, _shown(report, finding.span), _shown(report, related.span), related.message)

    def are_joined(self, one: Span, other: Span) -> bool:
        """Whether a confirmed path joins two places."""
        if _is_python(one.path) and _is_python(other.path):
            return self._joined_by_calls(one, other)
        pairs = ((one.path, other.path), (other.path, one.path))
        return one.path == other.path or any(self._joined_by_runs(*pair) or self._names(*pair) or self._bounds(*pair) for pair in pairs)

    def _bounds(self, path: str, other: str) -> bool:
        """Whether a file says which torch a module may run with."""
        return _is_python(path) and any(bound.path == other for bound in self.context.torch.of(path).bounds)

    def _names(self, path: str, other: str) -> bool:
        """Whether scripts run in one shell with another, since one sources the other or a third one sources both, or a
        configuration names the class of a module by its path."""
        project = self.context.project
        if project.others.get(path) is Kind.SHELL:
            together = self._sourced_together(path)
            return other in together or any(self._joined_by_runs(one, other) for one in together - {path})
        return _is_python(other) and re.search(rb"\b%s\.\w" % re.escape(Path(other).stem).encode(), project.data(path)) is not None

    def _sourced_together(self, path: str) -> set[str]:
        project = self.context.project
        scripts = [one for one, kind in project.others.items() if kind is Kind.SHELL]
        sources = {(one, two) for one in scripts for two in scripts if re.search(rb"(source|\.)[^\n]*" + re.escape(Path(two).name).encode(), project.data(one))}
        seen, todo = {path}, [path]
        while todo:
            at = todo.pop()
            fresh = {two if one == at else one for one, two in sources if at in (one, two)} - seen
            seen |= fresh
            todo += fresh
        return seen

    def _joined_by_calls(self, one: Span, other: Span) -> bool:
        first, second = self._function(one), self._function(other)
        if first is None or second is None:
            # A file that takes no part in a training has no table: its imports have to do.
            return one.path == other.path or self._imports(one.path, other.path)
        if first == second or self._contains(first, second) or self._contains(second, first):
            return True
        if second in self._callers(first) or first in self._callers(second):
            return True
        if self._callers(first) & self._callers(second) or self._share_a_class(first, second):
            return True
        if self._is_definition(first) or self._is_definition(second):
            return one.path == other.path or self._imports(one.path, other.path)
        if one.path == other.path and self._callers(first) == {first} and self._callers(second) == {second}:
            # Functions of a library: its users call them in one process.
            return True
        return self._reads_property(first, second) or self._reads_property(second, first)

    def _function(self, span: Span) -> int | None:
        view = self.context.view
        module = view.module(span.path)
        return None if module is None else view.function_at(module, view.place_at(module, span.start))

    def _contains(self, outer: int, inner: int) -> bool:
        module = self.context.program.module_of(inner)
        at = inner & MASK
        while at > 0:
            at = module.scopes[at].parent
            if module.base | at == outer and at > 0:
                return True
        return False

    def _is_definition(self, function: int) -> bool:
        """Whether a place is in the code of a module, which runs when it is imported."""
        return function & MASK == 0

    def _share_a_class(self, one: int, other: int) -> bool:
        """Whether two functions, or callers of theirs, are methods of one class or of a class and its base: what one sets
        the other reads."""
        program = self.context.program
        first, second = ({program.owner[caller] for caller in self._callers(function) if caller in program.owner} for function in (one, other))
        return any(a in program.order(b) or b in program.order(a) for a in first for b in second)

    def _reads_property(self, read: int, function: int) -> bool:
        """Whether a function, or a caller of it, reads a property."""
        program = self.context.program
        if read not in program.owner or not program.is_property(read):
            return False
        name = program.module_of(read).scopes[read & MASK].name
        homes = {program.module_of(one).index: program.module_of(one) for one in self._callers(function)}
        return any(row[0] == "attr" and row[2] == name for module in homes.values() for row in module.nodes)

    def _callers(self, function: int) -> frozenset[int]:
        """The functions that lead to a function over confirmed calls, and itself."""
        program = self.context.program
        if function not in self._above:
            seen, todo = {function}, [function]
            while todo:
                one = todo.pop()
                above = {program.function_of(call) for call in (*program.calls_of_function(one), *self._makers(one))}
                outer = self._enclosing(one)
                todo += (above | outer) - seen
                seen |= above | outer
            self._above[function] = frozenset(seen)
        return self._above[function]

    def _makers(self, function: int) -> list[int]:
        """The calls that make an object of a method's class, or of a subclass: frameworks call the methods."""
        program = self.context.program
        found = []
        for owner in program.below(program.owner[function]) if function in program.owner else ():
            for call in program.calls.get(program.module_of(owner).scopes[owner & MASK].name, ()):
                module = program.module_of(call)
                value = program.ask(module.base | module.nodes[call & MASK][1])
                if any(fields[1] == owner for fields in program.atoms.kinds(value, "c")):
                    found.append(call)
        return found

    def _enclosing(self, function: int) -> set[int]:
        """The function that defines an inner one."""
        module = self.context.program.module_of(function)
        parent = module.scopes[function & MASK].parent if function & MASK else -1
        return {module.base | parent} if parent > 0 and module.scopes[parent].kind == "def" else set()

    def _imports(self, one: str, other: str) -> bool:
        project = self.context.project
        return other in project.reach(one) or one in project.reach(other)

    def _joined_by_runs(self, path: str, other: str) -> bool:
        """Whether a program that a script starts, or that reads a configuration, is or reaches another file."""
        entries = set(self._programs(path))
        return other in entries or any(other in self.context.project.reach(entry) for entry in entries) or bool(entries & set(self._programs(other)))

    def _programs(self, path: str) -> Iterable[str]:
        context = self.context
        if _is_python(path):
            return {path, *context.project.importers(path)}
        found = {one.entry for one in context.homes.of(path)} | {one.entry for one in context.launches.of_config(path) if one.entry is not None}
        for program in context.launches.programs:
            if program.entry is not None and program.path == path:
                found.add(program.entry)
        return found


def _is_python(path: str) -> bool:
    return path.endswith((".py", ".ipynb"))


def _shown(report: Report, span: Span) -> str:
    source = report.sources.get(span.path)
    line = source.position(span.start)[0] if source is not None else 0
    return f"{span.path}:{line}"
