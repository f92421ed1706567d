"""Functions that another process or thread runs: ``spawn(run, args=(…))`` is a call of ``run`` with these arguments.

Such a call is put into the table beside the one that starts the process, so that whoever asks for calls finds both.
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
    """The number of the new call, 0 where nothing tells what it would give."""
    row = module.nodes[call]
    given = {keyword: value for keyword, value in row[3] if keyword}
    function = given.get(parameter, row[2][0] if row[2] and parameter != "target" else 0)
    if not function or not given.keys() & {"args", "kwargs"} or module.nodes[function][0] in ("star", "const", "none"):
        return 0
    args = [0] if takes_rank else []
    if "args" in given:
        packed = module.nodes[given["args"]]
        args += packed[2] if packed[0] == "seq" else [_append(module, ("star", given["args"]), call)]
    keywords = ((None, given["kwargs"]),) if "kwargs" in given else ()
    number = _append(module, ("call", function, tuple(args), keywords), call)
    site = module.table.sites[number] = module.table.sites[call]
    module.scopes[site.scope].calls.append(number)
    return number


def _append(module: Module, row: Node, beside: int) -> int:
    module.nodes.append(row)
    module.table.places.append(module.table.places[beside])
    return len(module.nodes) - 1
