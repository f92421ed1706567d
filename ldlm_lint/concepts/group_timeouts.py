"""Process groups and how long they wait: the calls of ``timedelta`` that make their timeouts, wherever these come from, and the
defaults that a length depends on.

    parser.add_argument("--hours", default=24)    def join(seconds=36_000)    int(os.environ.get("WAIT_HOURS", 24))
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import NamedTuple

from ldlm_lint.model import Span
from ldlm_lint.program.codebase import Concept
from ldlm_lint.program.handles import Argument, Call, Expr, Function
from ldlm_lint.vocabulary.durations import SECONDS, UNITS

_OF_TORCH = {"init_process_group": 2, "new_group": 1, "new_subgroups": 2, "new_subgroups_by_enumeration": 1, "split_group": 2}
_OF_LIGHTNING = [f"{package}.strategies.{name}" for package in ("pytorch_lightning", "lightning", "lightning.pytorch") for name in ("DDPStrategy", "FSDPStrategy")]
_PLACES: dict[str, int | None] = {
    **{f"torch.distributed.{module}{name}": place for name, place in _OF_TORCH.items() for module in ("", "distributed_c10d.")},
    **{f"accelerate.{module}InitProcessGroupKwargs": 2 for module in ("", "utils.", "utils.dataclasses.")},
    **dict.fromkeys(["deepspeed.init_distributed", *_OF_LIGHTNING]),
}
"""What takes a timeout, with its place among the positional arguments, if it has one."""
_DEFAULT_GROUP = "init_process_group"
_BACKENDS = {"nccl": 600.0, "gloo": 1800.0, "mpi": 1800.0}
"""How long a group waits by default, in seconds, by its backend."""
_CASTS = frozenset({"int", "float"})
_LOOK_UPS = {"get": 2, "getenv": 2, "getattr": 3}
"""What looks something up, with the number of arguments of which the last is the default."""
_LARGEST = 1e12


class Default(NamedTuple):
    """What a length is if nothing else is given: its name, and its place: the call that adds an option or looks something
    up, the function with a parameter, or the line of a field."""

    what: str
    place: Call | Function | Span
    constant: Expr | None = None


class Length(NamedTuple):
    """A length in seconds: its call of ``timedelta``, and the default that it depends on, if any."""

    seconds: float
    call: Call
    default: Default | None


class Group(NamedTuple):
    """A call that takes the timeout of a process group, what is given for it, as it is called and by position, and the
    lengths that this may have, as far as they are known."""

    call: Call
    timeout: Argument
    place: int | None
    lengths: tuple[Length, ...]

    @property
    def is_default(self) -> bool:
        """Whether it creates the default group of a program."""
        return any(name.endswith(_DEFAULT_GROUP) for name in self.call.callee.interfaces)

    @property
    def given(self) -> Expr | None:
        """What it gives as its timeout: no constant, and another length than the default of its backend."""
        value = next(iter(self.timeout.values), None)
        if value is None or value.may_be().constants:
            return None
        defaults = {_BACKENDS.get(str(one).lower()) for backend in self.call.argument("backend", 0).values for one in backend.may_be().constants}
        return value if not self.lengths or {one.seconds for one in self.lengths} != defaults else None


class GroupTimeouts(Concept):
    """The process groups of a program."""

    @cached_property
    def takers(self) -> tuple[Group, ...]:
        """All calls that take a timeout."""
        calls = ((call, next(_PLACES[name] for name in sorted(call.callee.interfaces) if name in _PLACES)) for call in self.code.calls(_PLACES))
        return tuple(Group(call, call.argument("timeout", place), place, tuple(self._lengths(call, place))) for call, place in calls)

    @cached_property
    def groups(self) -> tuple[Group, ...]:
        """Those on which a device waits: not those on gloo beside the default group."""
        return tuple(one for one in self.takers if one.is_default or not _is_on_gloo(one.call))

    @cached_property
    def default_groups(self) -> tuple[Group, ...]:
        """Those that create the default group."""
        return tuple(one for one in self.takers if one.is_default)

    def length_of(self, value: Expr) -> tuple[Length, ...]:
        """The lengths that a value may be, of the calls of ``timedelta`` that made it."""
        lengths = (self._length(made) for made in value.made_at("datetime.timedelta"))
        return tuple(one for one in lengths if one is not None)

    def _lengths(self, call: Call, place: int | None) -> Iterator[Length]:
        later = [value for target, value in self.code.writes_of("timeout") if call.value & target.value]
        is_beside = len(later) == 1 and later[0].module is call.module and isinstance(later[0], Call) and later[0].spot.is_beside(call.spot)
        return (one for value in (later if is_beside else call.argument("timeout", place).values) for one in self.length_of(value))

    def _length(self, call: Call) -> Length | None:
        """The length of a call of ``timedelta`` if all its numbers are known, possibly from the default of a flag."""
        total, default = 0.0, None
        for unit, value in [*zip(UNITS, call.positional, strict=False), *call.keywords]:
            amount, given_by = self._amount(value)
            if unit not in SECONDS or amount is None:
                return None
            total, default = total + SECONDS[unit] * amount, given_by or default
        return Length(total, call, default)

    def _amount(self, value: Expr) -> tuple[float | None, Default | None]:
        value = _given_by_its_caller(value)
        default = _fallback(value)
        if default is not None and default.constant is not None:
            return _number(default.constant), default
        meaning, default = value.may_be(), _field(value)
        if len(meaning.flags) == 1 and len(meaning.value) == 1:
            flag = self.ask.flag(meaning.flags[0])
            meaning, default = self.ask.default_of(flag), Default(flag.name, Call(self.code, flag.call))
        numbers = [one for one in meaning.constants if isinstance(one, (int, float)) and not isinstance(one, bool) and abs(one) < _LARGEST]
        known = len(numbers) == len(meaning.value) == 1 and meaning.is_complete
        return (numbers[0] if known else None), default


def _is_on_gloo(call: Call) -> bool:
    return [one.may_be().only for one in call.argument("backend").values] == ["gloo"]


def _given_by_its_caller(value: Expr) -> Expr:
    """The argument of a function's only caller for a parameter, ignoring its default; any other expression unchanged."""
    parameter = value.plain
    if parameter.kind != "param" or len(parameter.function.callers) != 1:
        return value
    given = parameter.function.callers[0].given_for(parameter)
    return value if given is None else given


def _fallback(value: Expr) -> Default | None:
    """The number that an expression falls back to: the default of a parameter without known callers, or of a look-up by a
    key."""
    value = value.plain
    while isinstance(value, Call) and value.called_name in _CASTS and len(value.positional) == 1:
        value = value.positional[0].plain
    if value.kind == "param":
        default = value.function.default(value.name)
        is_used = default is not None and _number(default) is not None and not value.function.callers
        return Default(value.name, value.function, default) if is_used else None
    wanted = _LOOK_UPS.get(value.called_name, 0) if isinstance(value, Call) else 0
    if not isinstance(value, Call) or not wanted or len(value.positional) < wanted - 1:
        return None
    given = value.positional[-1] if len(value.positional) == wanted else dict(value.keywords).get("default")
    name = value.positional[wanted - 2].constant
    is_known = given is not None and _number(given) is not None and isinstance(name, str)
    return Default(str(name), value, given) if is_known else None


def _number(value: Expr) -> float | None:
    number = value.constant
    return number if isinstance(number, (int, float)) and not isinstance(number, bool) else None


def _field(value: Expr) -> Default | None:
    """The field of a class that an expression reads from an object, if it does."""
    for owner in value.base.classes_of if value.kind == "attr" and value.base is not None else ():
        for one in owner.bases:
            line = one.line_of(value.name)
            if line is not None:
                return Default(value.name, line)
    return None


__all__ = ["Default", "Group", "GroupTimeouts", "Length"]
