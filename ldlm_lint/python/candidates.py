"""The possible values of a selecting expression: tables of classes, attributes of a class, conditional expressions.

``OPTIMIZERS[name]`` means one of the table's values, ``self.loader_class`` the class's assignments to it. Only what the
file decides counts: a table or an attribute that other code may change has no known alternatives.
"""

from __future__ import annotations

from collections.abc import Iterator

from astroid import nodes
from astroid.const import Context

from ldlm_lint.python.scopes import bindings, enclosing, scope_of
from ldlm_lint.python.walks import nodes_of

# An attribute with more assignments than hand-written code has: its values are unknown.
_MOST = 64
_ATTRIBUTES, _HOLDERS = "_ldlm_attributes", "_ldlm_holders"
# A class that has one of these creates or uses its instances in its own way.
_OWN_WAYS = {"__init__", "__new__", "__call__", "__iter__", "__init_subclass__", "step", "forward"}
_READING = {"get", "keys", "values", "items"}


def alternatives(node: nodes.NodeNG) -> list[nodes.NodeNG]:
    """The alternatives of a selecting expression; empty if there is no choice or it is unknown."""
    if isinstance(node, nodes.Attribute):
        return _of_attribute(node.expr, node.attrname) if isinstance(node.expr, nodes.Name) else []
    if isinstance(node, nodes.Call):
        return _of_get(node)
    if isinstance(node, nodes.Subscript):
        return _of_table(node.value, node.slice)
    return [node.body, node.orelse] if isinstance(node, nodes.IfExp) else []


def inherited(node: nodes.ClassDef) -> nodes.NodeNG | None:
    """The only base of a class that creates and uses its instances like the base; None for any other class.

    One that assigns in its body may change a default, as dataclasses do.
    """
    if len(node.bases) != 1 or node.keywords or node.decorators:
        return None
    plain = all(isinstance(one, (nodes.FunctionDef, nodes.Pass, nodes.Expr)) for one in node.body)
    return node.bases[0] if plain and _OWN_WAYS.isdisjoint(node.locals) else None


def _of_get(call: nodes.Call) -> list[nodes.NodeNG]:
    """``TABLE.get(name)`` and ``TABLE.get(name, default)``."""
    if not isinstance(call.func, nodes.Attribute) or call.func.attrname != "get" or not 1 <= len(call.args) <= 2:
        return []
    found = _of_table(call.func.expr, call.args[0])
    return [*found, *call.args[1:]] if found else []


def _of_table(value: nodes.NodeNG, key: nodes.NodeNG) -> list[nodes.NodeNG]:
    table = _table(value)
    if table is None or any(isinstance(one, nodes.DictUnpack) for one, _ in table.items):
        return []
    if isinstance(key, nodes.Const):
        return [held for one, held in table.items if isinstance(one, nodes.Const) and one.value == key.value]
    return [held for _, held in table.items]


def _table(node: nodes.NodeNG) -> nodes.Dict | None:
    """The dictionary display of an expression, or of a name that is bound once and never changed."""
    if isinstance(node, nodes.Dict):
        return node
    if not isinstance(node, nodes.Name):
        return None
    found = bindings(node)
    statement = found[0].parent if len(found) == 1 and isinstance(found[0], nodes.AssignName) else None
    table = statement.value if isinstance(statement, (nodes.Assign, nodes.AnnAssign)) else None
    scope = scope_of(node)
    if not isinstance(table, nodes.Dict) or scope is None:
        return None
    uses = (one for one in nodes_of(scope, nodes.Name) if one.name == node.name)
    return table if all(map(_only_looks_up, uses)) else None


def _only_looks_up(use: nodes.Name) -> bool:
    parent = use.parent
    if isinstance(parent, nodes.Subscript):
        return parent.value is use and parent.ctx is Context.Load
    if isinstance(parent, nodes.Attribute):
        return parent.attrname in _READING
    return isinstance(parent, (nodes.Compare, nodes.FormattedValue, nodes.For, nodes.Comprehension)) or (
        isinstance(parent, nodes.Call)
        and use in parent.args
        and getattr(parent.func, "name", "") in ("list", "sorted", "len")
    )


def _of_attribute(owner: nodes.Name, name: str) -> list[nodes.NodeNG]:
    """The values of ``self.name`` or ``Class.name`` in the class's own text; empty if one is not a plain value."""
    holder = _class_of(owner)
    if holder is None:
        return []
    values = _attributes(holder).get(name, [])
    return [] if None in values or len(values) > _MOST else [value for value in values if value is not None]


def _class_of(owner: nodes.Name) -> nodes.ClassDef | None:
    """The class of a name, or of the method whose first parameter it is; the same for every use in a scope."""
    around = enclosing(owner).__dict__
    known: dict[str, nodes.ClassDef | None] | None = around.get(_HOLDERS)
    if known is None:
        known = around[_HOLDERS] = {}
    if owner.name not in known:
        known[owner.name] = _find_class(owner)
    return known[owner.name]


def _find_class(owner: nodes.Name) -> nodes.ClassDef | None:
    scope = scope_of(owner)
    if isinstance(scope, nodes.FunctionDef) and isinstance(scope.parent, nodes.ClassDef):
        first = [one.name for one in (*(scope.args.posonlyargs or []), *(scope.args.args or []))][:1]
        return scope.parent if first == [owner.name] and len(bindings(owner)) == 1 else None
    found = bindings(owner)
    return found[0] if len(found) == 1 and isinstance(found[0], nodes.ClassDef) else None


def _attributes(holder: nodes.ClassDef) -> dict[str, list[nodes.NodeNG | None]]:
    """The values that a class binds to its attributes, None for one that is not a plain assignment; cached with the
    class."""
    found: dict[str, list[nodes.NodeNG | None]] | None = holder.__dict__.get(_ATTRIBUTES)
    if found is None:
        found = {}
        for name, value in _assignments(holder):
            found.setdefault(name, []).append(value)
        holder.__dict__[_ATTRIBUTES] = found
    return found


def _assignments(holder: nodes.ClassDef) -> Iterator[tuple[str, nodes.NodeNG | None]]:
    for name, places in holder.locals.items():
        yield from ((name, _plain_value(place)) for place in places if not isinstance(place, nodes.AssignAttr))
    for place in nodes_of(holder, nodes.AssignAttr):
        if isinstance(place.expr, nodes.Name) and _class_of(place.expr) is holder:
            yield place.attrname, _plain_value(place)


def _plain_value(place: nodes.NodeNG) -> nodes.NodeNG | None:
    statement = place.parent if isinstance(place, (nodes.AssignName, nodes.AssignAttr)) else None
    return statement.value if isinstance(statement, (nodes.Assign, nodes.AnnAssign)) else None
