"""The configuration keys that an expression reads, as far as its own file shows.

``cfg.data.num_workers``, ``self.config["data"]["num_workers"]``, ``cfg.data.get("num_workers", 8)``, ``getattr(args,
"num_workers", 8)`` and ``OmegaConf.select(cfg, "data.num_workers")`` all read the keys ``data``, ``num_workers``. A
renamed root (``data_cfg = cfg.data``), an attribute that a class stores and a conversion (``int(…)``) are followed. A
chain that begins at a parameter is marked: the project resolves the callers' arguments.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from astroid import nodes

from ldlm_lint.patterns import lazily
from ldlm_lint.python.names import bindings, scope_of
from ldlm_lint.python.places import function_of, position_of, scope_name
from ldlm_lint.python.values import constant
from ldlm_lint.python.walks import nodes_of

ELEMENT = "*"
"""Stands for an element of a list among keys."""
_DEPTH = 12
_CASTS = {"int", "float", "bool", "str", "dict", "list", "to_container", "to_object", "asdict", "vars", "deepcopy", "copy"}
_CASTS |= {"EasyDict", "Namespace"}
# Names of a whole configuration: such a name in a chain is not a key.
_WHOLE = lazily(r"_?(?:\w*_)?(?:cfgs?|configs?|conf|args?|opts?|options|hparams|hps|params|settings|flags|namespace)", re.I)
_HELD_KEYS = {"get", "pop"}
# Tests that only check whether the key exists: the value is the key's in any case.
_PRESENCE = lazily(r"\bhasattr\(|\bis (?:not )?None\b|[\"'] (?:not )?in \w|\bisinstance\(")


class KeyRead(NamedTuple):
    """Keys that are read, outermost first, and the beginning of the chain.

    ``scope`` and ``parameter`` name the function and its parameter at the root, both empty for another root; without
    keys the parameter itself is the value. ``position`` is the ``line:column`` of the read, ``cap`` the largest number
    that ``min(cap, …)`` lets through.
    """

    keys: tuple[str, ...]
    scope: str
    parameter: str
    position: str
    cap: int | None = None


def reads_of(node: nodes.NodeNG) -> tuple[KeyRead, ...]:
    """The reads behind an expression, unchanged except for conversions; empty if it may be something else."""
    return tuple(dict.fromkeys(_reads(node, 0)))


def is_whole(name: str) -> bool:
    """Whether a name means a whole configuration, not for one of its keys."""
    return _WHOLE.fullmatch(name) is not None


def _reads(node: nodes.NodeNG, depth: int) -> Iterator[KeyRead]:
    if depth > _DEPTH:
        return
    if isinstance(node, nodes.Name):
        yield from _of_name(node, depth)
    elif isinstance(node, nodes.Attribute):
        yield from _of_attribute(node, depth)
    elif isinstance(node, nodes.Subscript):
        key = constant(node.slice)
        if isinstance(key, str):
            yield from _below(node.value, key, node, depth)
    elif isinstance(node, nodes.Call):
        yield from _of_call(node, depth)
    elif isinstance(node, nodes.BoolOp) and node.op == "or":
        for part in node.values:
            yield from _reads(part, depth + 1)
    elif isinstance(node, nodes.IfExp) and _PRESENCE.search(node.test.as_string()):
        yield from _reads(node.body, depth + 1)
        yield from _reads(node.orelse, depth + 1)


def _below(holder: nodes.NodeNG, key: str, node: nodes.NodeNG, depth: int) -> Iterator[KeyRead]:
    """The reads of a key below an expression; if that is not a chain itself, it is an unknown root."""
    found = list(_reads(holder, depth + 1))
    for one in found:
        yield one._replace(keys=(*one.keys, *_named(key, bool(one.keys or one.parameter))), position=position_of(node))
    if not found and not _is_import(holder):
        yield KeyRead(_named(key, False), "", "", position_of(node))


def _named(key: str, inside: bool) -> tuple[str, ...]:
    """The keys of a dotted name; ``self.cfg`` and ``trainer.config`` are a configuration, not a key of one."""
    parts = tuple(key.split("."))
    return parts if inside or len(parts) > 1 or not is_whole(key) else ()


def _is_import(node: nodes.NodeNG) -> bool:
    """A module's attribute (``os.environ``, ``settings.x``) is not a key."""
    while isinstance(node, (nodes.Attribute, nodes.Subscript)):
        node = node.expr if isinstance(node, nodes.Attribute) else node.value
    return isinstance(node, nodes.Name) and any(isinstance(one, (nodes.Import, nodes.ImportFrom)) for one in bindings(node))


def _of_name(node: nodes.Name, depth: int) -> Iterator[KeyRead]:
    for binding in bindings(node):
        statement = binding.parent
        if isinstance(statement, nodes.Arguments):
            function = statement.parent
            yield KeyRead((), scope_name(function), node.name, position_of(node))
        elif isinstance(binding, nodes.AssignName) and isinstance(statement, (nodes.Assign, nodes.AnnAssign)):
            # ``cfg = cfg`` and the like lead nowhere.
            if statement.value is not None and getattr(statement.value, "name", "") != node.name:
                yield from _reads(statement.value, depth + 1)
        elif isinstance(binding, nodes.AssignName):
            part = _part_of(binding)
            yield from _reads(part, depth + 1) if part is not None else _of_element(node, statement, depth)


def _part_of(binding: nodes.AssignName) -> nodes.NodeNG | None:
    """The value of a name in ``a, b = x, y``."""
    statement = binding.parent.parent
    value = statement.value if isinstance(binding.parent, nodes.Tuple) and isinstance(statement, nodes.Assign) else None
    pairs = zip(binding.parent.elts, value.elts, strict=False) if isinstance(value, nodes.Tuple) else ()
    return next((part for name, part in pairs if name is binding), None)


def _of_element(node: nodes.Name, statement: nodes.NodeNG, depth: int) -> Iterator[KeyRead]:
    """The element of a loop over a list of the configuration, or over an unknown value."""
    source = statement.iter if isinstance(statement, (nodes.For, nodes.Comprehension)) else None
    found = list(_reads(source, depth + 1)) if source is not None else []
    yield from (one._replace(keys=(*one.keys, ELEMENT)) for one in found)
    if not found:
        yield KeyRead((ELEMENT,), "", "", position_of(node))


def _of_attribute(node: nodes.Attribute, depth: int) -> Iterator[KeyRead]:
    holder = class_of_self(node.expr)
    if holder is not None:
        yield from _of_own(node, holder, depth)
    elif (owner := _owner_of_hparams(node.expr)) is not None:
        yield from _of_hyperparameter(node, owner)
    else:
        yield from _below(node.expr, node.attrname, node, depth)


def _owner_of_hparams(node: nodes.NodeNG) -> nodes.ClassDef | None:
    """The class whose ``self.hparams`` an expression is."""
    return class_of_self(node.expr) if isinstance(node, nodes.Attribute) and node.attrname == "hparams" else None


def _of_own(node: nodes.Attribute, holder: nodes.ClassDef, depth: int) -> Iterator[KeyRead]:
    """``self.x``: the value that the methods of the class store there."""
    stored = [one.parent.value for one in nodes_of(holder, nodes.AssignAttr) if one.attrname == node.attrname and _is_plain(one)]
    found = [read for value in stored for read in _reads(value, depth + 1)]
    yield from found
    if not stored and not is_whole(node.attrname):
        # A base class or a framework stores it.
        yield KeyRead((node.attrname,), "", "", position_of(node))


def _is_plain(target: nodes.AssignAttr) -> bool:
    return isinstance(target.parent, (nodes.Assign, nodes.AnnAssign)) and target.parent.value is not None


def _of_hyperparameter(node: nodes.Attribute, owner: nodes.ClassDef) -> Iterator[KeyRead]:
    """``self.hparams.x`` of Lightning is the constructor's argument, or a key of its only configuration parameter."""
    constructor = next((one for one in owner.body if isinstance(one, nodes.FunctionDef) and one.name == "__init__"), None)
    names = [one.name for one in (constructor.args.args or [])[1:] + (constructor.args.kwonlyargs or [])] if constructor else []
    scope = scope_name(constructor) if constructor else ""
    if node.attrname in names:
        yield KeyRead((), scope, node.attrname, position_of(node))
    elif constructor is not None:
        yield KeyRead((node.attrname,), "", "", position_of(node))


def class_of_self(node: nodes.NodeNG) -> nodes.ClassDef | None:
    """The class whose method an expression is in, if it is the method's first parameter."""
    if not isinstance(node, nodes.Name):
        return None
    function = function_of(node)
    while isinstance(function, nodes.FunctionDef) and not isinstance(function.parent, nodes.ClassDef):
        outer = function.parent.frame()
        function = outer if isinstance(outer, nodes.FunctionDef) else None
    if function is None or not isinstance(function, nodes.FunctionDef) or not function.args.args:
        return None
    return function.parent if function.args.args[0].name == node.name else None


def _of_call(node: nodes.Call, depth: int) -> Iterator[KeyRead]:
    last = node.func.attrname if isinstance(node.func, nodes.Attribute) else getattr(node.func, "name", "")
    if last in _HELD_KEYS and isinstance(node.func, nodes.Attribute):
        key = constant(node.args[0]) if node.args else None
        if isinstance(key, str) and not _is_import(node.func.expr):
            yield from _below(node.func.expr, key, node, depth)
    elif last in ("getattr", "select") and len(node.args) >= 2:
        key = constant(node.args[1])
        if isinstance(key, str):
            yield from _below(node.args[0], key, node, depth)
    elif last in _CASTS and node.args:
        yield from _reads(node.args[0], depth + 1)
    elif last in ("min", "max") and isinstance(node.func, nodes.Name) and scope_of(node.func) is None:
        yield from _of_bound(node, last == "min", depth)


def _of_bound(node: nodes.Call, is_cap: bool, depth: int) -> Iterator[KeyRead]:
    """``min(8, x)`` allows at most 8; other bounds are unknown, so nothing is reported then."""
    known = [one for one in map(constant, node.args) if type(one) is int]
    others = [one for one in node.args if type(constant(one)) is not int]
    if is_cap and len(others) != 1:
        return
    for one in others:
        for read in _reads(one, depth + 1):
            caps = [*known, *([read.cap] if read.cap is not None else [])]
            yield read._replace(cap=min(caps)) if is_cap and caps else read


def sections_of(call: nodes.Call) -> tuple[KeyRead, ...]:
    """The sections that a call receives whole: ``DataLoader(ds, **cfg.loader)``."""
    given = [keyword.value for keyword in call.keywords if keyword.arg is None]
    return tuple(dict.fromkeys(read for node in given for read in _reads(node, 0)))
