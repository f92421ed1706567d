"""The view of a project for rules: the program, the concepts, and the creation of findings for places in it."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING

from ldlm_lint.code.expressions import end_of, place_of
from ldlm_lint.code.table import COLUMNS, column_of, line_of
from ldlm_lint.model import Claim, Confidence, Finding, Fix, Related, Rule, Span
from ldlm_lint.program.atoms import MASK
from ldlm_lint.program.modules import Module
from ldlm_lint.program.of_project import tree_of
from ldlm_lint.requirements import TorchRange
from ldlm_lint.source import Kind, Source

if TYPE_CHECKING:
    from ldlm_lint.checkers.by_program.loader_calls import LoaderCalls
    from ldlm_lint.concepts.agreement import Agreement
    from ldlm_lint.concepts.block_sizes import BlockSizes
    from ldlm_lint.concepts.built_classes import BuiltClasses
    from ldlm_lint.concepts.changing_datasets import ChangingDatasets
    from ldlm_lint.concepts.checkpoints import Checkpoints, Series
    from ldlm_lint.concepts.class_builders import ClassBuilders
    from ldlm_lint.concepts.configured_numbers import ConfiguredNumbers
    from ldlm_lint.concepts.every_step import EveryStep
    from ldlm_lint.concepts.frozen_parts import FrozenParts
    from ldlm_lint.concepts.host_models import HostModels
    from ldlm_lint.concepts.host_side import HostSide
    from ldlm_lint.concepts.joined import Joined
    from ldlm_lint.concepts.left_off import LeftOff
    from ldlm_lint.concepts.lightning_rhythm import LightningRhythm
    from ldlm_lint.concepts.load_origins import LoadOrigins
    from ldlm_lint.concepts.local_ranks import LocalRanks
    from ldlm_lint.concepts.measuring import Measuring
    from ldlm_lint.concepts.micro_batches import MicroBatches
    from ldlm_lint.concepts.old_torch import OldTorch
    from ldlm_lint.concepts.optimizer_steps import OptimizerSteps
    from ldlm_lint.concepts.pinned_batches import PinnedBatches
    from ldlm_lint.concepts.precision import Autocasts
    from ldlm_lint.concepts.rare_places import RarePlaces
    from ldlm_lint.concepts.read_settings import ReadSettings
    from ldlm_lint.concepts.recorded_runs import RecordedRuns
    from ldlm_lint.concepts.reduction import Reduction
    from ldlm_lint.concepts.replaced_load import ReplacedLoad
    from ldlm_lint.concepts.replica_runs import ReplicaRuns
    from ldlm_lint.concepts.replicas import Replicas
    from ldlm_lint.concepts.safe_globals import SafeGlobals
    from ldlm_lint.concepts.schedules import Schedules
    from ldlm_lint.concepts.taken_branches import TakenBranches
    from ldlm_lint.concepts.texts import Texts
    from ldlm_lint.concepts.trained_anew import TrainedAnew
    from ldlm_lint.concepts.training import Training
    from ldlm_lint.concepts.training_loops import TrainingLoops
    from ldlm_lint.concepts.warm_ups import WarmUps
    from ldlm_lint.concepts.whole_models import WholeModels
    from ldlm_lint.program import Program
    from ldlm_lint.program.queries import Queries
    from ldlm_lint.project.filesets import FileSet
    from ldlm_lint.project.questions import Context
    from ldlm_lint.shell.launch_code import Code


_KEPT = 8
"""Files whose texts and trees are in memory: findings come file by file, and a tree is a hundred times as large as its text."""

Block = ast.Try | ast.With
"""Statements that may catch what is raised inside of them."""


class _File:
    """The text of a file, and its tree on demand."""

    def __init__(self, source: Source) -> None:
        self.source = source

    @cached_property
    def expressions(self) -> dict[int, list[ast.expr]]:
        """The expressions by the places where they begin, the longest first."""
        found: dict[int, list[ast.expr]] = {}
        self.blocks: list[Block] = []
        self.bound: dict[int, ast.expr] = {}
        self.functions: dict[int, ast.FunctionDef | ast.AsyncFunctionDef] = {}
        self.loops: list[ast.For | ast.AsyncFor | ast.While] = []
        for node in ast.walk(tree_of(self.source)):
            if isinstance(node, ast.expr):
                found.setdefault(place_of(node), []).append(node)
            elif isinstance(node, (ast.Assign, ast.AnnAssign)) and node.value is not None:
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                self.bound.update((place_of(target), node.value) for target in targets)
            elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                self.functions[place_of(node)] = node
            elif isinstance(node, Block):
                self.blocks.append(node)
            elif isinstance(node, (ast.For, ast.AsyncFor, ast.While)):
                self.loops.append(node)
        return found


class View:
    """A project as rules see it; ``context`` has the facts of other analyses."""

    def __init__(self, context: Context) -> None:
        self.context = context
        self.options_of: Callable[[str], Mapping[str, object]] = lambda _: {}
        """The options of rules for a file, by its path."""
        self.linted: frozenset[str] | None = None
        """The files whose findings are asked for; None for all."""
        self._root = context.project.root.rstrip("/")
        self._files: dict[str, _File] = {}

    @property
    def program(self) -> Program:
        """The linked program."""
        return self.context.program

    @cached_property
    def ask(self) -> Queries:
        """The questions about calls, arguments and values."""
        from ldlm_lint.program.queries import Queries

        return Queries(self.program)

    @cached_property
    def reduction(self) -> Reduction:
        """What decides whether gradients are reduced."""
        from ldlm_lint.concepts.reduction import Reduction

        return Reduction(self.training, self.ask)

    @cached_property
    def built_classes(self) -> BuiltClasses:
        """The classes that objects are built of, and the functions that may run."""
        from ldlm_lint.concepts.built_classes import BuiltClasses

        return BuiltClasses(self.ask, self._is_used_outside, self._is_aside)

    def may_run(self, function: int) -> bool:
        """Whether a function may be called; unknown, so true, where the project has no training of its own: then its
        users build what trains."""
        return self.built_classes.may_run(function) or not self._trains_itself

    def may_be_built_here(self, owner: int) -> bool:
        """Whether the project may build an object of a class; what users of a package build, they train."""
        return self._built_here.is_built(owner) or not self._trains_itself

    @cached_property
    def _built_here(self) -> BuiltClasses:
        from ldlm_lint.concepts.built_classes import BuiltClasses

        return BuiltClasses(self.ask, lambda _, name: self.is_named_in_configurations(name), self._is_aside)

    @cached_property
    def _trains_itself(self) -> bool:
        return any(map(self.built_classes.may_run, self.training.steps))

    @cached_property
    def left_off(self) -> LeftOff:
        """The places behind switches that nothing turns on."""
        from ldlm_lint.concepts.left_off import LeftOff

        return LeftOff(self.ask, self._is_used_outside)

    @cached_property
    def frozen_parts(self) -> FrozenParts:
        """The parts of models that do not train."""
        from ldlm_lint.concepts.frozen_parts import FrozenParts
        from ldlm_lint.concepts.untrained import Untrained

        return FrozenParts(self.ask, Untrained(self.training), self.left_off)

    @cached_property
    def whole_models(self) -> WholeModels:
        """Which models a switch of gradients switches as a whole."""
        from ldlm_lint.concepts.whole_models import WholeModels

        return WholeModels(self.ask)

    def _is_used_outside(self, module: Module, name: str) -> bool:
        """Whether a configuration has a name, or users of the package that a module belongs to may use it."""
        return self.context.roles.is_offered(self.path(module)) or self.is_named_in_configurations(name)

    def _is_aside(self, module: Module) -> bool:
        """Whether a module is an example beside a training of the project's own."""
        from ldlm_lint.project.training import is_tutorial

        project = self.context.project
        return is_tutorial(project, self.path(module)) and any(not is_tutorial(project, one) for one in project.training_files)

    @cached_property
    def recorded_runs(self) -> RecordedRuns:
        """The models that run while autograd records."""
        from ldlm_lint.concepts.recorded_runs import RecordedRuns

        return RecordedRuns(self.training, self.ask)

    @cached_property
    def host_models(self) -> HostModels:
        """The models that stay on the host."""
        from ldlm_lint.concepts.host_models import HostModels

        return HostModels(self.ask)

    @cached_property
    def optimizer_steps(self) -> OptimizerSteps:
        """How optimizers step."""
        from ldlm_lint.concepts.optimizer_steps import OptimizerSteps

        return OptimizerSteps(self.ask)

    @cached_property
    def warm_ups(self) -> WarmUps:
        """The runs of models that only warm a device up."""
        from ldlm_lint.concepts.warm_ups import WarmUps

        return WarmUps(self.ask)

    @cached_property
    def old_torch(self) -> OldTorch:
        """The code for a torch that is no longer used."""
        from ldlm_lint.concepts.old_torch import OldTorch

        return OldTorch(self.ask)

    @cached_property
    def block_sizes(self) -> BlockSizes:
        """The sizes of models that stack blocks."""
        from ldlm_lint.concepts.block_sizes import BlockSizes

        return BlockSizes(self.ask)

    def class_at(self, path: str, name: str) -> int | None:
        """The class (key) of a name at the top of a file; None if the file takes part in no training."""
        module = self.module(path)
        scopes = enumerate(module.scopes) if module is not None else ()
        found = (number for number, scope in scopes if scope.kind == "class" and scope.name == name and scope.parent == 0)
        return next((module.base | number for number in found), None) if module is not None else None

    @cached_property
    def joined(self) -> Joined:
        """The paths between functions."""
        from ldlm_lint.concepts.joined import Joined

        return Joined(self.program)

    @cached_property
    def taken_branches(self) -> TakenBranches:
        """Which branches calls lead to."""
        from ldlm_lint.concepts.taken_branches import TakenBranches

        return TakenBranches(self.ask)

    @cached_property
    def replica_runs(self) -> ReplicaRuns:
        """Whether models run through their wrappers."""
        from ldlm_lint.concepts.replica_runs import ReplicaRuns

        return ReplicaRuns(self.ask)

    @cached_property
    def changing_datasets(self) -> ChangingDatasets:
        """The datasets whose items change between passes."""
        from ldlm_lint.concepts.changing_datasets import ChangingDatasets

        return ChangingDatasets(self.loaders.concept, self.loop_around)

    @cached_property
    def pinned_batches(self) -> PinnedBatches:
        """The batches that torch cannot pin."""
        from ldlm_lint.concepts.pinned_batches import PinnedBatches

        return PinnedBatches(self.ask)

    @cached_property
    def replicas(self) -> Replicas:
        """How models come on several GPUs."""
        from ldlm_lint.concepts.replicas import Replicas

        return Replicas(self.training, self.ask)

    @cached_property
    def replaced_load(self) -> ReplacedLoad:
        """The replacements of `torch.load`."""
        from ldlm_lint.concepts.replaced_load import ReplacedLoad

        return ReplacedLoad(self.program)

    @cached_property
    def safe_globals(self) -> SafeGlobals:
        """The allow-lists of classes for loads."""
        from ldlm_lint.concepts.safe_globals import SafeGlobals

        return SafeGlobals(self.ask)

    @cached_property
    def checkpoints(self) -> Checkpoints:
        """The checkpoint series."""
        from ldlm_lint.concepts.checkpoints import Checkpoints

        return Checkpoints(self.program, self.ask)

    @cached_property
    def load_origins(self) -> LoadOrigins:
        """Where the files come from that are loaded."""
        from ldlm_lint.concepts.load_origins import LoadOrigins

        return LoadOrigins(self.ask, self.checkpoints.patterns)

    def is_pruned(self, series: Series) -> bool:
        """Whether code in the programs of a series may remove its files, by the program's values or the words in the
        files."""
        module = self.program.module_of(series.call)
        near = self.program.together.programs_of(module)
        if self.checkpoints.is_surely_pruned(series, near):
            return True
        around = self.context.project.around(self.path(module))
        if not self.context.project.any_skim(around, "prunes"):
            return False
        pruned = self.checkpoints.may_be_pruned(series, near)
        return pruned is None or pruned

    @cached_property
    def trained_anew(self) -> TrainedAnew:
        """The loops that train one model after the other."""
        from ldlm_lint.concepts.trained_anew import TrainedAnew

        return TrainedAnew(self.program)

    @cached_property
    def measuring(self) -> Measuring:
        """Measured code."""
        from ldlm_lint.concepts.measuring import Measuring

        return Measuring(self.program)

    @cached_property
    def agreement(self) -> Agreement:
        """Values that the ranks have agreed on."""
        from ldlm_lint.concepts.agreement import Agreement

        return Agreement(self.program)

    @cached_property
    def host_side(self) -> HostSide:
        """Values that are surely on the host."""
        from ldlm_lint.concepts.host_side import HostSide

        return HostSide(self.training)

    @property
    def training(self) -> Training:
        """The training steps."""
        return self.context.training

    @cached_property
    def rare_places(self) -> RarePlaces:
        """Code that runs far less often than the code around it."""
        from ldlm_lint.concepts.rare_places import RarePlaces

        return RarePlaces(self.training)

    @cached_property
    def class_builders(self) -> ClassBuilders:
        """The classes that something builds."""
        from ldlm_lint.concepts.class_builders import ClassBuilders

        return ClassBuilders(self.program, self.training.frequency.passes, lambda name: name.encode() in self._configured_words)

    @cached_property
    def every_step(self) -> EveryStep:
        """What surely runs in every training step."""
        from ldlm_lint.checkers.by_program.switched_off import SwitchedOff
        from ldlm_lint.concepts.every_step import EveryStep

        return EveryStep(self.training, self.ask, self.rare_places, self.class_builders, SwitchedOff(self))

    @cached_property
    def training_loops(self) -> TrainingLoops:
        """The loops that train."""
        from ldlm_lint.concepts.training_loops import TrainingLoops

        return TrainingLoops(self.training)

    @cached_property
    def read_settings(self) -> ReadSettings:
        """The values that the program reads from configuration files."""
        from ldlm_lint.concepts.read_settings import ReadSettings

        return ReadSettings(self.program)

    def trainers_calling(self, path: str, position: str) -> FileSet:
        """The files that train with the object created by a call (``line:column`` in a file), by the callers of its
        function.

        Links that no import shows, such as ``__import__(name)``, are known only to the program.
        """
        from ldlm_lint.concepts.handed import modules_above

        line, _, column = position.partition(":")
        module, found = self.module(path), []
        call = self.call_at(module, int(line) << COLUMNS | int(column)) if module is not None and line.isdecimal() else None
        if module is not None and call is not None:
            found = [self.context.project.trainers_of(self.path(one)) for one in modules_above(self.program, module.base | call)]
        return self.context.project.universe.joined(*found)

    def users_may_add(self, call: int) -> bool:
        """Whether the unpacked arguments of a call are unknown only because a user's configuration file fills them."""
        module = self.program.module_of(call)
        row = module.nodes[call & MASK]
        unpacked = [self.ask.mappings.keys_at(module.base | value, call) for name, value in row[3] if name is None]
        opened_by = {one for keys in unpacked for one in keys.opened_by}
        is_read = bool(opened_by) and all(one and self.read_settings.is_read(one) for one in opened_by)
        return is_read and not any(module.nodes[one][0] == "star" for one in row[2])

    def is_named_in_configurations(self, *names: str) -> bool:
        """Whether a configuration file of the project, or a script, mentions one of these settings."""
        project = self.context.project
        words = [re.compile(rb"(?<![\w-])%s(?![\w-])" % re.escape(one).encode()) for one in names]
        return any(word.search(project.data(path)) for path in project.others for word in words)

    @cached_property
    def _configured_words(self) -> frozenset[bytes]:
        """The words of the project's configuration files and scripts."""
        project = self.context.project
        return frozenset(word for path in project.others for word in re.findall(rb"[A-Za-z_]\w*", project.data(path)))

    @cached_property
    def texts(self) -> Texts:
        """The texts that expressions are, to the last character."""
        from ldlm_lint.concepts.texts import Texts

        return Texts(self.ask, self._is_plainly_formatted)

    @cached_property
    def micro_batches(self) -> MicroBatches:
        """How many micro-batches make a step."""
        from ldlm_lint.concepts.micro_batches import MicroBatches

        return MicroBatches(self.ask)

    @cached_property
    def local_ranks(self) -> LocalRanks:
        """How programs learn their local ranks."""
        from ldlm_lint.concepts.local_ranks import LocalRanks

        return LocalRanks(self.ask)

    @cached_property
    def schedules(self) -> Schedules:
        """The schedules of the learning rate."""
        from ldlm_lint.concepts.schedules import Schedules

        return Schedules(self.ask)

    @cached_property
    def launches_of_python(self) -> tuple[tuple[str, Code], ...]:
        """The files whose Python starts trainings, with each command as a script; the program is linked only if one
        may."""
        from ldlm_lint.checkers.by_program.python_launches import LAUNCHES

        if not self.context.project.showing(LAUNCHES):
            return ()
        from ldlm_lint.checkers.by_program.launch_codes import codes_of

        return tuple(codes_of(self))

    def _is_plainly_formatted(self, module: Module, number: int) -> bool:
        """Whether the fields of an f-string have no formats of their own."""
        written = self.expressions(module).get(module.table.places[number], ())
        strings = [one for one in written if isinstance(one, ast.JoinedStr)]
        fields = [part for one in strings for part in one.values if isinstance(part, ast.FormattedValue)]
        return bool(strings) and all(one.format_spec is None and one.conversion == -1 for one in fields)

    @cached_property
    def configured_numbers(self) -> ConfiguredNumbers:
        """The numbers of the project's configurations."""
        from ldlm_lint.concepts.configured_numbers import ConfiguredNumbers

        return ConfiguredNumbers(self.context.project, self.read_settings)

    @cached_property
    def lightning_rhythm(self) -> LightningRhythm:
        """How often Trainers of Lightning save and validate."""
        from ldlm_lint.concepts.lightning_rhythm import LightningRhythm

        return LightningRhythm(self.ask)

    @cached_property
    def loaders(self) -> LoaderCalls:
        """The data loaders, as rules look at them."""
        from ldlm_lint.checkers.by_program.loader_calls import LoaderCalls

        return LoaderCalls(self)

    @cached_property
    def autocasts(self) -> Autocasts:
        """The dtypes of autocasts."""
        from ldlm_lint.concepts.precision import Autocasts

        return Autocasts(self.ask)

    def path(self, module: Module) -> str:
        """The absolute path of a module."""
        return f"{self._root}/{module.path}"

    def facts(self, module: Module) -> Mapping[str, object]:
        """The options of rules for a module, and the ends of the range of torch that it runs on, see `Config.facts`."""
        return self.context.facts_of(self.path(module))

    def torch_of(self, module: Module) -> TorchRange:
        """The versions of torch that a module runs on."""
        return self.torch_on(self.path(module))

    def torch_on(self, path: str) -> TorchRange:
        """The versions of torch that a file runs on."""
        choice = self.context.torch.of(path)
        return TorchRange(choice.oldest, choice.newest)

    def source(self, module: Module) -> Source:
        """The text of a module."""
        return self._file(module).source

    def expressions(self, module: Module) -> Mapping[int, list[ast.expr]]:
        """The expressions of a module as written, by the places where they begin, the longest first."""
        return self._file(module).expressions

    def blocks_around(self, module: Module, place: int) -> list[Block]:
        """The ``try`` and ``with`` statements that a place is inside of."""
        file = self._file(module)
        return [one for one in (file.blocks if file.expressions else ()) if place_of(one) <= place < end_of(one)]

    def bound_expression(self, module: Module, place: int) -> ast.expr | None:
        """The value that the assignment at a place binds to a name, attribute or item."""
        file = self._file(module)
        return file.bound.get(place) if file.expressions else None

    def function_as_written(self, module: Module, place: int) -> ast.FunctionDef | ast.AsyncFunctionDef | None:
        """The function whose ``def`` is at a place."""
        file = self._file(module)
        return file.functions.get(place) if file.expressions else None

    def loop_around(self, module: Module, place: int) -> int:
        """The innermost statement of a loop that a place is in, by its number; -1 if there is none."""
        file = self._file(module)
        around = [place_of(one) for one in (file.loops if file.expressions else ()) if place_of(one) <= place < end_of(one)]
        begin = max(around, default=0)
        return next((number for number, loop in enumerate(module.table.loops) if begin and loop.place == begin), -1)

    def _file(self, module: Module) -> _File:
        path = self.path(module)
        known = self._files.pop(path, None)
        if known is None:
            known = _File(Source.from_bytes(path, self.context.project.data(path), Kind.PYTHON))
        self._files[path] = known
        if len(self._files) > _KEPT:
            del self._files[next(iter(self._files))]
        return known

    def offset(self, module: Module, place: int) -> int:
        """The offset of a place in its file, in bytes."""
        return self.source(module).offset(line_of(place), column_of(place))

    def span(self, module: Module, place: int, end: int = 0) -> Span:
        """The span from a place to an end; to the end of the expression that begins there if no end is known."""
        source = self.source(module)
        start = self.offset(module, place)
        stop = self.offset(module, end or self._end(module, place))
        return source.span(start, max(stop, start))

    def _end(self, module: Module, place: int) -> int:
        """The end of the largest expression that begins at a place: a table keeps it only for calls."""
        written = self.expressions(module).get(place)
        return max(map(end_of, written)) if written else place

    def line(self, module: Module, place: int) -> str:
        """The text of the line of a place, without the line ending."""
        lines = self.source(module).lines
        number = line_of(place)
        return lines[number - 1].rstrip() if 0 < number <= len(lines) else ""

    def text(self, module: Module, place: int, end: int) -> str:
        """The code from a place to an end."""
        source = self.source(module)
        return source.slice(source.span(self.offset(module, place), self.offset(module, end)))

    def module(self, path: str) -> Module | None:
        """The module of an absolute path, if it takes part in a training."""
        module = self.program.modules.by_path.get(path.removeprefix(f"{self._root}/"))
        return module if module is not None and module.index not in self.program.modules.dropped else None

    def function_at(self, module: Module, place: int) -> int:
        """The innermost function (key) around a place; the module itself is scope 0."""
        found = 0
        for number, scope in enumerate(module.scopes):
            if number and scope.kind == "def" and scope.place <= place < scope.end and scope.place >= module.scopes[found].place:
                found = number
        return module.base | found

    def place_at(self, module: Module, offset: int) -> int:
        """The place of an offset in a file, in bytes."""
        source = self.source(module)
        line = source.position(offset)[0]
        start = source.line_starts[line - 1]
        return (line << COLUMNS) | len(source.data[start:offset].decode(source.encoding, errors="replace").encode())

    def call_at(self, module: Module, place: int) -> int | None:
        """The call (row) that begins at a place, the outermost one."""
        return max((call for call, site in module.table.sites.items() if site.place == place), default=None)

    def call_of(self, module: Module, place: int, end: int) -> int | None:
        """The call (row) from a place to an end."""
        return next((call for call, site in module.table.sites.items() if site.place == place and site.end == end), None)

    def call_span(self, call: int) -> Span:
        """The span of a call, by its key."""
        module = self.program.module_of(call)
        site = module.table.sites[call & MASK]
        return self.span(module, site.place, site.end)

    def call_text(self, call: int) -> str:
        """The code of a call, by its key."""
        module = self.program.module_of(call)
        site = module.table.sites[call & MASK]
        return self.text(module, site.place, site.end)

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
        return Finding(
            rule.symbol, rule.code, span, tuple(args.items()), confidence, tuple(related), fix, tuple(claims), confirmed=True
        )
