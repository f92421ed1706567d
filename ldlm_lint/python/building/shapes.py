"""Kinds of nodes that are built in the same way: their children in a fixed order, a few plain values, a position.

`_SHAPES` describes each kind, and a function is generated from it, which sets the attributes of astroid's own
constructor without calls.
"""

from __future__ import annotations

import ast
import functools
from types import FunctionType
from typing import Any

from astroid import nodes

from ldlm_lint.patterns import lazily
from ldlm_lint.python.building.operators import BINARY, BOOLEAN, CONTEXTS, UNARY
from ldlm_lint.python.building.tree import BUILD, LITERALS, Build, Growing

# The attribute of astroid's node, the field of Python's, and whether there is one, one or none, or a list.
_ONE, _MAYBE, _MANY = "one", "maybe", "many"
_LOOP = (("target", "target", _ONE), ("iter", "iter", _ONE), ("body", "body", _MANY), ("orelse", "orelse", _MANY))
_BRANCH = (("test", "test", _ONE), ("body", "body", _MANY), ("orelse", "orelse", _MANY))
_TRY = tuple((name, name, _MANY) for name in ("body", "handlers", "orelse", "finalbody"))
_COMPREHENSION = (("elt", "elt", _ONE), ("generators", "generators", _MANY))
_VALUE = (("value", "value", _ONE),)
_OPTIONAL = (("value", "value", _MAYBE),)
_ELEMENTS = (("elts", "elts", _MANY),)
_OWNER = (("expr", "value", _ONE),)
_CONTEXT = {"ctx": "CONTEXTS[type(raw.ctx)]"}
# The kind of Python's node, that of astroid's, its plain values as expressions of ``raw``, and its children in order.
_SHAPES: tuple[tuple[str, str, dict[str, str], tuple[tuple[str, str, str], ...]], ...] = (
    ("Assert", "Assert", {}, (("test", "test", _ONE), ("fail", "msg", _MAYBE))),
    ("Assign", "Assign", {}, (("targets", "targets", _MANY), *_VALUE)),
    ("AnnAssign", "AnnAssign", {"simple": "raw.simple"}, (("target",) * 2 + (_ONE,), ("annotation",) * 2 + (_ONE,), *_OPTIONAL)),
    ("AugAssign", "AugAssign", {"op": "BINARY[type(raw.op)] + '='"}, (("target", "target", _ONE), *_VALUE)),
    ("AsyncFor", "AsyncFor", {}, _LOOP),
    ("Await", "Await", {}, _VALUE),
    ("BinOp", "BinOp", {"op": "BINARY[type(raw.op)]"}, (("left", "left", _ONE), ("right", "right", _ONE))),
    ("BoolOp", "BoolOp", {"op": "BOOLEAN[type(raw.op)]"}, (("values", "values", _MANY),)),
    ("Break", "Break", {}, ()),
    ("Call", "Call", {}, (("func", "func", _ONE), ("args", "args", _MANY), ("keywords", "keywords", _MANY))),
    ("Constant", "Const", {"value": "raw.value", "kind": "raw.kind"}, ()),
    ("Continue", "Continue", {}, ()),
    ("Delete", "Delete", {}, (("targets", "targets", _MANY),)),
    ("Expr", "Expr", {}, _VALUE),
    ("For", "For", {}, _LOOP),
    ("FormattedValue", "FormattedValue", {"conversion": "raw.conversion"}, (*_VALUE, ("format_spec",) * 2 + (_MAYBE,))),
    ("GeneratorExp", "GeneratorExp", {}, _COMPREHENSION),
    ("If", "If", {}, _BRANCH),
    ("IfExp", "IfExp", {}, tuple((name, name, _ONE) for name in ("test", "body", "orelse"))),
    ("JoinedStr", "JoinedStr", {}, (("values", "values", _MANY),)),
    ("Lambda", "Lambda", {}, (("args", "args", _ONE), ("body", "body", _ONE))),
    ("List", "List", _CONTEXT, _ELEMENTS),
    ("ListComp", "ListComp", {}, _COMPREHENSION),
    ("NamedExpr", "NamedExpr", {}, (("target", "target", _ONE), *_VALUE)),
    ("Nonlocal", "Nonlocal", {"names": "raw.names"}, ()),
    ("Pass", "Pass", {}, ()),
    ("Raise", "Raise", {}, (("exc", "exc", _MAYBE), ("cause", "cause", _MAYBE))),
    ("Return", "Return", {}, _OPTIONAL),
    ("Set", "Set", {}, _ELEMENTS),
    ("SetComp", "SetComp", {}, _COMPREHENSION),
    ("Slice", "Slice", {}, tuple((name, name, _MAYBE) for name in ("lower", "upper", "step"))),
    ("Starred", "Starred", _CONTEXT, _VALUE),
    ("Subscript", "Subscript", _CONTEXT, (*_VALUE, ("slice", "slice", _ONE))),
    ("Try", "Try", {}, _TRY),
    ("TryStar", "TryStar", {}, _TRY),
    ("Tuple", "Tuple", _CONTEXT, _ELEMENTS),
    ("UnaryOp", "UnaryOp", {"op": "UNARY[type(raw.op)]"}, (("operand", "operand", _ONE),)),
    ("While", "While", {}, _BRANCH),
    ("Yield", "Yield", {}, _OPTIONAL),
    ("YieldFrom", "YieldFrom", {}, _VALUE),
    ("comprehension", "Comprehension", {"is_async": "bool(raw.is_async)"}, (*_LOOP[:2], ("ifs", "ifs", _MANY))),
    ("keyword", "Keyword", {"arg": "raw.arg"}, _VALUE),
    # Kinds for one of Python's, by its context.
    ("Name", "Name", {"name": "raw.id"}, ()),
    ("Name", "AssignName", {"name": "raw.id"}, ()),
    ("Name", "DelName", {"name": "raw.id"}, ()),
    ("Attribute", "Attribute", {"attrname": "raw.attr"}, _OWNER),
    ("Attribute", "AssignAttr", {"attrname": "raw.attr"}, _OWNER),
    ("Attribute", "DelAttr", {"attrname": "raw.attr"}, _OWNER),
)
_POSITION = ("lineno", "col_offset", "end_lineno", "end_col_offset")
_CHILD = {
    _ONE: "BUILD[type(child := raw.{0})](child, node, tree)",
    _MAYBE: "None if (child := raw.{0}) is None else BUILD[type(child)](child, node, tree)",
    _MANY: "[BUILD[type(child)](child, node, tree) for child in children] if (children := raw.{0}) else []",
}
# A field of one of Python's nodes is read three times as fast from its dictionary as by attribute.
_FIELD = lazily(r"\braw\.(\w+)")
# Actions of scopes and their names before and after their children. The scope of an assignment expression depends on
# its context.
_OPENS = (("outer, tree.scope = tree.scope, node",), ("tree.scope = outer",))
_SCOPES = {
    **dict.fromkeys(("GeneratorExp", "Lambda", "ListComp", "SetComp"), _OPENS),
    **dict.fromkeys(("AssignName", "Name"), (("node._ldlm_scope = tree.scope",), ())),
    "NamedExpr": (("outer, tree.scope = tree.scope, None",), ("tree.scope = outer",)),
}


def _bound_name(raw: ast.Name, parent: nodes.NodeNG, tree: Growing) -> nodes.NodeNG:
    node = _builder("AssignName" if raw.ctx.__class__ is ast.Store else "DelName")(raw, parent, tree)
    tree.bind(node.name, node)
    return node


def _bound_attribute(raw: ast.Attribute, parent: nodes.NodeNG, tree: Growing) -> nodes.NodeNG:
    return _builder("AssignAttr" if raw.ctx.__class__ is ast.Store else "DelAttr")(raw, parent, tree)


# Kinds for reads; builders of those that bind or delete.
_BOUND = {"Name": _bound_name, "Attribute": _bound_attribute}


def _generated(shape: tuple[str, str, dict[str, str], tuple[tuple[str, str, str], ...]]) -> Build:
    """The function that builds one kind of nodes: the attributes that astroid's constructor sets, without calling it."""
    _, kind, values, children = shape
    made = LITERALS.get(kind) or getattr(nodes, kind)
    names = {name for name, _, _ in children}
    settings = {**_defaults(made), **values, "parent": "parent"}
    if kind != "Comprehension":
        settings |= {name: f"raw.{name}" for name in _POSITION}
    begins, ends = _SCOPES.get(kind, ((), ()))
    lines = [
        *(("if type(raw.ctx) is not Load:", "    return bound(raw, parent, tree)") if kind in _BOUND else ()),
        f"node = new({kind})",
        *(f"node.{name} = {value}" for name, value in settings.items() if name not in names),
        "order = tree.order",
        "node._ldlm_start = len(order)",
        "order.append(node)",
        *begins,
        *(f"node.{name} = {_CHILD[how].format(field)}" for name, field, how in children),
        *ends,
        "node._ldlm_end = len(order)",
        "return node",
    ]
    body = _FIELD.sub(r"given['\1']", "\n    ".join(lines))
    space: dict[str, Any] = {
        "new": object.__new__,
        kind: made,
        "BUILD": BUILD,
        "BINARY": BINARY,
        "BOOLEAN": BOOLEAN,
        "UNARY": UNARY,
        "CONTEXTS": CONTEXTS,
        "Load": ast.Load,
        "bound": _BOUND.get(kind),
    }
    exec(f"def build(raw, parent, tree):\n    given = raw.__dict__\n    {body}", space)
    return space["build"]


def _defaults(kind: Any) -> dict[str, str]:
    """The defaults of astroid's constructor for each attribute of a kind of nodes, as source text."""
    node = kind(**dict.fromkeys(_parameters(kind.__init__)))
    if (later := getattr(kind, "postinit", None)) is not None:
        later(node, **dict.fromkeys(_parameters(later)))
    return {name: repr(value) for name, value in vars(node).items()}


def _parameters(function: FunctionType) -> tuple[str, ...]:
    code = function.__code__
    return code.co_varnames[1 : code.co_argcount + code.co_kwonlyargcount]


_OF_KIND = {shape[1]: shape for shape in _SHAPES if hasattr(ast, shape[0]) and hasattr(nodes, shape[1])}


@functools.cache
def _builder(kind: str) -> Build:
    return _generated(_OF_KIND[kind])


def _when_met(raw: type, kind: str) -> Build:
    """Creates the function for a kind of nodes on first use: most files have half of the kinds."""

    def build(first: ast.AST, parent: nodes.NodeNG, tree: Growing) -> nodes.NodeNG:
        made = BUILD[raw] = _builder(kind)
        return made(first, parent, tree)

    return build


_READ = [shape for shape in _OF_KIND.values() if shape[0] not in _BOUND or shape[1] == shape[0]]
BUILDERS: dict[type, Build] = {getattr(ast, raw): _when_met(getattr(ast, raw), kind) for raw, kind, _, _ in _READ}
