"""Every way in which Python sets an environment variable: its own, or that of a process which it starts.

``os.environ["X"] = "1"``, ``setdefault``, ``putenv``, ``update`` and ``|=`` with any dictionary that the file decides,
loops over names and values, and dictionaries that are passed as the environment of a process (``env={**os.environ, "X":
"1"}``).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from astroid import nodes

from ldlm_lint.checkers.environment_callers import calls_of, function_with
from ldlm_lint.python.calls import mapping_of
from ldlm_lint.python.names import qualified
from ldlm_lint.python.scopes import scope_of
from ldlm_lint.python.values import constant, only_binding
from ldlm_lint.python.walks import nodes_of
from ldlm_lint.rules.environment_decisions import is_relevant
from ldlm_lint.rules.settings import Origin

_ENVIRON = {"os.environ"}
_SETTERS = {"os.environ.setdefault": Origin.DEFAULT, "os.putenv": Origin.LITERAL}
_NAME_AND_VALUE = 2
# Calls that start a process with the environment as last argument.
_EXECUTED = frozenset(f"os.{name}" for name in ("execle", "execlpe", "execve", "execvpe", "spawnle", "spawnlpe", "spawnve", "spawnvpe"))
_DEPTH = 5

_Shared = set[tuple[str, nodes.NodeNG | None]]


class Write(NamedTuple):
    """A name and a value that a statement puts into an environment.

    ``part`` is the pair's place if that is not the whole statement: its first and last node. ``own`` is whether the
    environment is that of the running process, which child processes inherit.
    """

    statement: nodes.NodeNG
    key: nodes.NodeNG | None
    name: str
    value: nodes.NodeNG
    origin: Origin = Origin.LITERAL
    part: tuple[nodes.NodeNG, nodes.NodeNG] | None = None
    own: bool = True


def writes_of(module: nodes.NodeNG) -> Iterator[Write]:
    """The writes of a module, or of a statement, into environments, for names of any rule; each pair of a shared
    dictionary once."""
    seen: set[tuple[nodes.NodeNG, str]] = set()
    shared: _Shared = set()
    for node in nodes_of(module, (nodes.Assign, nodes.AugAssign, nodes.Call, nodes.Return)):
        for write in _written(node, shared):
            if write.part is None or (write.part[0], write.name) not in seen:
                yield write
            if write.part is not None:
                seen.add((write.part[0], write.name))


def _written(node: nodes.NodeNG, shared: _Shared) -> Iterator[Write]:
    """The writes of a statement or call; ``shared`` are the dictionaries in variables that were handled already."""
    if isinstance(node, nodes.Assign):
        yield from _assigned(node)
    elif isinstance(node, nodes.AugAssign):
        yield from _merged(node, shared)
    elif isinstance(node, nodes.Call):
        yield from _passed(node, shared)
        yield from _handed_on(node, shared)
    elif node.value is not None and _begins_with_environment(node.value):
        yield from _held(node, node.value, shared, own=False)


def _assigned(node: nodes.Assign) -> Iterator[Write]:
    """``os.environ[name] = value``."""
    for target in node.targets:
        if isinstance(target, nodes.Subscript):
            found = [one for one in _pairs(node, target.slice, node.value) if is_relevant(one.name)]
            if found and _is_environment(target.value):
                yield from found


def _merged(node: nodes.AugAssign, shared: _Shared) -> Iterator[Write]:
    """``os.environ |= {name: value}``."""
    if node.op == "|=" and _is_environment(node.target):
        yield from _held(node, node.value, shared)


def _passed(node: nodes.Call, shared: _Shared) -> Iterator[Write]:
    """The arguments of ``setdefault``, ``putenv`` and ``update``."""
    # Names are resolved last: few calls pass a possible variable of interest.
    if len(node.args) == _NAME_AND_VALUE:
        pairs = [one for one in _pairs(node, *node.args) if is_relevant(one.name)]
        setter = _called(node) if pairs else ""
        if setter in _SETTERS:
            yield from (one._replace(origin=_SETTERS[setter]) for one in pairs)
    elif isinstance(node.func, nodes.Attribute) and node.func.attrname == "update" and _called(node) == "os.environ.update":
        for one in node.args:
            yield from _held(node, one, shared)
        for keyword in node.keywords:
            if keyword.arg is None:
                yield from _held(node, keyword.value, shared)
            elif is_relevant(keyword.arg):
                yield Write(node, None, keyword.arg, keyword.value, part=(keyword, keyword))


def _handed_on(node: nodes.Call, shared: _Shared) -> Iterator[Write]:
    """The environment of a process that a call starts: ``env=`` of ``subprocess.run`` and similar calls, the last
    argument of ``os.execve``."""
    for keyword in node.keywords:
        if keyword.arg == "env":
            yield from _held(node, keyword.value, shared, own=False)
    if node.args and isinstance(node.func, nodes.Attribute) and node.func.attrname.endswith("e") and _called(node) in _EXECUTED:
        yield from _held(node, node.args[-1], shared, own=False)


def _held(node: nodes.NodeNG, mapping: nodes.NodeNG, shared: _Shared, own: bool = True) -> Iterator[Write]:
    """The pairs of a dictionary, from anywhere in the file; a dictionary in a variable is handled once."""
    if isinstance(mapping, (nodes.Attribute, nodes.Const)):
        return
    if isinstance(mapping, nodes.Name):
        key = mapping.name, scope_of(mapping)
        if key in shared:
            return
        shared.add(key)
        function = function_with(mapping)
        if function is not None:
            yield from _held_of_callers(function, mapping.name, shared, own)
            return
    for name, argument in mapping_of(mapping).entries.items():
        value = argument.node
        if value is None or not is_relevant(name):
            continue
        written, first = _key_of(value)
        yield Write(node.statement(), written, name, value, part=(first, value if first is not value.parent else first), own=own)


def _held_of_callers(function: nodes.FunctionDef, name: str, shared: _Shared, own: bool) -> Iterator[Write]:
    """The dictionary that each call of a function passes for writing, ``**variables`` too."""
    for call, arguments in calls_of(function):
        if name == function.args.kwarg:
            keywords = (one for one in call.keywords if one.arg is not None and is_relevant(one.arg))
            yield from (Write(call, None, one.arg, one.value, part=(one, one), own=own) for one in keywords)
        elif (given := arguments[name].node) is not None and function_with(given) is None:
            yield from _held(call, given, shared, own)


def _key_of(value: nodes.NodeNG) -> tuple[nodes.NodeNG | None, nodes.NodeNG]:
    """The key that a value is written next to, and the first node of the pair."""
    parent = value.parent
    if isinstance(parent, nodes.Dict):
        key = next(key for key, held in parent.items if held is value)
        return key, key
    if isinstance(parent, nodes.Assign) and isinstance(target := parent.targets[0], nodes.Subscript):
        return target.slice, target
    return None, parent


def _pairs(node: nodes.NodeNG, key: nodes.NodeNG, value: nodes.NodeNG) -> Iterator[Write]:
    """A literal name and value, or those from each iteration of a loop around the statement."""
    name = constant(key)
    if isinstance(name, str):
        yield Write(node, key, name, value)
    elif isinstance(key, nodes.Name) and (loop := _loop_over(node, key.name)) is not None:
        yield from _of_loop(node, loop, key.name, value)
    elif isinstance(key, nodes.Name) and (function := function_with(key)) is not None:
        yield from _of_callers(function, key.name, value)


def _of_callers(function: nodes.FunctionDef, key: str, value: nodes.NodeNG) -> Iterator[Write]:
    """The values set by each call of a function that sets one variable."""
    held = _text_of(value)
    for call, arguments in calls_of(function):
        written = arguments[key].node
        given = arguments[held].node or (value if function_with(value) is None else None)
        if given is not None and isinstance(name := constant(written), str):
            yield Write(call, written, name, given, part=(written, given if given.root() is call.root() and given is not value else written))


def _loop_over(node: nodes.NodeNG, name: str) -> nodes.For | None:
    """The loop around a statement that is the only binding of a name in each iteration."""
    loop = node.parent
    while loop is not None and not isinstance(loop, (nodes.FunctionDef, nodes.Lambda, nodes.ClassDef)):
        if isinstance(loop, nodes.For) and any(one.name == name for one in nodes_of(loop.target, nodes.AssignName)):
            bound = [one for one in nodes_of(loop, nodes.AssignName) if one.name == name]
            return loop if len(bound) == 1 else None
        loop = loop.parent
    return None


def _of_loop(node: nodes.NodeNG, loop: nodes.For, name: str, value: nodes.NodeNG) -> Iterator[Write]:
    """The writes of each iteration of a loop, if names and values are literals."""
    target = loop.target
    if isinstance(target, nodes.AssignName):
        for key in _elements(loop.iter):
            if isinstance(text := constant(key), str):
                yield Write(node, key, text, value, part=(key, key))
    elif isinstance(target, nodes.Tuple) and [getattr(one, "name", "") for one in target.elts] == [name, _text_of(value)]:
        for key, held in _rows(loop.iter):
            if isinstance(text := constant(key), str):
                yield Write(node, key, text, held, part=(key, held))


def _text_of(value: nodes.NodeNG) -> str:
    """The name of a variable, also if it is converted to text first."""
    if isinstance(value, nodes.Call) and len(value.args) == 1 and getattr(value.func, "name", "") == "str":
        value = value.args[0]
    return value.name if isinstance(value, nodes.Name) else "?"


def _rows(rows: nodes.NodeNG, depth: int = 0) -> Iterator[tuple[nodes.NodeNG, nodes.NodeNG]]:
    """The pairs that a loop iterates over: a dictionary's ``items()``, or tuple literals."""
    if isinstance(rows, nodes.Call) and isinstance(rows.func, nodes.Attribute) and rows.func.attrname == "items":
        for argument in mapping_of(rows.func.expr).entries.values():
            key = _key_of(argument.node)[0] if argument.node is not None else None
            if key is not None and argument.node is not None:
                yield key, argument.node
        return
    for row in _elements(rows, depth):
        if isinstance(row, (nodes.Tuple, nodes.List)) and len(row.elts) == _NAME_AND_VALUE:
            yield row.elts[0], row.elts[1]


def _elements(sequence: nodes.NodeNG, depth: int = 0) -> list[nodes.NodeNG]:
    """The elements of a sequence literal, here or at the only binding of its name."""
    if isinstance(sequence, (nodes.Tuple, nodes.List, nodes.Set)):
        return list(sequence.elts)
    bound = only_binding(sequence) if isinstance(sequence, nodes.Name) and depth < _DEPTH else None
    return _elements(bound, depth + 1) if bound is not None else []


def _begins_with_environment(node: nodes.NodeNG, depth: int = 0) -> bool:
    """Whether a dictionary is a copy of the environment, with additions."""
    if depth > _DEPTH:
        return False
    if isinstance(node, nodes.Name):
        bound = only_binding(node)
        return bound is not None and _begins_with_environment(bound, depth + 1)
    if isinstance(node, nodes.BinOp):
        return node.op == "|" and (_is_environment(node.left) or _begins_with_environment(node.left, depth + 1))
    if isinstance(node, nodes.Dict):
        return any(isinstance(key, nodes.DictUnpack) and _is_environment(value) for key, value in node.items)
    return isinstance(node, nodes.Call) and _copies_environment(node)


def _copies_environment(call: nodes.Call) -> bool:
    """``os.environ.copy()``, ``dict(os.environ, …)``."""
    if isinstance(call.func, nodes.Attribute) and call.func.attrname in ("copy", "deepcopy"):
        return _is_environment(call.func.expr) or any(map(_is_environment, call.args))
    named = isinstance(call.func, nodes.Name) and call.func.name == "dict" and scope_of(call.func) is None
    return named and any(map(_is_environment, (*call.args, *(one.value for one in call.keywords if one.arg is None))))


def _is_environment(node: nodes.NodeNG) -> bool:
    if isinstance(node, nodes.AssignAttr):
        return node.attrname == "environ" and qualified(node.expr) == {"os"}
    return isinstance(node, (nodes.Attribute, nodes.Name)) and qualified(node) == _ENVIRON


def _called(node: nodes.Call) -> str:
    names = qualified(node.func)
    return next(iter(names)) if len(names) == 1 else ""


__all__ = ["Write", "writes_of"]
