"""Values used when none is passed: the default of a parameter without known callers, or of a look-up by a key.

Options of a command line and fields of settings are handled in `ldlm_lint.program.queries` and `read_settings`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from ldlm_lint.program.atoms import MASK

if TYPE_CHECKING:
    from ldlm_lint.program import Program
    from ldlm_lint.program.modules import Module

_CASTS = frozenset({"int", "float"})
_LOOK_UPS = {"get": 2, "getenv": 2, "getattr": 3}
"""What looks something up, with the number of arguments of which the last is the default."""


class Fallback(NamedTuple):
    """A number used when none is passed: the constant (its key), what it is the default of, and its place.

    ``look_up`` is the call (key) of the look-up; without one, ``place`` is that of the function with the parameter.
    """

    key: int
    what: str
    look_up: int
    place: int


def fallback_of(program: Program, key: int) -> Fallback | None:
    """The number that an expression falls back to."""
    module = program.module_of(key)
    number = key & MASK
    row = module.plain(number)
    while row[0] == "call" and module.last_name(row[1]) in _CASTS and len(row[2]) == 1:
        number = row[2][0]
        row = module.plain(number)
    if row[0] == "param":
        return _of_parameter(program, module, row[1], row[2])
    return _of_look_up(module, row, number) if row[0] == "call" else None


def _of_parameter(program: Program, module: Module, scope: int, name: str) -> Fallback | None:
    default = module.scopes[scope].defaults.get(name)
    if default is None or not _is_number(module, default) or program.calls_of_function(module.base | scope):
        return None
    return Fallback(module.base | default, name, 0, module.scopes[scope].place)


def _of_look_up(module: Module, row: tuple[object, ...], number: int) -> Fallback | None:
    """``os.environ.get("WAIT_HOURS", 24)``, ``getattr(config, "hours", 24)``."""
    args: tuple[int, ...] = row[2]  # type: ignore[assignment]
    keywords: tuple[tuple[str, int], ...] = row[3]  # type: ignore[assignment]
    wanted = _LOOK_UPS.get(module.last_name(int(str(row[1]))), 0)
    given = args[-1] if wanted and len(args) == wanted else next((value for name, value in keywords if name == "default"), 0) if wanted else 0
    name = module.nodes[args[wanted - 2]] if wanted and len(args) >= wanted - 1 else ("none",)
    if not given or not _is_number(module, given) or name[0] != "const" or not isinstance(name[1], str):
        return None
    return Fallback(module.base | given, name[1], module.base | number, 0)


def _is_number(module: Module, number: int) -> bool:
    row = module.nodes[number]
    return row[0] == "const" and isinstance(row[1], (int, float)) and not isinstance(row[1], bool)
