"""Data loaders: where they are made, their options, and what their names say that they are for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

from ldlm_lint import tables
from ldlm_lint.concepts.configured_numbers import ConfiguredNumbers
from ldlm_lint.concepts.read_settings import ReadSettings
from ldlm_lint.program.codebase import Codebase, Concept
from ldlm_lint.program.constructors import Constructors
from ldlm_lint.program.handles import Argument, Call, Class, Expr
from ldlm_lint.vocabulary.loaders import LOADERS
from ldlm_lint.vocabulary.purposes import ENDLESS_SAMPLERS, EPOCHS_OF_RUN, says_evaluation, says_test

_POSITIONS = {name: index for index, name in enumerate(tables.positional("torch.utils.data.DataLoader"))}
_LIKE_TORCH = ("torch.", "torchdata.", "webdataset.")
"""Packages whose loaders take torch's parameters in torch's order."""


@dataclass(frozen=True)
class Loader:
    """A data loader: the call that makes it, torch's or another package's class, and the project's class between them."""

    call: Call
    interface: str
    owner: Class | None


class Loaders(Concept):
    """The data loaders of a codebase."""

    def __init__(self, code: Codebase) -> None:
        super().__init__(code)
        self._constructors = Constructors(code)

    @cached_property
    def made(self) -> list[Loader]:
        """All loaders, by the calls that make them; ``DataLoader.__init__(self, …)`` in a class makes no other one."""
        calls = (call for call in self.code.calls(LOADERS) if call.callee.kind != "attr" or call.callee.name != "__init__")
        return [Loader(call, min(call.callee.interfaces & LOADERS), self._class_of(call)) for call in calls]

    @cached_property
    def shown(self) -> list[Loader]:
        """The same without those of tutorials."""
        return [one for one in self.made if not self.code.trainings.is_test_or_tutorial(self.code.path(one.call.module))]

    def at(self, path: str, position: str) -> Loader | None:
        """The loader that is made at ``line:column`` of a file."""
        return self._by_place.get((path, position))

    @cached_property
    def _by_place(self) -> dict[tuple[str, str], Loader]:
        return {(self.code.path(one.call.module), one.call.position): one for one in self.shown}

    def _class_of(self, call: Call) -> Class | None:
        """The class of the project that a loader is of."""
        return next((one for one in call.callee.classes if one.outside_bases & LOADERS), None)

    def option(self, loader: Loader, name: str) -> Argument:
        """What a loader gets for an option of torch's, also through the constructors of its classes."""
        return self._constructors.argument(
            loader.call, loader.owner, name, _POSITIONS.get(name), by_position=name == "dataset" or _is_like_torch(loader)
        )

    def place_of(self, loader: Loader, name: str) -> int | None:
        """The place of an option among the positional arguments of a loader, as far as it takes torch's."""
        return _POSITIONS.get(name) if name == "dataset" or _is_like_torch(loader) else None

    def lacks(self, loader: Loader, *names: str) -> bool:
        """Whether a loader surely gets none of these options; where files fill them, whether none of the project's does."""
        return all(self._is_left_out(loader, name) for name in names)

    def _is_left_out(self, loader: Loader, name: str) -> bool:
        given = self.option(loader, name)
        by_files = given.is_open and self.is_filled_by_files(loader) and not self.code.is_named_in_configurations(name)
        return given.is_absent or by_files

    def is_filled_by_files(self, loader: Loader) -> bool:
        """Whether only configurations fill the options, and those of the project set workers: ``**options["train"]``."""
        return bool(self.workers_of_files(loader))

    def workers_of_files(self, loader: Loader) -> list[float]:
        """The numbers of workers in the project's configurations, if only such files fill the options of a loader."""
        if not self.option(loader, "num_workers").is_open or loader.owner or not self.code[ReadSettings].may_be_added(loader.call):
            return []
        numbers = sorted(self.code[ConfiguredNumbers].said("num_workers"))
        return numbers if numbers and numbers[0] > 0 else []

    def ends_never(self, loader: Loader) -> bool:
        """Whether one pass through a loader goes through all epochs: its sampler is called endless, or is a class of the
        project that gets the number of epochs."""
        samplers = [value for name in ("sampler", "batch_sampler") for value in self.option(loader, name).values]
        owners = [owner for one in samplers for owner in (*one.classes_of, *one.classes)]
        names = {name.rpartition(".")[2] for one in samplers for name in (*one.interfaces, *one.made_by)} | {owner.name for owner in owners}
        parameters = (name for owner in owners for init in owner.methods("__init__") for name in init.parameters)
        return any(map(ENDLESS_SAMPLERS.search, names)) or any(map(EPOCHS_OF_RUN.search, parameters))

    def is_for_evaluation(self, loader: Loader) -> bool:
        """Whether a loader is named as one for evaluation, although a loop that can also train uses it."""
        return is_named_for_evaluation(loader.call, self.option(loader, "dataset").values)

    def is_for_one_test(self, loader: Loader) -> bool:
        """Whether it is made for the test split, which is used once."""
        return says_test(_splits(loader.call))


def is_named_for_evaluation(call: Call, datasets: Iterable[Expr]) -> bool:
    """Whether the names of what a call makes, of the datasets that it gets, and the split around it mention evaluation."""
    names = _names_around(call)
    for dataset in datasets:
        names |= dataset.names | {one.name for one in _read(dataset)}
    maker = call.function
    return says_evaluation(sorted(names), "" if maker.is_module or maker.is_class else maker.name, _splits(call))


def _names_around(call: Call) -> set[str]:
    """The names that a loader is bound to, through the calls around it: ``valid = cycle(DataLoader(…))``."""
    names, inner = set(call.names), call
    # The calls are in the order in which they are evaluated: enclosing calls come later.
    for other in call.function.calls:
        if inner in other.positional:
            inner = other
            names |= other.names
    return names


def _is_like_torch(loader: Loader) -> bool:
    return all(one.startswith(_LIKE_TORCH) for one in loader.call.callee.interfaces)


def _read(expr: Expr) -> Iterator[Expr]:
    """The variables, attributes and parameters that an expression is written with."""
    at: Expr | None = expr
    while at is not None and (at.kind in ("copy", "attr") or at.name):
        if at.name:
            yield at
        at = at.base


def _splits(call: Call) -> Iterator[str]:
    """The words that a value is equal to where a call is: ``if split == "test":``."""
    for guard in call.guards:
        compared = guard.test.operator if guard.is_test else ""
        if compared in ("Eq", "NotEq") and guard.holds is (compared == "Eq"):
            yield from (one.constant for one in guard.test.operands if isinstance(one.constant, str))


__all__ = ["Loader", "Loaders", "is_named_for_evaluation"]
