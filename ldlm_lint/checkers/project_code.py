"""The view of a project for rules: the program, the concepts, and the creation of findings for places in it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property
from typing import TYPE_CHECKING

from ldlm_lint.budget import OverBudgetError
from ldlm_lint.code.table import COLUMNS, line_of
from ldlm_lint.concepts.assumed_values import AssumedValues
from ldlm_lint.model import Claim, Confidence, Finding, Fix, Related, Rule, Span
from ldlm_lint.patterns import lazily
from ldlm_lint.program.codebase import Codebase
from ldlm_lint.program.handles import Call, Expr, Function, expression
from ldlm_lint.program.modules import Module
from ldlm_lint.program.of_project import program_of, program_of_file, table_of_file
from ldlm_lint.project.training_files import TrainingFiles
from ldlm_lint.project.traits import Trait
from ldlm_lint.requirements import TorchRange
from ldlm_lint.source import Kind, Source
from ldlm_lint.tables import compiles_on

if TYPE_CHECKING:
    from ldlm_lint.code import Table
    from ldlm_lint.program import Program
    from ldlm_lint.program.spots import Spot
    from ldlm_lint.program.surroundings import Configurations, Files, Trainings
    from ldlm_lint.project.questions import Context
    from ldlm_lint.shell.launch_code import Code


_WORD = lazily(rb"[\w-]+")
STARTING = (b"subprocess", b"os.system", b"os.exec", b"Popen")
_STARTS = Trait(
    re.compile(rb"\b(?:subprocess|os\.system|os\.exec|Popen)"),
    STARTING,
    code=True,
    beside=re.compile(rb"torchrun|torch\.distributed\.(?:run|launch)|[\"'](?:accelerate|deepspeed|python)|sys\.executable"),
)
"""Code that may start a training."""
_KEPT = 8
"""Files whose texts are in memory: findings come file by file."""


class ProjectCode(Codebase):
    """A project as rules see it; ``context`` has the facts of other analyses."""

    def __init__(self, context: Context) -> None:
        self.context = context
        self.options_of: Callable[[str], Mapping[str, object]] = lambda _: {}
        """The options of rules for a file, by its path."""
        self.linted: frozenset[str] | None = None
        """The files whose findings are asked for; None for all."""
        self._root = context.project.root.rstrip("/")
        self._sources: dict[str, Source] = {}
        self._given_up: str | None = None
        self._begins: dict[int, dict[int, int]] = {}
        """The outermost expressions of files by their places."""

    @cached_property
    def program(self) -> Program:
        """The linked program of the project's Python files, with all that concepts assume of it."""
        return self._settled()

    def _settled(self) -> Program:
        if self._given_up is not None:
            # A query that took too long once takes too long for every caller.
            raise OverBudgetError(self._given_up)
        self._given_up = "linking the project and finding its training steps took too long"
        # The assumptions ask it, too.
        program = self.__dict__["program"] = self._linked()
        try:
            # The only concept that adds to the values of a program.
            _ = self[AssumedValues]
        except BaseException:
            del self.__dict__["program"]
            raise
        program.stay_settled()
        self._given_up = None
        return program

    def _linked(self) -> Program:
        return program_of(self.context.project)

    @property
    def files(self) -> Files:
        """The configuration files of the project."""
        return self.context.project

    @property
    def configurations(self) -> Configurations:
        """The configurations of OpenMMLab's runners."""
        return self.context.mm_configs

    def python_files(self) -> list[str]:
        """The Python files of the project by their paths, also those that take part in no training."""
        return sorted(self.context.project.files)

    def files_with(self, *words: bytes) -> Iterator[tuple[ProjectCode, Module]]:
        """The linted files that contain one of these words, each with its program: one of its own for a file that takes
        part in no training."""
        project = self.context.project
        for path in self.python_files():
            if (self.linted is None or path in self.linted) and not project.is_test(path) and any(one in project.data(path) for one in words):
                code = self if self.module(path) is not None else LoneFile(self.context, path)
                module = code.module(path)
                if module is not None:
                    yield code, module

    def table_of(self, path: str) -> Table | None:
        """The table of a Python file of the project; None if it does not parse."""
        return table_of_file(self.context.project, path)

    def source_of(self, path: str) -> Source:
        """The text of a Python file of the project."""
        known = self._sources.pop(path, None) or Source.from_bytes(path, self.context.project.data(path), Kind.PYTHON)
        self._sources[path] = known
        if len(self._sources) > _KEPT:
            del self._sources[next(iter(self._sources))]
        return known

    @cached_property
    def trainings(self) -> Trainings:
        """What the files show of the repository's trainings."""
        return TrainingFiles(self.context)

    def is_used_outside(self, module: Module, name: str) -> bool:
        """Whether a configuration has a name, or users of the package that a module belongs to may use it."""
        return self.context.roles.is_offered(self.path(module)) or self.is_named_in_configurations(name)

    def is_aside(self, module: Module) -> bool:
        """Whether a module is an example beside a training of the project's own."""
        from ldlm_lint.project.training import is_tutorial

        project = self.context.project
        return is_tutorial(project, self.path(module)) and any(not is_tutorial(project, one) for one in project.training_files)

    def call_written_at(self, path: str, position: str) -> Call | None:
        """The call at ``line:column`` of a file; None if the file takes part in no training."""
        line, _, column = position.partition(":")
        module = self.module(path)
        call = self.call_at(module, int(line) << COLUMNS | int(column)) if module is not None and line.isdecimal() else None
        return Call(self, module.base | call) if module is not None and call is not None else None

    def is_named_in_configurations(self, *names: str) -> bool:
        """Whether a configuration file of the project, or a script, mentions one of these settings."""
        return any(one.encode() in self._settings_named if _WORD.fullmatch(one.encode()) else self._is_mentioned(one) for one in names)

    def _is_mentioned(self, name: str) -> bool:
        word = re.compile(rb"(?<![\w-])%s(?![\w-])" % re.escape(name).encode())
        return any(word.search(self.context.project.data(path)) for path in self.context.project.others)

    @cached_property
    def _settings_named(self) -> frozenset[bytes]:
        """The words with their hyphens in the project's configuration files and scripts."""
        project = self.context.project
        return frozenset(word for path in project.others for word in re.findall(rb"[\w-]+", project.data(path)))

    @cached_property
    def launches_of_python(self) -> tuple[tuple[str, Code], ...]:
        """The files whose Python starts trainings, with each command as a script; the program is linked only if one
        may."""
        from ldlm_lint.checkers.python_launches import codes_of

        return tuple(codes_of(self)) if self.context.project.showing(_STARTS) else ()

    def path(self, module: Module) -> str:
        """The absolute path of a module."""
        return f"{self._root}/{module.path}"

    def facts(self, module: Module) -> Mapping[str, object]:
        """The options of rules for a module, and the ends of the range of torch that it runs on, see `Config.facts`."""
        return self.facts_on(self.path(module))

    def facts_on(self, path: str) -> Mapping[str, object]:
        """The same for a file."""
        return self.context.facts_of(path)

    def torch_of(self, module: Module) -> TorchRange:
        """The versions of torch that a module runs on."""
        return self.torch_on(self.path(module))

    def torch_on(self, path: str) -> TorchRange:
        """The versions of torch that a file runs on."""
        choice = self.context.torch.of(path)
        return TorchRange(choice.oldest, choice.newest)

    def compiles_on_its_python(self, module: Module) -> bool:
        """Whether no torch that the project chooses for a module refuses to compile on the Python that it chooses: the
        call of `torch.compile` itself raises then."""
        python = self.context.torch.python_of(self.path(module)).newest
        limits = [compiles_on(one.newest) for one in self.context.torch.of(self.path(module)).bounds if one.newest is not None]
        return python is None or all(limit is None or limit >= python for limit in limits)

    def line_span(self, module: Module, place: int) -> Span:
        """The line of a place."""
        return self.context.line_span(self.path(module), line_of(place))

    def source(self, module: Module) -> Source:
        """The text of a module."""
        return self.source_of(self.path(module))

    def function_around(self, span: Span) -> Function | None:
        """The function at a place; None if its file takes part in no training."""
        module = self.module(span.path)
        return None if module is None else Function(self, self.function_at(module, self.place_at(module, span.start)))

    def module(self, path: str) -> Module | None:
        """The module of an absolute path, if it takes part in a training."""
        module = self.program.modules.by_path.get(path.removeprefix(f"{self._root}/"))
        return module if module is not None and module.index not in self.program.modules.dropped else None

    def expression_at(self, span: Span) -> Expr | None:
        """The outermost expression that begins where a span does; None in a file outside of all trainings."""
        module = self.module(span.path)
        if module is None:
            return None
        if module.index not in self._begins:
            self._begins[module.index] = {place: number for number, place in enumerate(module.table.places)}
        number = self._begins[module.index].get(self.place_at(module, span.start))
        return expression(self, module.base | number) if number is not None else None

    def each_step(self, step: Spot, own: Module) -> str:
        """How often the code of a step runs, as text for a message about a place in ``own``."""
        return self.context.each_step(self.path(step.function.module), step.line, self.path(own))

    def described(self, module: Module, place: int, own: Module) -> str:
        """The code of a line and its place, as text for a message about a place in ``own``."""
        return self.context.described(self.path(module), line_of(place), self.path(own))

    def finding(
        self,
        rule: Rule,
        span: Span,
        args: Mapping[str, object],
        related: Iterable[Related] = (),
        *,
        claims: Iterable[Claim] = (),
        fix: Fix | None = None,
        confidence: Confidence = Confidence.MEDIUM,
    ) -> Finding:
        """A finding at a span; its ``claims`` are checked by the other analyses of the project."""
        return Finding(rule.symbol, rule.code, span, tuple(args.items()), confidence, tuple(related), fix, tuple(claims))


class LoneFile(ProjectCode):
    """A file of a project as a program of its own."""

    def __init__(self, context: Context, path: str) -> None:
        super().__init__(context)
        self._path = path

    def _linked(self) -> Program:
        return program_of_file(self.context.project, self._path)
