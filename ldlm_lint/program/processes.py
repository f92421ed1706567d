"""Functions that another process or thread runs: ``spawn(run, args=(…))`` is a call of ``run`` with these arguments.

Such a call is added to the table next to the one that starts the process, so that searches for calls find both.
"""

from __future__ import annotations

from ldlm_lint.code.table import Node
from ldlm_lint.program.modules import Module

_FUNCTIONS = {"spawn": ("fn", True), "start_processes": ("fn", True), "Process": ("target", False), "Thread": ("target", False)}
"""By the last name of what starts a process: the parameter for the function, and whether that gets a rank first."""
_LAUNCHERS = {"launch": ("main_func", False), "notebook_launcher": ("function", False)}
_STARTS = {**_FUNCTIONS, **_LAUNCHERS}
_ADDED = "()process"


def add_processes(module: Module) -> list[tuple[int, str, int]]:
    """Put the calls in: each with the last name of its function, and the call that starts it."""
    named = module.table.named
    if _ADDED in named:
        return []
    named[_ADDED] = []
    found = []
    for name in sorted(_STARTS.keys() & named.keys()):
        for call in list(named[name]):
            added = _added(module, call, *_STARTS[name])
            if added:
                last = module.last_name(module.nodes[added][1])
                named.setdefault(last, []).append(added)
                named[_ADDED].append(added)
                found.append((added, last, call))
    return found


def _added(module: Module, call: int, parameter: str, takes_rank: bool) -> int:
    """The number of the new call, 0 if its arguments are unknown."""
    row = module.nodes[call]
    given = {keyword: value for keyword, value in row[3] if keyword}
    function = given.get(parameter, row[2][0] if row[2] and parameter != "target" else 0)
    if takes_rank and len(row[2]) > 1:
        given.setdefault("args", row[2][1])
    if not function or not given.keys() & {"args", "kwargs"} or module.nodes[function][0] in ("star", "const", "none"):
        return 0
    args = [0] if takes_rank else []
    if "args" in given:
        packed = module.nodes[given["args"]]
        args += packed[2] if packed[0] == "seq" else [_append(module, ("star", given["args"]), call)]
    number = _append(module, ("call", function, tuple(args), _keywords(module, given.get("kwargs", 0))), call)
    site = module.table.sites[number] = module.table.sites[call]
    module.scopes[site.scope].calls.append(number)
    return number


def _keywords(module: Module, mapping: int) -> tuple[tuple[str | None, int], ...]:
    """The keywords from a mapping, one by one if it is a literal."""
    row = module.nodes[mapping]
    if row[0] != "map":
        return ((None, mapping),) if mapping else ()
    names = [module.nodes[key] for key in row[1]]
    if any(name[0] != "const" or name[1].__class__ is not str for name in names):
        return ((None, mapping),)
    return tuple((name[1], value) for name, value in zip(names, row[2], strict=True))


def _append(module: Module, row: Node, beside: int) -> int:
    module.nodes.append(row)
    module.table.places.append(module.table.places[beside])
    return len(module.nodes) - 1
