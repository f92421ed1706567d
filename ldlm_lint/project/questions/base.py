"""Shared parts of questions: the verdict, the analyses of a project, and the type of a question."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from ldlm_lint.concepts.micro_batches import MicroBatches
from ldlm_lint.model import Finding, Fix, KnownLaunch, Related, Severity, Span
from ldlm_lint.patterns import lazily
from ldlm_lint.python.skim import without_comments
from ldlm_lint.wording import begins_loop, function_begun, located, quoted

if TYPE_CHECKING:
    from ldlm_lint.checkers.project_code import ProjectCode
    from ldlm_lint.concepts.wait_order import WaitOrder
    from ldlm_lint.configs.document import Path
    from ldlm_lint.program import Program
    from ldlm_lint.project.calls import Calls
    from ldlm_lint.project.class_makers import ClassMakers
    from ldlm_lint.project.config_homes import Homes
    from ldlm_lint.project.config_reads import ConfigReads
    from ldlm_lint.project.engines import Engines
    from ldlm_lint.project.environments import Environments
    from ldlm_lint.project.filesets import FileSet
    from ldlm_lint.project.frameworks import Trainers
    from ldlm_lint.project.group_timeouts import Makers
    from ldlm_lint.project.index import Project
    from ldlm_lint.project.inherited_configs import InheritedConfigs
    from ldlm_lint.project.launches import Launches
    from ldlm_lint.project.mm_configs import MmConfigs
    from ldlm_lint.project.models import Models
    from ldlm_lint.project.named_classes import NamedClasses
    from ldlm_lint.project.ranks import Ranks
    from ldlm_lint.project.roles import Roles
    from ldlm_lint.project.sourcing import Sourcing
    from ldlm_lint.project.torch_versions import TorchVersions
    from ldlm_lint.project.trees import Trees
    from ldlm_lint.project.waiting_ranks import WaitingRanks
    from ldlm_lint.project.wrapped import Wraps
    from ldlm_lint.requirements import TorchVersion

# They set the timeout of a group which exists already.
_SETS_TIMEOUT = ("_set_pg_timeout", "_set_default_timeout")


# Code that starts a training without a visible call.
_STARTS = lazily(
    rb"(?<![a-z])(?:train(?:er|ing)?|fit|learn|finetune|fine_tune|spawn|instantiate|import_module|entrypoint)\w*[ \t]*\("
    rb"|(?<![.a-z])launch\w*[ \t]*\(|Trainer|CLI\(|[Rr]egistry|build_(?:runner|engine|agent|algorithm|experiment)|\bgetattr\((?:\w+|self\.\w+), *\w+\)\("
)
# A class registered by name is instantiated by name: the training does not import it.
_REGISTERED = lazily(rb"^@(?:\w+\.)*\w*register\w*", re.M | re.I)

# The length of quoted code in a message about a place.
_LONGEST = 40


class Verdict(NamedTuple):
    """Whether a claim holds, the places that show it, and the message fields it fills.

    ``unsafe`` says why a fix that looks safe in its own file is not; ``withdraws``: the finding loses its fix; ``fix``
    replaces it; ``shown`` says why a fix may only be shown; ``level`` is the finding's own, ``minor`` the reason why it is only info. The
    finding moves ``to`` one of the places that it names, and no longer names the earlier ones.
    """

    holds: bool
    related: tuple[Related, ...] = ()
    args: tuple[tuple[str, object], ...] = ()
    unsafe: str = ""
    withdraws: bool = False
    shown: str = ""
    fix: Fix | None = None
    to: Span | None = None
    level: Severity | None = None
    minor: str = ""


class Context:
    """A project with the analyses that questions share."""

    def __init__(
        self,
        project: Project,
        told_torch: Callable[[str], TorchVersion | None] = lambda path: None,
        facts_of: Callable[[str], Mapping[str, object]] = lambda path: {},
    ) -> None:
        self.project = project
        self.told_torch = told_torch
        self.facts_of = facts_of
        """What the rules of a file are told, see `ldlm_lint.config.Config.facts`."""
        self.answers: dict[tuple[str, str], bool] = {}
        """What was found for one finding, by question and subject: it answers for the next."""

    @property
    def program(self) -> Program:
        """The linked program of the project's Python files."""
        return self.view.program

    @cached_property
    def view(self) -> ProjectCode:
        """The view of the project for rules that query the program."""
        from ldlm_lint.checkers.project_code import ProjectCode

        return ProjectCode(self)

    @cached_property
    def wait_order(self) -> WaitOrder:
        """The execution order within one training step."""
        from ldlm_lint.concepts.wait_order import WaitOrder

        return self.view[WaitOrder]

    @cached_property
    def calls(self) -> Calls:
        """The call graph."""
        from ldlm_lint.project.calls import Calls

        return Calls(self.project)

    @cached_property
    def waiting(self) -> WaitingRanks:
        """Places where ranks wait for the work of one of them."""
        from ldlm_lint.project.waiting_ranks import WaitingRanks

        return WaitingRanks(self.project, self.calls, self.ranks)

    @cached_property
    def roles(self) -> Roles:
        """What the files are to the repository."""
        from ldlm_lint.project.roles import Roles

        return Roles(self.project, lambda: self.launches)

    @cached_property
    def torch(self) -> TorchVersions:
        """The versions of torch that the project allows."""
        from ldlm_lint.project.torch_versions import TorchVersions

        return TorchVersions(self.project, self.told_torch)

    @cached_property
    def launches(self) -> Launches:
        """The programs that the project's scripts, containers and Python files start."""
        from ldlm_lint.project.launches import Launches

        return Launches(self.project, lambda: self.view.launches_of_python)

    def sets_timeouts_later(self, paths: Collection[str]) -> bool:
        """Whether one of these files sets the timeouts of existing groups."""
        program = self.program
        names = {other for name in _SETS_TIMEOUT for other in (name, *program.aliases.get(name, ()))}
        calls = (call for name in sorted(names) for call in program.calls.get(name, ()))
        return any(self.view.path(program.module_of(call)) in paths for call in calls)

    def divides_accumulation(self, entry: str) -> bool:
        """Whether code of a launched file, by its name, or of the project if that is unknown, divides accumulation
        steps."""
        key = ("divides-accumulation", entry)
        if key not in self.answers:
            entries = [path for path in self.project.files if entry.endswith(".py") and path.endswith(f"/{entry}")]
            files = self.project.reach_of_all(entries) or self.project.files
            modules = (self.view.module(path) for path in files if b"accum" in self.project.data(path).lower())
            self.answers[key] = any(module is not None and self.view[MicroBatches].are_divided_in(module) for module in modules)
        return self.answers[key]

    def known_launches(self, paths: Collection[str]) -> Iterator[tuple[KnownLaunch, frozenset[str]]]:
        """The launches of programs, and the files that take part in each: the script, code, configurations.

        None if the launches were not computed: this is only for hints.
        """
        asked = "launches" in vars(self) and "starts" in vars(self.launches)
        return ((self.launches.known(start), self.launches.taking_part(start, paths)) for start in (self.launches.starts if asked else ()))

    @property
    def trees(self) -> Trees:
        """The trees of files."""
        return self.project.trees

    @cached_property
    def makers(self) -> ClassMakers:
        """The creators of objects by class."""
        from ldlm_lint.project.class_makers import ClassMakers

        return ClassMakers(self.project)

    @cached_property
    def mm_configs(self) -> MmConfigs:
        """The configurations of OpenMMLab's runners."""
        from ldlm_lint.project.mm_configs import MmConfigs

        return MmConfigs(self.project)

    @cached_property
    def models(self) -> Models:
        """The parts of the models."""
        from ldlm_lint.project.models import Models

        return Models(self.project, self.wraps, self.trees)

    @cached_property
    def reentrant(self) -> FileSet:
        """The files with a reentrant call of torch's ``checkpoint``: few texts may contain one."""
        from ldlm_lint.project.reentrant import CALLS_TORCHS, reentrant_calls

        trees = ((path, self.trees.of(path)) for path in self.project.showing(CALLS_TORCHS))
        return self.project.universe.of([path for path, tree in trees if tree is not None and reentrant_calls(tree)])

    @cached_property
    def engines(self) -> Engines:
        """The files of engines that take duties over from Python."""
        from ldlm_lint.project.engines import Engines

        return Engines(self.project, lambda: self.launches)

    @cached_property
    def inherited_configs(self) -> InheritedConfigs:
        """Which configuration files are based on others."""
        from ldlm_lint.project.inherited_configs import InheritedConfigs

        return InheritedConfigs(self.project, self.launches)

    @cached_property
    def homes(self) -> Homes:
        """Which programs read a configuration file."""
        from ldlm_lint.project.config_homes import Homes

        return Homes(self.project, self.launches)

    @cached_property
    def named(self) -> NamedClasses:
        """Which programs train with the classes that configurations name."""
        from ldlm_lint.project.named_classes import NamedClasses

        return NamedClasses(self.project, lambda: self.homes, self.runs_training)

    @cached_property
    def reads(self) -> ConfigReads:
        """Which calls take values of configurations, and under which keys."""
        from ldlm_lint.project.config_reads import ConfigReads

        return ConfigReads(self.project, self.calls)

    @cached_property
    def words(self) -> frozenset[bytes]:
        """Every name in the project's Python and in the interpolations of its configurations."""
        from ldlm_lint.project.dead_keys import words_of

        return words_of(self)

    @cached_property
    def dead_keys(self) -> dict[str, frozenset[Path]]:
        """The unread keys, by configuration file, cached."""
        return {}

    @cached_property
    def sourcing(self) -> Sourcing:
        """The scripts that run in one shell with others."""
        from ldlm_lint.project.sourcing import Sourcing

        return Sourcing(self.project)

    @cached_property
    def environments(self) -> Environments:
        """Which files set the environment of the same processes."""
        from ldlm_lint.project.environments import Environments

        return Environments(self.project, self.launches, self.sourcing)

    @cached_property
    def group_makers(self) -> Makers:
        """The calls that make default process groups."""
        from ldlm_lint.project.group_timeouts import Makers

        return Makers(self.project, self.launches, self.sets_timeouts_later)

    @cached_property
    def trainers(self) -> Trainers:
        """Where the Trainer of transformers gets its settings."""
        from ldlm_lint.project.frameworks import Trainers

        return Trainers(self.project, self.launches, lambda: self.homes, lambda: self.view)

    @cached_property
    def wraps(self) -> Wraps:
        """The models that DDP wraps."""
        from ldlm_lint.project.wrapped import Wraps

        return Wraps(self.project, self.calls)

    @cached_property
    def ranks(self) -> Ranks:
        """Who runs a call, all processes or one of them."""
        from ldlm_lint.project.ranks import Ranks

        return Ranks(self.calls)

    def reads_variable(self, name: str) -> bool:
        """Whether Python of the project reads an environment variable by its literal name."""
        from ldlm_lint.python.skim import reads_variable

        key = ("reads-variable", name)
        if key not in self.answers:
            self.answers[key] = any(reads_variable(self.project.data(one), name) for one in self.project.files)
        return self.answers[key]

    def runs_training(self, path: str) -> bool:
        """Whether a file has a backward pass, passes the training to a Trainer, or calls a function of the project that
        trains."""
        functions = self.project.flow(path).functions
        return self.project.skim(path).trains or any(self.calls.trains(path, one.scope) for one in functions)

    def starts_training(self, path: str) -> bool:
        """Whether one of the files that connect a file and a training trains, or may start the training.

        A prediction script imports the class of a trainer for its weights: its other imports do not belong to a
        training.
        """
        trainers = self.project.trainers_of(path)
        if _REGISTERED.search(self.project.data(path)):
            return True
        return self.project.any_skim(trainers, "trains") or any(map(self._may_start, trainers))

    def _may_start(self, path: str) -> bool:
        key = ("may-start", path)
        if key not in self.answers:
            self.answers[key] = _STARTS.search(without_comments(self.project.data(path))) is not None or self.runs_training(path)
        return self.answers[key]

    def described(self, path: str, line: int, own: str = "") -> str:
        """The code of a line and its place: "the loop at line 12" of the finding's ``own`` file, "`run()` at
        train.py:12" of another."""
        text, where = self._text(path, line), located(path, line, own)
        if begins_loop(text):
            return f"the loop at {where}"
        name = function_begun(text)
        return f"{quoted(f'{name}()' if name else text, _LONGEST)} at {where}"

    def each_step(self, path: str, line: int, own: str = "") -> str:
        """How often a training step runs, by its cause: a loop, a function that is a step, or a call of one."""
        text, found = self._text(path, line), self.described(path, line, own)
        if begins_loop(text):
            return f"in every step of {found}"
        return f"in every call of {found}" if function_begun(text) else f"in every step ({found})"

    def _text(self, path: str, line: int) -> str:
        span = self.line_span(path, line)
        return self.project.data(path)[span.start : span.end].decode(errors="replace")

    def line_span(self, path: str, line: int) -> Span:
        """The text of a line, without its indentation, as a span."""
        data = self.project.data(path)
        start = 0
        for _ in range(line - 1):
            start = data.find(b"\n", start) + 1
        end = data.find(b"\n", start)
        text = data[start : end if end >= 0 else len(data)]
        return Span(path, start + len(text) - len(text.lstrip()), start + len(text.rstrip()))


Question = Callable[[Context, Finding, str], Verdict]
"""Takes the project, the finding that asks and the subject of its claim."""
