"""Frozen records as `dataclasses.dataclass(frozen=True, slots=True)` makes them, made in a third of the time.

The standard library compiles six functions one by one for each class; for two hundred classes that was a fifth of what
loading the linter costs. Here three are compiled at once, and what is seldom called is shared.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

_WITH_SLOTS = {"frozen": True, "slots": True}
_PLAIN = ({"frozen": True}, _WITH_SLOTS)
_METHODS = frozenset({"__init__", "__post_init__", "__eq__", "__hash__", "__repr__", "__setattr__", "__delattr__", "__getstate__", "__setstate__"})
# A field that is said to be anything but a value with a default.
_SPECIAL = {"init": True, "repr": True, "hash": None, "compare": True, "metadata": {}, "kw_only": dataclasses.MISSING}
_ABSENT = object()
_METHODS_OF = """
def __init__({parameters}):
{body}
def __eq__(self, other):
 return {own} == {others} if other.__class__ is self.__class__ else NotImplemented
def __hash__(self):
 return hash({own})
"""

if TYPE_CHECKING:
    from dataclasses import dataclass
else:

    def dataclass(kind: type | None = None, /, **options: bool) -> type | Callable[[type], type]:
        """As `dataclasses.dataclass`."""
        return functools.partial(_made, options) if kind is None else _made(options, kind)


def _made(options: dict[str, bool], kind: type) -> type:
    if options not in _PLAIN or not _is_plain(kind):
        return dataclasses.dataclass(kind, **options)
    slots = options == _WITH_SLOTS
    record = dataclasses.dataclass(kind, init=False, repr=False, eq=False, slots=slots)
    record.__dataclass_params__ = _PARAMETERS
    shared = _SHARED | _STATE if slots else _SHARED
    for name, method in {**shared, **_compiled(record, dataclasses.fields(record), slots)}.items():
        setattr(record, name, method)
    return record


def _is_plain(kind: type) -> bool:
    """Whether a class has no base, no method that the library would spare, and no field but values with defaults."""
    own = vars(kind)
    if kind.__bases__ != (object,) or not _METHODS.isdisjoint(own):
        return False
    if any(word in str(said) for said in own.get("__annotations__", {}).values() for word in ("ClassVar", "InitVar", "KW_ONLY")):
        return False
    fields = [one for one in own.values() if isinstance(one, dataclasses.Field)]
    return all(getattr(one, name) == usual for one in fields for name, usual in _SPECIAL.items())


def _compiled(record: type, fields: tuple[dataclasses.Field[Any], ...], slots: bool) -> dict[str, Callable[..., Any]]:
    """The methods that are called most: an argument goes to its slot or among the attributes, past the ban on assignments."""
    known: dict[str, Any] = {"_absent": _ABSENT}
    parameters, lines = ["self"], [] if slots else [" _attributes = self.__dict__"]
    for name, default, make in ((one.name, one.default, one.default_factory) for one in fields):
        known |= {f"_default_{name}": default, f"_make_{name}": make}
        if slots:
            known[f"_set_{name}"] = getattr(record, name).__set__
        value = name
        if make is not dataclasses.MISSING:
            parameters.append(f"{name}=_absent")
            value = f"_make_{name}() if {name} is _absent else {name}"
        else:
            parameters.append(name if default is dataclasses.MISSING else f"{name}=_default_{name}")
        lines.append(f" _set_{name}(self, {value})" if slots else f" _attributes[{name!r}] = {value}")
    own, others = (f"({''.join(f'{whose}.{one.name}, ' for one in fields)})" for whose in ("self", "other"))
    body = "\n".join(lines) or " pass"
    exec(_METHODS_OF.format(parameters=", ".join(parameters), body=body, own=own, others=others), known)
    made = {name: known[name] for name in ("__init__", "__eq__", "__hash__")}
    for name, method in made.items():
        method.__qualname__ = f"{record.__qualname__}.{name}"
    return made


def _repr(self: Any) -> str:
    values = ", ".join(f"{name}={getattr(self, name)!r}" for name in self.__match_args__)
    return f"{self.__class__.__qualname__}({values})"


def _state(self: Any) -> list[object]:
    return [getattr(self, name) for name in self.__match_args__]


def _restore(self: Any, state: list[object]) -> None:
    for name, value in zip(self.__match_args__, state, strict=True):
        object.__setattr__(self, name, value)


def _refuse_to_assign(self: Any, name: str, value: object) -> None:
    raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")


def _refuse_to_delete(self: Any, name: str) -> None:
    raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")


@dataclasses.dataclass(frozen=True, slots=True)
class _Model:
    """What the library notes down of a class like these."""


_PARAMETERS = _Model.__dataclass_params__
_SHARED = {
    "__repr__": _repr,
    "__setattr__": _refuse_to_assign,
    "__delattr__": _refuse_to_delete,
}
_STATE = {"__getstate__": _state, "__setstate__": _restore}
