"""Arguments of a Trainer that code sets on the existing object: ``arguments.ddp_timeout = 1800``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from astroid import nodes

from ldlm_lint.checkers.base import span_of
from ldlm_lint.frameworks.sections import Setting, vocabulary
from ldlm_lint.python.memo import remembered
from ldlm_lint.python.names import bindings
from ldlm_lint.python.places import function_of
from ldlm_lint.python.values import evaluate
from ldlm_lint.python.walks import nodes_of
from ldlm_lint.source import Source
from ldlm_lint.vocabulary.parsers import PARSES

# A store under one of these may be skipped, or repeated with another value.
_BRANCHES = (nodes.If, nodes.For, nodes.While, nodes.Try, nodes.Match)


class _Stores(NamedTuple):
    """The stores of a file to fields of arguments: by the calls (their identity) that created the object, and those on
    any object."""

    of_calls: dict[int, dict[str, list[nodes.AssignAttr]]]
    of_any: dict[str, nodes.AssignAttr]


def stored_on(source: Source, call: nodes.Call) -> dict[str, Setting]:
    """The fields that the file changes: of the object created by the call, or of one that may be it."""
    stores = remembered(call.root(), ("stores by call",), lambda: _by_call(call.root()))
    found = {name: _setting(source, name, one, call) for name, one in stores.of_calls.get(id(call), {}).items()}
    anyones = {name: Setting(name, None, span_of(source, one), certain=False) for name, one in stores.of_any.items()}
    return {**found, **anyones}


def _by_call(module: nodes.Module) -> _Stores:
    stores = _Stores({}, {})
    for one in _stores(module):
        made = _makers(one.expr)
        if not made:
            stores.of_any.setdefault(one.attrname, one)
        for call in made:
            stores.of_calls.setdefault(id(call), {}).setdefault(one.attrname, []).append(one)
    return stores


def stored_on_parsed(source: Source, module: nodes.Module) -> Iterator[tuple[nodes.Call, dict[str, Setting]]]:
    """The fields that a file sets on arguments which a parser gave, with the call of the parser."""
    groups: dict[tuple[int, str], tuple[nodes.Call, dict[str, list[nodes.AssignAttr]]]] = {}
    for one in _stores(module):
        call = _parser_of(one.expr)
        if call is not None:
            _, fields = groups.setdefault((id(call), one.expr.name), (call, {}))
            fields.setdefault(one.attrname, []).append(one)
    for call, fields in groups.values():
        yield call, {name: _setting(source, name, stores, call) for name, stores in fields.items()}


def _setting(source: Source, name: str, stores: list[nodes.AssignAttr], call: nodes.Call) -> Setting:
    """A field with its value if a single store after the call sets it; else the value is unknown."""
    statement, value = stores[0].parent, getattr(stores[0].parent, "value", None)
    span = span_of(source, statement)
    plain = isinstance(statement, nodes.Assign) and len(stores) == 1 and isinstance(stores[0].expr, nodes.Name)
    if not plain or function_of(statement) is not function_of(call) or (statement.lineno or 0) < (call.lineno or 0) or _may_not_happen(statement, call):
        return Setting(name, None, span, certain=False)
    values = evaluate(value) if value is not None else None
    texts = {"" if one is None else str(one) for one in values or ()}
    return Setting(name, texts.pop() if len(texts) == 1 else None, span, place=value)


def _may_not_happen(statement: nodes.NodeNG, call: nodes.Call) -> bool:
    """Whether a branch is around a statement that is not around the call as well."""
    return any(isinstance(one, _BRANCHES) and not one.parent_of(call) for one in statement.node_ancestors())


def _stores(module: nodes.Module) -> list[nodes.AssignAttr]:
    return remembered(module, ("stored fields",), lambda: _find_stores(module))


def _find_stores(module: nodes.Module) -> list[nodes.AssignAttr]:
    fields = vocabulary("transformers").fields
    return [one for one in nodes_of(module, nodes.AssignAttr) if one.attrname in fields]


def _makers(owner: nodes.NodeNG) -> list[nodes.Call]:
    """The calls that created the value of an expression; empty if unknown."""
    found = [_bound(one) for one in bindings(owner)] if isinstance(owner, nodes.Name) else []
    calls = [value for value in found if isinstance(value, nodes.Call)]
    return calls if len(calls) == len(found) else []


def _bound(binding: nodes.NodeNG) -> nodes.NodeNG | None:
    """The value that an assignment binds to a name, or unpacks; None for another binding."""
    statement = binding.statement() if isinstance(binding, nodes.AssignName) else None
    return statement.value if isinstance(statement, (nodes.Assign, nodes.AnnAssign)) else None


def _parser_of(owner: nodes.NodeNG) -> nodes.Call | None:
    """The call of a parser whose result, or a part of it, is all that is bound to a name."""
    found = bindings(owner) if isinstance(owner, nodes.Name) else []
    statement = found[0].statement() if len(found) == 1 else None
    value = statement.value if isinstance(statement, nodes.Assign) else None
    if isinstance(value, nodes.Subscript):
        value = value.value
    parses = isinstance(value, nodes.Call) and isinstance(value.func, nodes.Attribute) and value.func.attrname in PARSES
    return value if parses else None


__all__ = ["stored_on", "stored_on_parsed"]
