"""Calls on a parameter that is None unless a caller gives it, if no caller does: ``if sampler is not None:
sampler.set_epoch(0)``."""

from __future__ import annotations

from typing import NamedTuple

from astroid import nodes

from ldlm_lint.patterns import lazily
from ldlm_lint.project.calls import Calls
from ldlm_lint.project.known_callers import known_callers
from ldlm_lint.python.defaults import parameter_default
from ldlm_lint.python.flow import CallSite
from ldlm_lint.python.names import bindings
from ldlm_lint.python.places import function_of, position_of, scope_name
from ldlm_lint.python.walks import nodes_of

_OWNER = lazily(rb"([A-Za-z_]\w*)[ \t]*\.")


class Receiver(NamedTuple):
    """A parameter of a top-level function that is None by default: the function, the name, the position."""

    function: str
    name: str
    position: int


def is_never_given(calls: Calls, path: str, call: CallSite) -> bool:
    """Whether a call is one of a parameter's methods, and every caller of the function leaves the parameter at None."""
    function = calls.function(path, call.scope)
    if function is None or _owner(calls.project.data(path), call.position) not in (None, *function.params):
        return False
    receiver = calls.project.trees.glance(path, lambda module, _: _receiver(module, call.position))
    if receiver is None:
        return False
    callers = known_callers(calls, path, receiver.function)
    return bool(callers) and not any(_is_given(calls, receiver, *one) for one in callers)


def _owner(data: bytes, position: str) -> str | None:
    """The name before the first dot of a call, from its text; None if it begins differently."""
    line, column = map(int, position.split(":"))
    rows = data.split(b"\n", line)
    found = _OWNER.match(rows[line - 1], column) if line <= len(rows) else None
    return found[1].decode() if found else None


def _is_given(calls: Calls, receiver: Receiver, path: str, call: CallSite) -> bool | None:
    return calls.project.trees.glance(path, lambda module, _: _gives(module, call.position, receiver))


def _receiver(module: nodes.Module, position: str) -> Receiver | None:
    call = _call_at(module, position)
    name = call.func.expr if call is not None and isinstance(call.func, nodes.Attribute) else None
    if call is None or not isinstance(name, nodes.Name):
        return None
    bound, function = bindings(name), function_of(call)
    if len(bound) != 1 or not isinstance(function, nodes.FunctionDef) or bound[0].parent is not function.args:
        return None
    default = parameter_default(function, name.name)
    if not isinstance(function.parent, nodes.Module) or not isinstance(default, nodes.Const) or default.value is not None:
        return None
    names = [one.name for one in (*function.args.posonlyargs, *(function.args.args or ()))]
    return Receiver(scope_name(function), name.name, names.index(name.name) if name.name in names else len(names))


def _gives(module: nodes.Module, position: str, receiver: Receiver) -> bool:
    """Whether a call may pass the parameter; unknown calls may."""
    call = _call_at(module, position)
    if call is None or any(isinstance(one, nodes.Starred) for one in call.args):
        return True
    return len(call.args) > receiver.position or any(one.arg in (None, receiver.name) for one in call.keywords)


def _call_at(module: nodes.Module, position: str) -> nodes.Call | None:
    return next((one for one in nodes_of(module, nodes.Call) if position_of(one) == position), None)


__all__ = ["is_never_given"]
