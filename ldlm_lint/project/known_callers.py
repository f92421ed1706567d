"""The calls of a top-level function, if the texts of a project show no sign of others."""

from __future__ import annotations

import posixpath

from ldlm_lint.project.calls import Calls
from ldlm_lint.project.text import is_handed_on
from ldlm_lint.python.flow import CallSite

_STEPS = 100


def known_callers(calls: Calls, path: str, name: str) -> list[tuple[str, CallSite]]:
    """All calls of a function with their files; empty if some may be missing, or the function is used as a value
    somewhere."""
    if not name or "." in name:
        return []
    project, word = calls.project, name.encode()
    # Another file may have its own function with that name.
    using = [one for one in project.files if word in project.data(one) and (one == path or name not in project.skim(one).defined)]
    if any(is_handed_on(name, project.data(one)) or _may_call(calls, one, path, name) for one in using):
        return []
    return list(calls.callers(path, name))


def _may_call(calls: Calls, other: str, path: str, name: str) -> bool:
    """Whether a file imports a function of that name from a module like its own, which is not found from there."""
    project, module = calls.project, posixpath.basename(path).removesuffix(".py")
    if module.encode() not in project.data(other):
        return False
    named = (one.callee.name for one in project.flow(other).calls if one.callee.kind == "import" and one.callee.name.endswith(f".{name}"))
    return any(module in one.split(".") and project.resolve(other, one) is None for one in named)


def starting_files(calls: Calls, path: str, name: str) -> set[str]:
    """The files where call paths to a function begin: at a top level, or at a function with unknown callers."""
    waiting, seen, found = [(path, name)], {(path, name)}, set()
    while waiting and len(seen) < _STEPS:
        where, scope = waiting.pop()
        callers = known_callers(calls, where, scope)
        if not callers:
            found.add(where)
        fresh = {(one, call.scope) for one, call in callers if call.scope} - seen
        found |= {one for one, call in callers if not call.scope}
        seen |= fresh
        waiting.extend(fresh)
    return found


__all__ = ["known_callers", "starting_files"]
