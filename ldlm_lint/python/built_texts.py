"""The parts of a composed text: formatted strings, ``join``, ``format``, ``%``, and ``+=`` line by line."""

from __future__ import annotations

import re
import string
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from astroid import nodes

from ldlm_lint.patterns import lazily
from ldlm_lint.python.scopes import bindings, scope_of
from ldlm_lint.python.walks import nodes_of

_MOST_PARTS = 50
_PERCENT = lazily(r"%(?:%|[sd])")
_GROWS = ("append", "extend")


class Part(NamedTuple):
    """A piece of a text: written out, or an expression; ``field``: a number there is written as its digits."""

    text: str = ""
    node: nodes.NodeNG | None = None
    field: bool = False


def parts_of(node: nodes.NodeNG) -> list[Part] | None:
    """The parts of a text, in order; None for an expression that does not compose one, or is unknown."""
    found: list[Part] | None = None
    if isinstance(node, nodes.JoinedStr):
        found = _of_formatted(node)
    elif isinstance(node, nodes.Call) and isinstance(node.func, nodes.Attribute) and _text_of(node.func.expr) is not None:
        found = _of_join(node) if node.func.attrname == "join" else _of_format(node) if node.func.attrname == "format" else None
    elif isinstance(node, nodes.BinOp) and node.op == "%" and _text_of(node.left) is not None:
        found = _of_percent(node)
    elif isinstance(node, nodes.Name):
        found = _of_steps(node)
    return found if found is not None and len(found) <= _MOST_PARTS else None


def _text_of(node: nodes.NodeNG) -> str | None:
    return node.value if isinstance(node, nodes.Const) and isinstance(node.value, str) else None


def _of_formatted(node: nodes.JoinedStr) -> list[Part] | None:
    """``f"{a},b"``, without formats of its fields."""
    found = []
    for one in node.values:
        if not isinstance(one, nodes.FormattedValue):
            found.append(Part(node=one))
        elif one.format_spec is None and one.conversion in (None, -1):
            found.append(Part(node=one.value, field=True))
        else:
            return None
    return found


def _of_join(call: nodes.Call) -> list[Part] | None:
    """``",".join([a, b])``; the list may be a variable that only grew before."""
    elements = _elements(call.args[0], call) if len(call.args) == 1 and not call.keywords else None
    between = _text_of(call.func.expr) or ""
    if elements is None:
        return None
    return [part for index, one in enumerate(elements) for part in (Part(between if index else ""), Part(node=one))]


def _of_format(call: nodes.Call) -> list[Part] | None:
    """``"{},{name}".format(a, name=b)``, without formats of its fields."""
    named = {one.arg: one.value for one in call.keywords}
    found: list[Part] = []
    try:
        pieces = list(string.Formatter().parse(_text_of(call.func.expr) or ""))
    except ValueError:
        return None
    for index, (text, field, spec, conversion) in enumerate(pieces):
        found.append(Part(text))
        if field is None:
            continue
        at = index if field == "" else int(field) if field.isdecimal() and len(field) < 3 else -1
        value = named.get(field) if at < 0 else call.args[at] if at < len(call.args) else None
        if value is None or spec or conversion or isinstance(value, nodes.Starred):
            return None
        found.append(Part(node=value, field=True))
    return found


def _of_percent(node: nodes.BinOp) -> list[Part] | None:
    """``"%s,%s" % (a, b)``."""
    text = _text_of(node.left) or ""
    values = list(node.right.elts) if isinstance(node.right, nodes.Tuple) else [node.right]
    fields = [one for one in _PERCENT.findall(text) if one != "%%"]
    if len(fields) != len(values) or "%" in _PERCENT.sub("", text) or isinstance(node.right, nodes.Dict):
        return None
    found, rest = [], iter(values)
    for piece in re.split(r"(%[%sd])", text):
        found.append(Part(node=next(rest), field=True) if piece in ("%s", "%d") else Part("%" if piece == "%%" else piece))
    return found


def _of_steps(name: nodes.Name) -> list[Part] | None:
    """``x = a`` and then ``x += b`` in the lines below, all of them before the name is read."""
    steps = _steps(name)
    return None if steps is None or len(steps) < 2 else [Part(node=one.value) for one in steps]


def _steps(name: nodes.Name) -> list[nodes.NodeNG] | None:
    """The only assignment of a variable and the additions to it, in one block before a place that reads it."""
    found = [one.parent for one in bindings(name)] if len(bindings(name)) <= _MOST_PARTS else []
    found = sorted((one for one in found if one is not None), key=lambda one: one.lineno or 0)
    if not found or not isinstance(found[0], nodes.Assign) or len(found[0].targets) != 1:
        return None
    if not all(isinstance(one, nodes.AugAssign) and one.op == "+=" for one in found[1:]):
        return None
    together = len({(id(one.parent), one in getattr(one.parent, "body", ())) for one in found}) == 1
    return found if together and (found[-1].lineno or 0) < (name.lineno or 0) else None


def _elements(sequence: nodes.NodeNG, call: nodes.Call) -> Sequence[nodes.NodeNG] | None:
    if isinstance(sequence, (nodes.List, nodes.Tuple)):
        return sequence.elts
    steps = _steps(sequence) if isinstance(sequence, nodes.Name) else None
    if steps is None or not all(isinstance(one.value, (nodes.List, nodes.Tuple)) for one in steps):
        return None
    added = list(_added(sequence, steps[0], call))
    if any(one is None for one in added):
        return None
    own = [element for one in steps for element in one.value.elts]
    return None if added and len(steps) > 1 else [*own, *(element for one in added for element in one or ())]


def _added(name: nodes.Name, first: nodes.Assign, call: nodes.Call) -> Iterator[list[nodes.NodeNG] | None]:
    """The additions to a list by each use before it is joined; None for a use that may change it in another way."""
    scope = scope_of(name)
    for use in (one for one in nodes_of(scope, nodes.Name) if one.name == name.name) if scope is not None else ():
        method = use.parent if isinstance(use.parent, nodes.Attribute) and isinstance(use.parent.parent, nodes.Call) else None
        if method is not None and method.parent.func is method and method.attrname in _GROWS and len(method.parent.args) == 1:
            given, statement = method.parent.args[0], method.parent.statement()
            plain = statement.parent is first.parent and (statement.lineno or 0) < (call.lineno or 0)
            several = given.elts if isinstance(given, (nodes.List, nodes.Tuple)) else None
            yield None if not plain else [given] if method.attrname == "append" else several
        elif not _is_read(use):
            yield None


def _is_read(use: nodes.Name) -> bool:
    """Whether a use of a list only reads it."""
    call = use.parent
    if not isinstance(call, nodes.Call) or use not in call.args:
        return False
    return (isinstance(call.func, nodes.Attribute) and call.func.attrname == "join") or getattr(call.func, "name", "") in ("print", "len")


__all__ = ["Part", "parts_of"]
