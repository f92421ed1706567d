"""The arguments of a call, three-valued (absent, known, unknown) through keyword dictionaries.

``DataLoader(ds, **cfg)`` passes ``num_workers`` as an unknown value if ``cfg`` may contain it, and as an absent one if
``cfg`` is a dictionary of the file that certainly does not.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from astroid import nodes
from astroid.const import Context

from ldlm_lint.python.names import partials
from ldlm_lint.python.scopes import bindings, scope_of
from ldlm_lint.python.values import constant, evaluate
from ldlm_lint.python.walks import nodes_of

_DEPTH = 6
_METHODS_THAT_ONLY_READ = {"get", "items", "keys", "values", "copy"}
_BUILTINS_THAT_ONLY_READ = {
    "print",
    "len",
    "repr",
    "str",
    "sorted",
    "list",
    "bool",
    "isinstance",
    "type",
    "id",
    "vars",
    "dict",
}


class State(enum.Enum):
    """Whether an argument is passed: certainly not, certainly, or unknown (or with an unknown value)."""

    ABSENT = "absent"
    KNOWN = "known"
    UNKNOWN = "unknown"


class Argument(NamedTuple):
    """One argument of a call.

    ``node`` is its expression if there is one; ``state`` is KNOWN only if `values` decides all its values.
    """

    state: State
    node: nodes.NodeNG | None = None
    values: tuple[object, ...] = ()

    @property
    def absent(self) -> bool:
        """Certainly not passed."""
        return self.state is State.ABSENT

    def is_only(self, value: object) -> bool:
        """Passed, and certainly this constant (``True`` is not ``1``)."""
        return self.state is State.KNOWN and all(
            seen is value or (type(seen) is type(value) and seen == value) for seen in self.values
        )

    def may_be_passed(self) -> bool:
        """Passed, or possibly so."""
        return not self.absent


_ABSENT = Argument(State.ABSENT)
_UNKNOWN = Argument(State.UNKNOWN)


def _argument(node: nodes.NodeNG) -> Argument:
    values = evaluate(node)
    return Argument(State.UNKNOWN, node) if values is None else Argument(State.KNOWN, node, values)


@dataclass
class Mapping:
    """The keys of a keyword dictionary; ``open`` if it may contain further ones."""

    entries: dict[str, Argument] = field(default_factory=dict)
    open: bool = False

    def update(self, other: Mapping) -> None:
        """Update with the entries of another dictionary, like ``dict.update``; an open one may contain any key."""
        if other.open:
            self.forget()
        self.entries.update(other.entries)

    def join(self, other: Mapping) -> None:
        """Add the entries of another dictionary where a key that both hold would be an error."""
        self.entries.update(other.entries)
        self.open = self.open or other.open

    def forget(self) -> None:
        """Any key may have been added, changed or removed."""
        self.open = True
        self.entries = {name: Argument(State.UNKNOWN, held.node) for name, held in self.entries.items()}


class Arguments:
    """The arguments of one call by parameter name, including those bound by a ``functools.partial``."""

    def __init__(self, call: nodes.Call, positional: Sequence[str] = ()) -> None:
        self.call = call
        self._mapping = Mapping()
        layers = partials(call.func)
        passed = [node for layer in reversed(layers or ()) for node in layer.args[1:]] + call.args
        for name, node in zip(positional, passed, strict=False):
            if isinstance(node, nodes.Starred):
                break
            self._mapping.entries[name] = _argument(node)
        self._mapping.open = layers is None or any(isinstance(node, nodes.Starred) for node in passed)
        for layer in (*reversed(layers or ()), call):
            self._take_keywords(layer)

    def _take_keywords(self, call: nodes.Call) -> None:
        for keyword in call.keywords:
            if keyword.arg is None:
                self._mapping.join(mapping_of(keyword.value))
            else:
                self._mapping.entries[keyword.arg] = _argument(keyword.value)

    @property
    def given(self) -> dict[str, Argument]:
        """Certain and possible arguments, by name."""
        return self._mapping.entries

    @property
    def open(self) -> bool:
        """Whether further arguments may be passed, under unknown names."""
        return self._mapping.open

    def __getitem__(self, name: str) -> Argument:
        default = _UNKNOWN if self._mapping.open else _ABSENT
        return self._mapping.entries.get(name, default)


def mapping_of(node: nodes.NodeNG, depth: int = 0) -> Mapping:
    """The keyword dictionary of an expression; open if the file does not decide it."""
    if depth > _DEPTH:
        return Mapping(open=True)
    if isinstance(node, nodes.Dict):
        return _of_literal(node, depth)
    if isinstance(node, nodes.IfExp):
        return _either(mapping_of(node.body, depth + 1), mapping_of(node.orelse, depth + 1))
    if isinstance(node, nodes.BinOp) and node.op == "|":
        merged = mapping_of(node.left, depth + 1)
        merged.update(mapping_of(node.right, depth + 1))
        return merged
    if isinstance(node, nodes.Call):
        return _of_call(node, depth)
    if isinstance(node, nodes.Name):
        return _of_name(node, depth)
    return Mapping(open=True)


def _of_literal(node: nodes.Dict, depth: int) -> Mapping:
    result = Mapping()
    for key, value in node.items:
        if isinstance(key, nodes.DictUnpack):
            result.update(mapping_of(value, depth + 1))
        elif isinstance(name := constant(key), str):
            result.entries[name] = _argument(value)
        else:
            result.open = True
    return result


def _of_call(node: nodes.Call, depth: int) -> Mapping:
    if isinstance(node.func, nodes.Attribute) and node.func.attrname == "copy" and not node.args:
        return mapping_of(node.func.expr, depth + 1)
    if not (_is_builtin(node.func, {"dict"}) and len(node.args) <= 1):
        return Mapping(open=True)
    result = mapping_of(node.args[0], depth + 1) if node.args else Mapping()
    for keyword in node.keywords:
        if keyword.arg is None:
            result.join(mapping_of(keyword.value, depth + 1))
        else:
            result.entries[keyword.arg] = _argument(keyword.value)
    return result


def _of_name(node: nodes.Name, depth: int) -> Mapping:
    scope = scope_of(node)
    if scope is None:
        return Mapping(open=True)
    result: Mapping | None = None
    names = {node.name: scope}
    merged: list[Mapping] = []
    for binding in bindings(node):
        statement = binding.parent if isinstance(binding, nodes.AssignName) else None
        if isinstance(statement, nodes.AugAssign) and statement.op == "|=":
            merged.append(mapping_of(statement.value, depth + 1))
            continue
        if not isinstance(statement, (nodes.Assign, nodes.AnnAssign)) or statement.value is None:
            return Mapping(open=True)
        held = mapping_of(statement.value, depth + 1)
        result = held if result is None else _either(result, held)
        names |= {one.name: one.scope() for one in _targets(statement) if isinstance(one, nodes.AssignName)}
    if result is None:
        return Mapping(open=True)
    for one in merged:
        # As with `update`: the value may or may not be set.
        result.entries |= {name: Argument(State.UNKNOWN, held.node) for name, held in one.entries.items()}
        if one.open:
            result.forget()
    for name, where in names.items():
        _mutate_by_uses(result, where, name, depth)
    return result


def _either(left: Mapping, right: Mapping) -> Mapping:
    """One of two dictionaries: an unshared key is possible."""
    result = Mapping(open=left.open or right.open)
    for name in left.entries.keys() | right.entries.keys():
        mine, other = left.entries.get(name), right.entries.get(name)
        if mine and other and mine.state is other.state is State.KNOWN:
            result.entries[name] = Argument(State.KNOWN, mine.node, mine.values + other.values)
        elif mine and other:
            result.entries[name] = _UNKNOWN
        else:
            # If it is passed, its expression is known.
            result.entries[name] = Argument(State.UNKNOWN, (mine or other or _UNKNOWN).node)
    return result


def _targets(statement: nodes.Assign | nodes.AnnAssign) -> list[nodes.NodeNG]:
    return statement.targets if isinstance(statement, nodes.Assign) else [statement.target]


def _mutate_by_uses(mapping: Mapping, scope: nodes.NodeNG, name: str, depth: int) -> None:
    for use in nodes_of(scope, nodes.Name):
        if use.name == name:
            _mutate(mapping, use, depth)


def _mutate(mapping: Mapping, use: nodes.Name, depth: int) -> None:
    """Apply a use that may change the dictionary: its keys become unknown, guarded or not."""
    child, parent = use, use.parent
    while isinstance(parent, nodes.IfExp):
        child, parent = parent, parent.parent
    if isinstance(parent, nodes.Subscript) and parent.value is use:
        if parent.ctx is not Context.Load:
            stored = parent.parent
            _touch(mapping, constant(parent.slice), stored.value if isinstance(stored, nodes.Assign) and parent in stored.targets else None)
    elif isinstance(parent, nodes.Attribute) and isinstance(parent.parent, nodes.Call) and parent.parent.func is parent:
        _mutate_by_method(mapping, parent.attrname, parent.parent)
    elif isinstance(parent, (nodes.Assign, nodes.AnnAssign)) and depth < _DEPTH:
        _mutate_by_alias(mapping, parent, depth)
    elif not _only_reads(parent, child):
        mapping.forget()


def _mutate_by_alias(mapping: Mapping, statement: nodes.Assign | nodes.AnnAssign, depth: int) -> None:
    for target in _targets(statement):
        if isinstance(target, nodes.AssignName):
            _mutate_by_uses(mapping, target.scope(), target.name, depth + 1)
        else:
            mapping.forget()


def _only_reads(parent: nodes.NodeNG, child: nodes.NodeNG) -> bool:
    """Whether the code around a dictionary neither changes it nor passes it to code that may."""
    if isinstance(parent, nodes.Call):
        return child in parent.args and (_is_builtin(parent.func, _BUILTINS_THAT_ONLY_READ) or _updates_another(parent, child))
    if isinstance(parent, nodes.Keyword):
        return parent.arg is None
    if isinstance(parent, nodes.Dict):
        return any(value is child and isinstance(key, nodes.DictUnpack) for key, value in parent.items)
    if isinstance(parent, (nodes.For, nodes.Comprehension)):
        return parent.iter is child
    return isinstance(
        parent, (nodes.BinOp, nodes.Compare, nodes.FormattedValue, nodes.If, nodes.UnaryOp, nodes.Expr, nodes.Assert)
    )


def _updates_another(call: nodes.Call, child: nodes.NodeNG) -> bool:
    """``options.update(common)`` copies the entries of its argument."""
    return isinstance(call.func, nodes.Attribute) and call.func.attrname == "update" and call.args == [child]


def _is_builtin(function: nodes.NodeNG, names: set[str]) -> bool:
    return isinstance(function, nodes.Name) and function.name in names and scope_of(function) is None


def _mutate_by_method(mapping: Mapping, method: str, call: nodes.Call) -> None:
    if method == "update":
        added = mapping_of(call.args[0]) if call.args else Mapping()
        names = {*added.entries, *(keyword.arg for keyword in call.keywords if keyword.arg)}
        passed = {keyword.arg: _argument(keyword.value) for keyword in call.keywords if keyword.arg}
        for name in names:
            # The value may or may not be set, but if it is, its expression is known.
            possible = passed.get(name) or added.entries[name]
            mapping.entries[name] = Argument(State.UNKNOWN, possible.node)
        if added.open or any(keyword.arg is None for keyword in call.keywords):
            mapping.forget()
    elif method in ("pop", "setdefault"):
        value = call.args[1] if method == "setdefault" and len(call.args) > 1 else None
        _touch(mapping, constant(call.args[0]) if call.args else None, value)
    elif method in ("clear", "popitem"):
        mapping.entries = dict.fromkeys(mapping.entries, _UNKNOWN)
    elif method not in _METHODS_THAT_ONLY_READ:
        mapping.forget()


def _touch(mapping: Mapping, name: object, value: nodes.NodeNG | None = None) -> None:
    """A key is stored or removed somewhere; its expression stays known if it is the only stored one."""
    if not isinstance(name, str):
        mapping.forget()
    elif name in mapping.entries and mapping.entries[name].node is not value:
        mapping.entries[name] = _UNKNOWN
    else:
        mapping.entries[name] = Argument(State.UNKNOWN, value)
