"""Numbers of loader workers: the ways to a number with what decides each, bounds on it from code, the machine, launches and
configurations, and whether the code tests it."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace

from ldlm_lint.concepts.configured_numbers import ConfiguredNumbers
from ldlm_lint.concepts.loaders import Loader, Loaders
from ldlm_lint.concepts.read_settings import ReadSettings
from ldlm_lint.patterns import lazily
from ldlm_lint.program.codebase import Codebase, Concept
from ldlm_lint.program.handles import Argument, Call, Expr, Function, Option
from ldlm_lint.program.queries import destination
from ldlm_lint.program.spots import Spot
from ldlm_lint.tables.training_arguments import TRAINING_ARGUMENTS
from ldlm_lint.untrusted_numbers import whole

CPU_COUNTS = frozenset(
    {"os.cpu_count", "os.process_cpu_count", "multiprocessing.cpu_count", "torch.multiprocessing.cpu_count", "psutil.cpu_count"}
)
_OF_MACHINE = CPU_COUNTS | {"torch.cuda.device_count", "torch.accelerator.device_count"}
_ENVIRONMENT = frozenset({"os.environ.get", "os.getenv"})
# Batch systems provide the number of CPUs of a job: SLURM_CPUS_PER_TASK, PBS_NCPUS, LSB_DJOB_NUMPROC, NSLOTS.
_CPU_VARIABLE = lazily(r"cpus?(_|$)|cores?(_|$)|nprocs?(_|$)|numproc|nslots", re.I)
_CASTS = frozenset({"int", "round", "floor"})
_LOOK_UPS = frozenset({"get", "getattr", "pop", "getenv"})
_LARGER_WITH = {"Add": 2, "Mult": 2, "Sub": 1, "FloorDiv": 1, "Div": 1}
"""The operands, from the left, with which the result of an operation grows."""
_AT_MOST = {"Lt": -1, "LtE": 0, "Eq": 0}
_AT_MOST_UNLESS = {"Gt": 0, "GtE": -1, "NotEq": 0}
_ASKS_FOR_WORKERS = {("Gt", 0): True, ("NotEq", 0): True, ("GtE", 1): True, ("Eq", 0): False, ("LtE", 0): False, ("Lt", 1): False}
_DIGITS = 6
_FEW = 4
"""A division of the CPUs by less leaves many times what is a rank's share."""
WORKERS_OF_TRAINER = "dataloader_num_workers"
"""The field of transformers' TrainingArguments, 0 where nothing sets it."""
ROUNDED_DOWN = "//"
"""Stands for a default where a floor division gives 0 because its divisor is larger."""


@dataclass(frozen=True)
class Way:
    """A possible number of workers: the number (None: unknown), and the default that decides it if none is passed.

    ``default`` is "" for a number that is passed, ``parameter``, or the name of a flag with its dashes. ``giver`` is
    the call that passes the number for a parameter, ``left`` one that leaves a parameter at its default. ``setting`` is
    the name of a parameter without visible callers: a configuration may set it.
    """

    number: int | None
    default: str = ""
    giver: Call | None = None
    left: Call | None = None
    setting: str = ""


_UNKNOWN = Way(None)


class Workers(Concept):
    """The numbers of workers of the loaders of a codebase."""

    def __init__(self, code: Codebase) -> None:
        super().__init__(code)
        self._loaders = code[Loaders]
        self._configured = code[ConfiguredNumbers]
        self._ways: dict[Call, tuple[Way, ...]] = {}
        self._bounded: dict[tuple[Expr, int], bool] = {}

    def given(self, loader: Loader) -> Argument:
        """What a loader gets for its number of workers."""
        return self._loaders.option(loader, "num_workers")

    def ways(self, loader: Loader) -> tuple[Way, ...]:
        """The possible numbers of workers of a loader, with their origins."""
        if loader.call not in self._ways:
            numbers = [Way(int(one)) for one in self._loaders.workers_of_files(loader)]
            self._ways[loader.call] = tuple(numbers or self.ways_to(self.given(loader)))
        return self._ways[loader.call]

    def ways_to(self, argument: Argument) -> list[Way]:
        """The same for what some call gives."""
        return [way for value in argument.values for way in self._ways_of(value, "", set())]

    def are_known(self, loader: Loader) -> bool:
        """Whether it surely has workers."""
        return self.given(loader).is_given and all(way.number for way in self.ways(loader))

    def are_surely_none(self, loader: Loader) -> bool:
        """Whether it gets no number of workers, or 0 on all ways, and by no default that users may replace."""
        if self.given(loader).is_absent:
            return True
        ways = self.ways(loader)
        return self.given(loader).is_given and bool(ways) and all(way.number == 0 and not way.default for way in ways)

    def may_be_there(self, loader: Loader) -> bool:
        """Whether a loader may have workers; not if the number is 0 by a default that is never replaced."""
        if self._loaders.is_filled_by_files(loader):
            return True
        if not self.given(loader).values or self.is_branch_without(loader):
            return False
        if any(way.number != 0 for way in self.ways(loader)):
            return True
        names = {destination(way.default) for way in self.ways(loader) if way.default}
        given = self.code.trainings.launched_options(self.code.path(loader.call.module), names)
        replaced = any(texts is None or texts - {"0"} for texts in given)
        return replaced or any(self._configured.may_exceed(way.setting, 0) for way in self.ways(loader) if way.setting)

    def are_configured(self, loader: Loader) -> bool:
        """Whether a configuration sets the workers, and those of the project set some."""
        return any(map(self._configured.are_positive, self.given(loader).values))

    def are_none_by_default(self, loader: Loader) -> bool:
        """Whether it has no workers by defaults that are never replaced."""
        given = self.given(loader).is_given and bool(self.ways(loader))
        return given and all(way.number == 0 for way in self.ways(loader)) and not self.may_be_there(loader)

    def is_branch_without(self, loader: Loader) -> bool:
        """Whether it is made in the branch without workers: ``if n > 0: … else: DataLoader(…, num_workers=n)``."""
        numbers = self.given(loader).values
        asked = ((_asks_for_workers(guard.test, numbers), guard.holds) for guard in loader.call.guards if guard.is_test)
        return any(says is not None and says is not holds for says, holds in asked)

    def are_tested(self, loader: Loader) -> bool:
        """Whether the function that makes a loader tests its number of workers outside of the call, so it handles 0."""
        numbers, call = self.given(loader).values, loader.call
        tests = (event for event in call.function.events if event.kind == "test" and not call.spot.place <= event.spot.place < call.end)
        return any(_mentions(event.expr, numbers) for event in tests)

    def are_left_to_callers(self, loader: Loader) -> bool:
        """Whether the function that makes a loader has a parameter of 0 workers by default, and tests it."""
        return any(way.default == "parameter" for way in self.ways(loader)) and self.are_tested(loader)

    def are_asked_for(self, loader: Loader) -> bool:
        """Whether options are given that need workers; those that test the number themselves, as in
        ``persistent_workers=num_workers > 0``, need none."""
        given = [self._loaders.option(loader, name) for name in ("prefetch_factor", "persistent_workers")]
        values = (value for argument in given for value in argument.values)
        return any(one.is_open for one in given) or any(not value.is_falsy and not self.decide(loader, value) for value in values)

    def decided_at(self, loader: Loader) -> Call:
        """The call that decides that there are no workers: the one that passes 0 to a wrapper, or the one that makes the
        loader."""
        givers = [way.giver for way in self.ways(loader) if way.giver is not None and not way.default]
        is_given = bool(givers) and len(givers) == len(self.ways(loader))
        return min(givers, key=lambda one: (one.module.path, one.spot.place)) if is_given else loader.call

    def decide(self, loader: Loader, option: Expr) -> bool:
        """Whether the value of an option depends on the number of workers: ``num_workers > 0``, ``4 if num_workers else None``."""
        value = option.plain
        tests = [value, *([value.test] if value.test is not None else value.ways if value.kind == "bool" else value.positional if isinstance(value, Call) else [])]
        return any(_mentions(one, self.given(loader).values) for one in tests)

    def may_exceed(self, number: Expr, most: int) -> bool:
        """Whether an expression may be larger than a number of workers, judging by the whole project."""
        if (number, most) not in self._bounded:
            seen, todo = set[Expr](), [number]
            while todo and not self._is_beyond(todo[-1], most):
                at = todo.pop()
                seen.add(at)
                todo += [one for one in self._grows_with(at, most) if one not in seen]
            self._bounded[number, most] = bool(todo)
        return self._bounded[number, most]

    def _is_beyond(self, at: Expr, most: int) -> bool:
        """Whether an expression is, or may be from outside, a larger number itself."""
        if at.kind == "const":
            return _number(at.constant) > most
        name = at.called_name if isinstance(at, Call) else ""
        if isinstance(at, Call):
            if self.are_of_machine(at):
                return True
            if name == "min":
                return bool(at.positional) and all(self.may_exceed(one, most) for one in at.positional)
            if name in _CASTS or name == "max":
                return False
        if at.kind == "item" and at.base is not None and "os.environ" in at.base.interfaces:
            return True
        if any(_number(one) > most for one in at.may_be().constants if not isinstance(one, str)):
            return True
        setting = setting_of(at) if not isinstance(at, Call) or name in _LOOK_UPS else ""
        launched = self.code.trainings.launched_options(self.code.path(at.module), {setting}) if setting else []
        return any(texts is None or any(may_exceed(text, most) for text in texts) for texts in launched)

    def _grows_with(self, at: Expr, most: int) -> Iterator[Expr]:
        """What a number may be, or grows with: alternatives, operands, and what sets the setting that it is."""
        if isinstance(at, Call):
            if at.called_name in _CASTS or at.called_name == "max":
                yield from at.positional
            if at.called_name not in _LOOK_UPS:
                return
            if (default := looked_up_default(at)) is not None:
                yield default
        elif at.kind in ("phi", "copy") or (at.kind == "bool" and at.operator == "Or"):
            yield from at.ways
        elif at.kind == "choice" and at.test is not None:
            yield from (arm for arm, holds in zip(at.ways, (True, False), strict=True) if not is_bounded(arm, at.test, holds, most))
        elif at.kind == "op":
            rounded = _rounded_up(*at.operands) if at.operator in ("Div", "FloorDiv") else []
            yield from rounded or at.operands[: _LARGER_WITH.get(at.operator, 0)]
        elif at.kind == "param":
            yield from self._given_for(at)
        elif at.kind == "free":
            yield from at.bound_outside
        yield from (option.default for option in at.options or at.options_by_name if option.default is not None)
        if setting := setting_of(at):
            yield from self._written_as(setting, at)

    @staticmethod
    def _given_for(parameter: Expr) -> Iterator[Expr]:
        given = [call.given_for(parameter) for call in parameter.function.callers]
        yield from (one for one in given if one is not None)
        default = parameter.function.default(parameter.name)
        if default is not None and (None in given or not given):
            yield default

    def _written_as(self, setting: str, at: Expr) -> Iterator[Expr]:
        """What attributes of other objects, or fields of records, of that name get in the programs of an expression."""
        values = [value for owner in self.code.classes_with_field(setting) for value in owner.field_values(setting)]
        values += [value for _, value in self.code.writes_of(setting)]
        yield from (value for value in values if at.may_run_with(value))

    def are_of_machine(self, call: Call) -> bool:
        """Whether a call counts CPUs or GPUs, or reads an environment variable that has no default or counts CPUs."""
        if counts_affinity(call):
            return True
        names = call.callee.interfaces
        if not names or not names <= _OF_MACHINE | _ENVIRONMENT:
            return False
        if names <= _OF_MACHINE:
            return True
        variable = call.positional[0].constant if call.positional else ...
        counts = isinstance(variable, str) and _CPU_VARIABLE.search(variable) is not None
        return bool(call.positional) and (counts or looked_up_default(call) is None)

    def settings_of(self, number: Expr) -> Iterator[tuple[int, Spot]]:
        """The numbers that a setting gets elsewhere, in the programs that read it, where its value is unknown here: an
        option's default, an attribute, a field of a class."""
        todo, seen = [number], {number}
        while todo:
            at = todo.pop()
            if isinstance(at, Call) and at.called_name in _LOOK_UPS:
                default = looked_up_default(at)
                yield from self._written(default, at.spot) if default is not None else ()
            elif at.kind == "attr":
                yield from self._set_by_name(at)
            new = at.given if at.kind == "param" else at.bound_outside if at.kind == "free" else at.ways if at.kind in ("phi", "copy") else []
            if isinstance(at, Call) and at.called_name in _CASTS and len(at.positional) == 1:
                new = at.positional
            todo += [one for one in new if one not in seen]
            seen.update(new)

    def _set_by_name(self, at: Expr) -> Iterator[tuple[int, Spot]]:
        written = [write for write in self.code.sets_of(at.name) if at.may_run_with(write.value)]
        # ``args.workers = args.workers // ranks``: the loader does not get the option itself.
        for option in (at.options or at.options_by_name) if all(_whole(write.value) is not None for write in written) else ():
            if option.default is not None and at.may_run_with(option.default):
                yield from self._written(option.default, option.spot)
        for write in written:
            yield from self._written(write.value, write.spot)
        for owner in self.code.classes_with_field(at.name):
            for event in owner.body.events if at.may_run_with(owner) else ():
                if event.kind == "bind" and event.name == at.name:
                    yield from self._written(event.expr, event.spot)

    @staticmethod
    def _written(value: Expr, spot: Spot) -> Iterator[tuple[int, Spot]]:
        number = _whole(value)
        if number is not None:
            yield number, spot

    def of_whole_node(self, number: Expr, limit: int, above: frozenset[Expr] = frozenset()) -> list[Expr]:
        """The expressions behind a number that are the CPUs of the node, or nearly all of them."""
        return list(dict.fromkeys(self._nodes(number, limit, above | {number}))) if number not in above else []

    def _nodes(self, at: Expr, limit: int, above: frozenset[Expr]) -> Iterator[Expr]:
        inside: Iterable[Expr] = ()
        if isinstance(at, Call):
            names, given = at.callee.interfaces, at.positional
            if (names and names <= CPU_COUNTS) or counts_affinity(at) or (at.called_name in _CASTS and len(given) == 1 and self.of_whole_node(given[0], limit, above)):
                yield at
            elif at.called_name == "min" and given:
                # The smallest decides: all of them must be that large, and a number is more informative.
                each = [self.of_whole_node(one, limit, above) for one in given]
                yield from each[0][:1] if all(each) else []
            inside = given if at.called_name == "max" else ()
        elif at.kind == "op":
            left, by = at.operands
            few = isinstance(by.constant, (int, float)) and (at.operator == "Sub" or (at.operator in ("Div", "FloorDiv") and by.constant < _FEW))
            if few and self.of_whole_node(left, limit, above):
                yield at
        elif at.kind == "choice" and at.test is not None:
            inside = [arm for arm, holds in zip(at.ways, (True, False), strict=True) if not is_bounded(arm, at.test, holds, limit - 1)]
        elif at.kind in ("phi", "copy") or (at.kind == "bool" and at.operator == "Or"):
            inside = at.ways
        elif at.kind in ("param", "free"):
            inside = at.given if at.kind == "param" else at.bound_outside
        for one in inside:
            yield from self.of_whole_node(one, limit, above)

    def _ways_of(self, at: Expr, default: str, seen: set[Expr]) -> list[Way]:
        if at in seen and at.kind != "const":
            return []
        seen.add(at)
        if at.kind == "bool" and at.operator == "Or":
            # A 0 is replaced by the next operand.
            ways = [self._ways_of(one, default, seen) for one in at.ways]
            return [way for some in ways[:-1] for way in some if way.number != 0] + ways[-1]
        if at.kind in ("phi", "choice", "copy"):
            return [way for one in at.ways for way in self._ways_of(one, default, seen)]
        if at.kind == "param":
            return self._ways_of_parameter(at.function, at.name, default, seen)
        if at.kind == "attr" and (written := self._only_written(at)):
            return [way for one in written for way in self._ways_of(one, default, seen)]
        if at.kind == "op":
            return self._ways_of_operation(at, default, seen) or self._ways_of_value(at, default)
        if isinstance(at, Call):
            return self._ways_of_look_up(at, seen) or self._ways_of_extreme(at, seen) or self._ways_of_value(at, default)
        return self._ways_of_value(at, default)

    def _only_written(self, attribute: Expr) -> list[Expr]:
        """The value that a class sets for an attribute of ``self``, if no other code sets it."""
        owner = attribute.owner_of_self
        return owner.written(attribute.name) if owner is not None and not self.code.writes_of(attribute.name) else []

    def _ways_of_look_up(self, call: Call, seen: set[Expr]) -> list[Way]:
        """``int(…)`` of a number, and the default of ``cfg.get(name, default)``, ``os.environ.get(…)`` and ``getattr(cfg, name, default)``."""
        name, given = call.called_name, call.positional
        if name in _CASTS and len(given) == 1:
            return self._ways_of(given[0], "", seen)
        if name not in _LOOK_UPS - {"pop"} or len(given) != (3 if name == "getattr" else 2):
            return []
        asked, default = given[-2].constant, str(given[-1].constant)
        return [Way(int(default), str(asked))] if asked is not ... and default.isdecimal() and len(default) < _DIGITS else []

    def _ways_of_operation(self, at: Expr, default: str, seen: set[Expr]) -> list[Way]:
        """A product of 0, and a division that rounds down; empty if the value itself must decide."""
        left, right = (self._ways_of(one, default, seen) for one in at.operands)
        if at.operator == "Mult" and any(way.number == 0 for way in (*left, *right)):
            return [_UNKNOWN, *(way for way in (*left, *right) if way.number == 0)]
        if at.operator != "FloorDiv" or any(way.number is not None for way in right):
            # A division by a small constant is 0 on one CPU only.
            return []
        divided = at.operands[0].plain
        zeros = [way for way in left if way.number == 0]
        rounds_up = divided.kind == "un" or (divided.kind == "op" and divided.operator in ("Add", "Sub"))
        return [_UNKNOWN, *(zeros if rounds_up else [*zeros, Way(0, ROUNDED_DOWN)])]

    def _ways_of_extreme(self, call: Call, seen: set[Expr]) -> list[Way]:
        """The smallest of some numbers may be any of them, the largest is 0 only if all may be 0."""
        name, given = call.called_name, call.positional
        if name not in ("min", "max") or len(given) < 2:
            return []
        zeros = [next((way for way in self._ways_of(one, "", seen) if way.number == 0), None) for one in given]
        found = [way for way in zeros if way is not None]
        return [_UNKNOWN, found[0]] if found and (name == "min" or len(found) == len(given)) else []

    def _ways_of_parameter(self, function: Function, name: str, default: str, seen: set[Expr]) -> list[Way]:
        if options := function.options_for(name):
            return [_of_option(one) for one in options]
        written = function.default(name)
        if not function.callers:
            left = self._ways_of(written, default or "parameter", seen) if written is not None else [_UNKNOWN]
            return [replace(way, setting=way.setting or name) if written is not None else way for way in left]
        ways: list[Way] = []
        for call in function.callers:
            given = call.argument_for(function.parameters[name])
            if given.is_absent and written is not None:
                ways += [replace(way, left=way.left or call) for way in self._ways_of(written, default or "parameter", seen)]
                continue
            found = [way for one in given.values for way in self._ways_of(one, default, seen)]
            is_own = call in given.givers
            ways += [replace(way, giver=way.giver or call) if is_own else way for way in found] if given.values else [_UNKNOWN]
        return ways

    def _ways_of_value(self, at: Expr, default: str) -> list[Way]:
        numbers = [0 if one is False else one if type(one) is int else None for one in at.may_be().constants]
        ways = [*(Way(one, default) for one in numbers), *map(_of_option, at.options), *([Way(None, default)] if at.is_object else [])]
        return ways or self._ways_by_name(at) or [Way(None, default)]

    def _ways_by_name(self, at: Expr) -> list[Way]:
        """An attribute of an unknown object, such as ``args.workers``: the flags of this name in the file and in files
        connected by imports."""
        if at.kind != "attr" or at.base is None:
            return []
        if at.name == WORKERS_OF_TRAINER:
            return self._ways_of_fields(at.name, None)
        if at.base.value:
            return []
        constructor = _constructor_of_hyperparameters(at)
        if constructor is not None:
            return self._ways_of_parameter(constructor, at.name, "", set())
        # What a configuration file gives is not what a command line gives.
        options = [] if self.code[ReadSettings].is_read(at.base) else at.options_by_name
        return [_of_option(one) for one in options] or self._ways_of_fields(at.name, at)

    def _ways_of_fields(self, name: str, near: Expr | None) -> list[Way]:
        """The defaults of the settings of this name in the records near an expression (None: all): a parser fills these."""
        owners = [one for one in self.code.classes_with_field(name) if near is None or near.may_run_with(one)]
        values = [value for owner in owners for value in owner.field_values(name)]
        if name == WORKERS_OF_TRAINER:
            values += [value for call in self.code.calls(TRAINING_ARGUMENTS) for value in call.argument(name).values]
            if not values:
                return [Way(0, name)]
        return [replace(way, default=name) for value in values for way in self._ways_of_value(value, name)]


def _of_option(option: Option) -> Way:
    default = option.default_value
    return Way(default if type(default) is int else None, option.flag, option)


def _constructor_of_hyperparameters(attribute: Expr) -> Function | None:
    """The ``__init__`` whose argument ``self.hparams.name`` of Lightning is."""
    held = attribute.base
    owner = held.owner_of_self if held is not None and held.name == "hparams" else None
    init = next(iter(owner.methods("__init__")), None) if owner is not None else None
    return init if init is not None and init.module is attribute.module and attribute.name in init.parameters else None


def setting_of(at: Expr) -> str:
    """The name of the setting that an expression reads: ``told["workers"]``, ``told.workers``, ``told.get("workers")``, a parameter's."""
    if at.kind in ("attr", "param"):
        return at.name
    key = at.index
    if isinstance(at, Call) and at.called_name in _LOOK_UPS and at.positional:
        key = at.positional[1 if at.called_name == "getattr" and len(at.positional) > 1 else 0]
    return key.constant if key is not None and isinstance(key.constant, str) else ""


def looked_up_default(call: Call) -> Expr | None:
    """The default of ``cfg.get(name, default)``, ``os.getenv(…)``, ``getattr(cfg, name, default)``."""
    named = next((value for name, value in call.keywords if name == "default"), None)
    return call.positional[-1] if len(call.positional) == (3 if call.called_name == "getattr" else 2) else named


def counts_affinity(call: Call) -> bool:
    """``len(os.sched_getaffinity(0))``."""
    inner = call.positional[0] if len(call.positional) == 1 else None
    return call.called_name == "len" and isinstance(inner, Call) and "os.sched_getaffinity" in inner.callee.interfaces


def is_bounded(arm: Expr, test: Expr, holds: bool, most: int) -> bool:
    """Whether a condition keeps a number below a limit: ``5 if os.cpu_count() > 4 else os.cpu_count()``."""
    bound = (_AT_MOST if holds else _AT_MOST_UNLESS).get(test.operator) if test.kind == "cmp" else None
    if bound is None or not _is_written_like(test.operands[0], arm):
        return False
    right = test.operands[1].constant
    return isinstance(right, (int, float)) and right + bound <= most


def may_exceed(text: str, most: int) -> bool:
    """Whether the text of an argument is a larger number, or may be one after shell expansion."""
    return "$" in text or "`" in text or (text.isdecimal() and whole(text) > most)


def _rounded_up(left: Expr, right: Expr) -> list[Expr]:
    """``workers`` of ``(workers + ranks - 1) / ranks``, which is not larger; empty for another division."""
    terms, todo = list[Expr](), [left]
    while todo:
        at = todo.pop()
        sums = at.plain if at.plain.operator in ("Add", "Sub") else None
        todo += sums.operands if sums is not None else []
        terms += [at] if sums is None else []
    others = [one for one in terms if not _is_written_like(one, right)]
    return [one for one in others if one.kind != "const"] if len(others) < len(terms) else []


def _is_written_like(one: Expr, other: Expr) -> bool:
    """Whether two expressions of a file are written alike."""
    if one == other or (one.row == other.row):
        return True
    if one.kind != other.kind or one.kind not in ("call", "attr") or one.name != other.name or len(one.operands) != len(other.operands):
        return False
    named = isinstance(one, Call) and isinstance(other, Call) and bool(one.keywords or other.keywords)
    return not named and all(_is_written_like(a, b) for a, b in zip(one.operands, other.operands, strict=True))


def _whole(value: Expr) -> int | None:
    """A literal integer, also as text."""
    literal = value.plain.constant
    if isinstance(literal, str):
        return int(literal) if literal.isdecimal() and len(literal) <= _DIGITS else None
    return literal if type(literal) is int else None


def _number(value: object) -> float:
    if isinstance(value, str) and value.isdecimal() and len(value) <= _DIGITS:
        return int(value)
    return value if isinstance(value, (int, float)) and not isinstance(value, bool) else 0


def _mentions(test: Expr, numbers: Collection[Expr]) -> bool:
    """Whether a test is one of these expressions, negates or compares it."""
    parts = [test, *(test.operands if test.kind in ("cmp", "not") else [])]
    return any(_is_one_of(part, numbers) for part in parts)


def _asks_for_workers(test: Expr, numbers: Collection[Expr]) -> bool | None:
    """True for a test that there are workers, False for one that there are none, None for any other."""
    if test.kind == "not":
        inner = _asks_for_workers(test.operands[0], numbers)
        return None if inner is None else not inner
    if _is_one_of(test, numbers):
        return True
    if test.kind == "cmp" and test.operator and _is_one_of(test.operands[0], numbers):
        right = test.operands[1].constant
        return _ASKS_FOR_WORKERS.get((test.operator, right)) if type(right) is int else None
    return None


def _is_one_of(at: Expr, numbers: Collection[Expr]) -> bool:
    """Whether an expression is one of some numbers, or written like one in its file."""
    return any(at == one or (at.module is one.module and at.row == one.row) for one in numbers)


__all__ = ["ROUNDED_DOWN", "WORKERS_OF_TRAINER", "Way", "Workers"]
