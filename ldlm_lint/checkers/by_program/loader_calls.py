"""The loaders of a program for rules: creation, purpose, number of workers, and the passes through them."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from ldlm_lint.checkers.by_program.written import Part, written_argument
from ldlm_lint.checkers.data_purposes import says_evaluation, says_test
from ldlm_lint.code.table import column_of, line_of
from ldlm_lint.concepts.configured_numbers import ConfiguredNumbers
from ldlm_lint.concepts.lightning_rhythm import LightningRhythm
from ldlm_lint.concepts.loader_options import Loader, LoaderOptions, Way
from ldlm_lint.concepts.loaders import Loaders, Pass
from ldlm_lint.concepts.measuring import Measuring
from ldlm_lint.concepts.read_settings import ReadSettings
from ldlm_lint.concepts.steps import Steps
from ldlm_lint.concepts.worker_counts import WorkerCounts
from ldlm_lint.model import Claim, Confidence, Related
from ldlm_lint.program.atoms import MASK
from ldlm_lint.program.modules import Module
from ldlm_lint.program.queries import Argument, State, destination
from ldlm_lint.project.training import is_tutorial
from ldlm_lint.untrusted_numbers import whole

if TYPE_CHECKING:
    from ldlm_lint.checkers.by_program.view import View
    from ldlm_lint.project.programs import Given

_COMPARED = {("Gt", 0): True, ("NotEq", 0): True, ("GtE", 1): True, ("Eq", 0): False, ("LtE", 0): False, ("Lt", 1): False}


class LoaderCall(NamedTuple):
    """A call that makes a loader: the loader, its module, the argument for the workers and the ways to their number.

    ``from_file``: only configuration files set its options, and those of the project set the workers.
    """

    loader: Loader
    module: Module
    workers: Argument
    ways: tuple[Way, ...]
    from_file: bool = False

    @property
    def call(self) -> int:
        """The key of the call."""
        return self.loader.call

    @property
    def place(self) -> int:
        """Where the call begins."""
        return self.module.table.sites[self.call & MASK].place

    @property
    def position(self) -> str:
        """The same as ``line:column``, as the older analyses name it."""
        return f"{line_of(self.place)}:{column_of(self.place)}"

    @property
    def confidence(self) -> Confidence:
        """The confidence that there are workers."""
        known = self.workers.state is State.GIVEN and all(way.number for way in self.ways)
        return Confidence.HIGH if known else Confidence.MEDIUM


class Settled(NamedTuple):
    """A pass as text and as related places."""

    where: str
    related: tuple[Related, ...]


class LoaderCalls:
    """The loaders of a program."""

    def __init__(self, view: View) -> None:
        self.view = view
        self.options = view[LoaderOptions]

    @property
    def concept(self) -> Loaders:
        """Where the loaders go."""
        return self.view[Loaders]

    @cached_property
    def all(self) -> list[LoaderCall]:
        """The loaders of the program, except those of tutorials."""
        found = []
        for loader in self.concept.made:
            module = self.view.program.module_of(loader.call)
            path = self.view.path(module)
            if not is_tutorial(self.view.context.project, path):
                workers = self.options.option(loader, "num_workers")
                numbers = self._read_workers(loader, workers)
                ways = [Way(int(one)) for one in numbers] or self.options.ways(workers)
                found.append(LoaderCall(loader, module, workers, tuple(ways), bool(numbers)))
        return found

    def _read_workers(self, loader: Loader, workers: Argument) -> list[float]:
        """The numbers of workers in the project's configurations, if such a file alone fills the options:
        ``**options["train"]``."""
        if workers.state is not State.OPEN or loader.owner or not self.view[ReadSettings].may_be_added(loader.call):
            return []
        numbers = sorted(self.view[ConfiguredNumbers].said("num_workers"))
        return numbers if numbers and numbers[0] > 0 else []

    @cached_property
    def _by_place(self) -> dict[tuple[str, str], LoaderCall]:
        return {(self.view.path(one.module), one.position): one for one in self.all}

    def at(self, path: str, position: str) -> LoaderCall | None:
        """The loader created at ``line:column`` of a file, if the program knows it."""
        return self._by_place.get((path, position))

    @cached_property
    def counts(self) -> WorkerCounts:
        """Bounds on numbers of workers."""
        return WorkerCounts(self.view.ask, self._may_be_given)

    def _may_be_given(self, key: int, name: str, most: int) -> bool:
        """Whether a launch sets an option to more than a number, or one that the shell computes."""
        given = self._launched(self.view.program.module_of(key), {name})
        return any(one.values is None or any(may_exceed(value.text, most) for value in one.values) for one in given)

    def _launched(self, module: Module, names: Collection[str]) -> list[Given]:
        """The values of options in the launches of the programs with a module."""
        programs = self.view.context.launches.running(self.view.path(module))
        return [one for program in programs for one in program.arguments if one.keys and (one.keys[-1] in names or one.name in names)]

    def may_have_workers(self, one: LoaderCall) -> bool:
        """Whether a loader may have workers; not if the number is 0 by a default that is never replaced."""
        if one.from_file:
            return True
        if one.workers.state not in (State.GIVEN, State.MAYBE) or self.is_branch_without(one):
            return False
        if any(way.number != 0 for way in one.ways):
            return True
        configured = self.view[ConfiguredNumbers]
        names = {destination(way.default) for way in one.ways if way.default}
        return self._are_replaced(one.module, names) or any(configured.may_exceed(way.setting, 0) for way in one.ways if way.setting)

    def _are_replaced(self, module: Module, names: Collection[str]) -> bool:
        """Whether a launch sets one of these options to something other than 0."""
        return any(one.texts is None or one.texts - {"0"} for one in self._launched(module, names))

    def is_branch_without(self, one: LoaderCall) -> bool:
        """Whether it is created in the branch without workers: ``if n > 0: … else: DataLoader(…, num_workers=n)``."""
        sources = {source & MASK for source in one.workers.sources if self.view.program.module_of(source) is one.module}
        guards = one.module.table.guards
        number = one.module.table.sites[one.call & MASK].guard
        while number >= 0:
            guard = guards[number]
            says = _says_workers(one.module, guard.test, sources) if guard.kind in ("if", "rest") else None
            if says is not None and guard.holds is not None and says is not guard.holds:
                return True
            number = guard.parent
        return False

    def has_none_by_default(self, one: LoaderCall) -> bool:
        """Whether it has no workers by defaults that are never replaced."""
        given = one.workers.state is State.GIVEN and bool(one.ways)
        return given and all(way.number == 0 for way in one.ways) and not self.may_have_workers(one)

    def only_others_get(self, classes: Collection[str]) -> bool:
        """Whether all samplers of these classes belong to loaders that are not used for training."""
        made = {call for call, _ in self.view.ask.calls_of(classes)}
        given: set[int] = set()
        for one in self.all:
            sources = [source for name in ("sampler", "batch_sampler") for source in self.option(one, name).sources]
            values = [self.view.program.ask(source) for source in sources]
            samplers = {fields[2] for value in values for fields in self.view.program.atoms.kinds(value, "o")} & made
            if samplers and self.concept.trains(one.call) is not None:
                return False
            given |= samplers
        return bool(made) and made == given

    def option(self, one: LoaderCall, name: str) -> Argument:
        """The value that a loader gets for an option."""
        return self.options.option(one.loader, name)

    def written(self, one: LoaderCall, name: str) -> Part | None:
        """The expression of an option in the call itself."""
        return written_argument(self.view, one.call, name, self.options.position(one.call, name))

    def is_absent(self, one: LoaderCall, *names: str) -> bool:
        """Whether a loader surely gets none of these options; options from configurations count if the project's files
        set them."""
        return all(self._is_left_out(one, name) for name in names)

    def _is_left_out(self, one: LoaderCall, name: str) -> bool:
        state = self.option(one, name).state
        return state is State.ABSENT or (one.from_file and state is State.OPEN and not self.view.is_named_in_configurations(name))

    def trains(self, one: LoaderCall) -> Pass | None:
        """A pass that trains on a loader's batches; empty if its names say that it is for evaluation."""
        return self.concept.trains(one.call) if not self.is_for_evaluation(one) else None

    def trains_through(self, one: LoaderCall, giver: int) -> Pass | None:
        """A pass that trains on the result of one call of the loader's function; empty if the call's names mention
        evaluation."""
        if self.is_for_evaluation(one) or says_evaluation(sorted(self.view.program.names_of(giver)), "", ()):
            return None
        return self.concept.trains_through(one.call, giver)

    def repeated(self, one: LoaderCall) -> Pass | None:
        """A pass that begins repeatedly."""
        found = self.concept.repeated(one.call)
        # A Trainer may be configured to validate only at the end of the run.
        is_once = found is not None and found.framework == "evaluate" and self.view[LightningRhythm].validates_once(found.module)
        if found is not None and self._is_measured(found):
            return None
        is_reloaded = found is not None and bool(found.framework) and self.view[LightningRhythm].reloads(found.function)
        return None if is_once or is_reloaded else found

    def _is_measured(self, found: Pass) -> bool:
        """Whether the passes are what a program measures that trains nothing: starting the workers is a part of it."""
        program, sites = self.view.program, found.module.table.sites
        near = program.together.programs_of(found.module)
        if any(function.module.index in near for function in self.view[Steps].functions):
            return False
        sections = self.view[Measuring].measured_sections(found.module, found.scope)
        return any(sites[earlier].place < found.place < sites[later].place for earlier, later in sections)

    def settled(self, one: LoaderCall, found: Pass | None, note: str) -> Settled | None:
        """The text about a pass in a message; None without a pass."""
        return Settled(*self.where(one, found, note)) if found is not None else None

    def settled_training(self, one: LoaderCall) -> Settled | None:
        """The text in a message about a pass that trains on a loader's batches."""
        if self.is_for_evaluation(one):
            return None
        return self.settled(one, self.concept.trains(one.call), "this trains on its batches")

    def is_for_evaluation(self, one: LoaderCall) -> bool:
        """Whether a loader is named as one for evaluation, although a loop that can also train uses it."""
        names = self._names_around(one)
        for source in self.option(one, "dataset").sources:
            names |= self._dotted(source)
        scope = one.module.scopes[one.module.table.sites[one.call & MASK].scope]
        return says_evaluation(sorted(names), scope.name if scope.kind == "def" else "", self.splits(one))

    def _names_around(self, one: LoaderCall) -> set[str]:
        """The names that a loader is bound to, through the calls around it: ``valid = cycle(DataLoader(…))``."""
        table, program = one.module.table, self.view.program
        calls = one.module.scopes[table.sites[one.call & MASK].scope].calls
        names, inner = set(program.names_of(one.call)), one.call & MASK
        for call in calls:
            # The calls are in the order in which they are evaluated: enclosing calls come later.
            if call > inner and inner in one.module.nodes[call][2]:
                inner = call
                names |= program.names_of(one.module.base | call)
        return names

    def is_for_one_test(self, one: LoaderCall) -> bool:
        """Whether it is created for the test split, which is used once."""
        return says_test(self.splits(one))

    def is_tested(self, one: LoaderCall) -> bool:
        """Whether the function that makes a loader tests its number of workers outside of the call, so it handles 0."""
        sources = {source & MASK for source in one.workers.sources if self.view.program.module_of(source) is one.module}
        site = one.module.table.sites[one.call & MASK]
        events = one.module.scopes[site.scope].events
        tests = [event[1] for event in events if event[0] == "test" and not site.place <= event[4] < site.end]
        return any(_mentions(one.module, test, sources) for test in tests)

    def follows_workers(self, one: LoaderCall, source: int) -> bool:
        """Whether an option's value depends on the number of workers: ``num_workers > 0``, ``4 if num_workers else
        None``."""
        module = self.view.program.module_of(source)
        workers = {given & MASK for given in one.workers.sources if self.view.program.module_of(given) is module}
        row = module.plain(source & MASK)
        tests = [source & MASK, *(row[1:2] if row[0] == "choice" else row[2] if row[0] in ("bool", "call") else ())]
        return any(_mentions(module, test, workers) for test in tests)

    def _dotted(self, key: int) -> set[str]:
        """The names that a dataset is written with: of variables, attributes and parameters."""
        module = self.view.program.module_of(key)
        names = set(self.view.program.names_of(key))
        number = key & MASK
        for _ in range(12):
            row = module.nodes[number]
            if row[0] in ("free", "param", "attr", "impf"):
                names.add(str(row[2]))
            if row[0] not in ("attr", "copy"):
                break
            number = row[1]
        return names

    def splits(self, one: LoaderCall) -> Iterator[str]:
        """The words that a value is equal to where a loader is created: ``if split == "test":``."""
        nodes, table = one.module.nodes, one.module.table
        number = table.sites[one.call & MASK].guard
        while number >= 0:
            guard = table.guards[number]
            row = nodes[guard.test] if guard.test else ("",)
            if row[0] == "cmp" and row[1] in (("Eq",), ("NotEq",)) and guard.holds is (row[1] == ("Eq",)):
                sides = [nodes[side] for side in (row[2], row[3][0])]
                yield from (side[1] for side in sides if side[0] == "const" and side[1].__class__ is str)
            number = guard.parent

    def where(self, one: LoaderCall, found: Pass, note: str) -> tuple[str, tuple[Related, ...]]:
        """The text for a pass in a message about a loader, and the pass as a related place."""
        view = self.view
        path, line = view.path(found.module), line_of(found.place)
        same = found.module is one.module and line == line_of(one.place)
        related = () if same else (Related(view.context.line_span(path, line), note),)
        return view.described(found.module, found.place, one.module), related

    def collation(self, one: LoaderCall) -> tuple[Claim, ...]:
        """The claim about the collate function, if it has a name."""
        names = [self.view.program.module_of(source).last_name(source & MASK) for source in self.option(one, "collate_fn").sources]
        return tuple(Claim("collates-on-host", name) for name in names if name.isidentifier())


def _mentions(module: Module, test: int, sources: set[int]) -> bool:
    """Whether a test is one of these expressions, negates or compares it."""
    row = module.nodes[test]
    parts = [test, row[2], *row[3]] if row[0] == "cmp" else [test, row[1]] if row[0] == "not" else [test]
    rows = [module.nodes[one] for one in sources]
    return any(part in sources or module.nodes[part] in rows for part in parts)


def _says_workers(module: Module, test: int, sources: set[int]) -> bool | None:
    """True for a test that there are workers, False for one that there are none, None for any other."""
    row = module.nodes[test]
    if row[0] == "not":
        inner = _says_workers(module, row[1], sources)
        return None if inner is None else not inner
    if _is_one_of(module, test, sources):
        return True
    if row[0] == "cmp" and len(row[1]) == 1 and _is_one_of(module, row[2], sources):
        right = module.nodes[row[3][0]]
        return _COMPARED.get((row[1][0], right[1])) if right[0] == "const" and right[1].__class__ is int else None
    return None


def _is_one_of(module: Module, number: int, sources: set[int]) -> bool:
    return number in sources or module.nodes[number] in [module.nodes[one] for one in sources]


def may_exceed(text: str, most: int) -> bool:
    """Whether the text of an argument is a larger number, or may be one after shell expansion."""
    return "$" in text or "`" in text or (text.isdecimal() and whole(text) > most)
