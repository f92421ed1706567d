"""astroid nodes straight from Python's own syntax tree, three times as fast as astroid's builder makes them.

Most kinds of nodes are built alike: their children in a fixed order, a few plain values, a position. `_SHAPES` says so
for each kind, and a function is generated from it, which sets what astroid's own constructor sets and nothing is called
for. What binds names or has an order of its own is written out below; astroid's builder makes the few kinds that are
left. Every node learns where its subtree stands in the preorder of the tree; see `ldlm_lint.python.walks`.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from types import FunctionType
from typing import Any

from astroid import nodes
from astroid._ast import BIN_OP_CLASSES, BOOL_OP_CLASSES, CMP_OP_CLASSES, CONTEXT_CLASSES, UNARY_OP_CLASSES
from astroid.manager import AstroidManager
from astroid.nodes.utils import Position
from astroid.rebuilder import TreeRebuilder

_Build = Callable[[Any, Any, "Growing"], Any]
_HEADER = re.compile(r"(?:async[ \t]+def|def|class)[ \t]+(\w+)")

# The attribute of astroid's node, the field of Python's, and whether there is one, one or none, or a list of either.
_ONE, _MAYBE, _MANY, _HOLES = "one", "maybe", "many", "holes"
_LOOP = (("target", "target", _ONE), ("iter", "iter", _ONE), ("body", "body", _MANY), ("orelse", "orelse", _MANY))
_BRANCH = (("test", "test", _ONE), ("body", "body", _MANY), ("orelse", "orelse", _MANY))
_TRY = tuple((name, name, _MANY) for name in ("body", "handlers", "orelse", "finalbody"))
_COMPREHENSION = (("elt", "elt", _ONE), ("generators", "generators", _MANY))
_VALUE = (("value", "value", _ONE),)
_OPTIONAL = (("value", "value", _MAYBE),)
_ELEMENTS = (("elts", "elts", _MANY),)
_OWNER = (("expr", "value", _ONE),)
_CONTEXT = {"ctx": "CONTEXTS[raw.ctx.__class__]"}

# The kind of Python's node, that of astroid's, its plain values as expressions of ``raw``, and its children in order.
_SHAPES: tuple[tuple[str, str, dict[str, str], tuple[tuple[str, str, str], ...]], ...] = (
    ("Assert", "Assert", {}, (("test", "test", _ONE), ("fail", "msg", _MAYBE))),
    ("Assign", "Assign", {}, (("targets", "targets", _MANY), *_VALUE)),
    ("AnnAssign", "AnnAssign", {"simple": "raw.simple"}, (("target",) * 2 + (_ONE,), ("annotation",) * 2 + (_ONE,), *_OPTIONAL)),
    ("AugAssign", "AugAssign", {"op": "BINARY[raw.op.__class__] + '='"}, (("target", "target", _ONE), *_VALUE)),
    ("AsyncFor", "AsyncFor", {}, _LOOP),
    ("Await", "Await", {}, _VALUE),
    ("BinOp", "BinOp", {"op": "BINARY[raw.op.__class__]"}, (("left", "left", _ONE), ("right", "right", _ONE))),
    ("BoolOp", "BoolOp", {"op": "BOOLEAN[raw.op.__class__]"}, (("values", "values", _MANY),)),
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
    ("UnaryOp", "UnaryOp", {"op": "UNARY[raw.op.__class__]"}, (("operand", "operand", _ONE),)),
    ("While", "While", {}, _BRANCH),
    ("Yield", "Yield", {}, _OPTIONAL),
    ("YieldFrom", "YieldFrom", {}, _VALUE),
    ("comprehension", "Comprehension", {"is_async": "bool(raw.is_async)"}, (*_LOOP[:2], ("ifs", "ifs", _MANY))),
    ("keyword", "Keyword", {"arg": "raw.arg"}, _VALUE),
    # Kinds that one of Python's stands for, by its context.
    ("Name", "Name", {"name": "raw.id"}, ()),
    ("Name", "AssignName", {"name": "raw.id"}, ()),
    ("Name", "DelName", {"name": "raw.id"}, ()),
    ("Attribute", "Attribute", {"attrname": "raw.attr"}, _OWNER),
    ("Attribute", "AssignAttr", {"attrname": "raw.attr"}, _OWNER),
    ("Attribute", "DelAttr", {"attrname": "raw.attr"}, _OWNER),
)


def _nameless(kind: type) -> type:
    """A class of literals without the attributes of the builtin that it is an instance of.

    astroid looks those up in its picture of the builtins, if something has made it paint one (0.1 s): ``name`` of a text
    would be ``str`` or missing, according to what was linted before.
    """

    def missing(_self: nodes.NodeNG, name: str) -> Any:
        raise AttributeError(name)

    return type(kind.__name__, (kind,), {"__getattr__": missing})


_LITERALS = {name: _nameless(getattr(nodes, name)) for name in ("Const", "Dict", "List", "Set", "Tuple")}
_POSITION = ("lineno", "col_offset", "end_lineno", "end_col_offset")
_CHILD = {
    _ONE: "BUILD[(child := raw.{0}).__class__](child, node, tree)",
    _MAYBE: "None if (child := raw.{0}) is None else BUILD[child.__class__](child, node, tree)",
    _MANY: "[BUILD[child.__class__](child, node, tree) for child in raw.{0}]",
}


class Growing:
    """What is known while one tree is built: its nodes in preorder, and what is done when all of them are there."""

    def __init__(self, module: nodes.Module, lines: list[str]) -> None:
        self.module = module
        self.lines = lines
        self.order: list[nodes.NodeNG] = []
        self.exact = True
        self.globals: list[dict[str, list[nodes.Global]]] = []
        self.imports: list[tuple[nodes.ImportFrom, frozenset[str]]] = []

    @property
    def rest(self) -> _Rest:
        """What builds the kinds of nodes that are not known here."""
        return _Rest(self)

    def begin(self, node: nodes.NodeNG) -> None:
        """The next node of the preorder."""
        node._ldlm_start = len(self.order)
        self.order.append(node)

    def end(self, node: nodes.NodeNG) -> None:
        """A node whose subtree is complete."""
        node._ldlm_end = len(self.order)

    def bind(self, name: str, node: nodes.NodeNG) -> None:
        """A name in the scope that its node stands in, or in the module where it is declared global."""
        holder = self.module if self.globals and name in self.globals[-1] else node.parent
        holder.set_local(name, node)


class _Rest(TreeRebuilder):
    """astroid's own builder for kinds of nodes that are rare or new; their children come back to this module."""

    def __init__(self, tree: Growing) -> None:
        super().__init__(AstroidManager())
        self._tree = tree

    def visit(self, node: ast.AST | None, parent: nodes.NodeNG) -> Any:
        """A child of such a node."""
        return None if node is None else BUILD[node.__class__](node, parent, self._tree)

    def _save_assignment(self, node: nodes.AssignName | nodes.DelName) -> None:
        self._tree.bind(node.name, node)

    def build(self, raw: ast.AST, parent: nodes.NodeNG, tree: Growing) -> nodes.NodeNG:
        """A node of another kind; its children need not be made in the order in which they stand."""
        tree.exact = False
        return super().visit(raw, parent)


def rebuild(parsed: ast.Module, text: str, name: str, file: str, package: bool) -> nodes.Module:
    """The astroid tree of a parsed file, as astroid's builder makes it without transforms and without inference."""
    module = nodes.Module(name=name, file=file, path=[file], package=package)
    tree = Growing(module, text.split("\n"))
    tree.begin(module)
    doc, body = _documented(parsed.body, module)
    module.postinit([BUILD[child.__class__](child, module, tree) for child in body], doc_node=doc)
    tree.end(module)
    module.file_encoding = "utf-8"
    for node, global_names in tree.imports:
        _bind_imported(node, global_names, module)
    if tree.exact:
        module._ldlm_preorder = tree.order
    return module


def _bind_imported(node: nodes.ImportFrom, global_names: frozenset[str], module: nodes.Module) -> None:
    """Bind what an import brings, without importing the module behind a star."""
    if node.modname == "__future__":
        module.future_imports.update(name for name, _ in node.names)
    if any(name == "*" for name, _ in node.names):
        return
    for name, alias in node.names:
        bound = alias or name
        holder = module if bound in global_names else node.parent
        holder.set_local(bound, node)
        places = holder.scope().locals[bound]
        if len(places) > 1:
            places.sort(key=lambda one: one.fromlineno or 0)


def _documented(body: list[ast.stmt], parent: nodes.NodeNG) -> tuple[nodes.Const | None, list[ast.stmt]]:
    """The docstring of a body, as a node that is no part of the tree, and the statements behind it."""
    first = body[0].value if body and isinstance(body[0], ast.Expr) else None
    if not isinstance(first, ast.Constant) or not isinstance(first.value, str):
        return None, body
    doc = _LITERALS["Const"](
        first.value,
        first.lineno,
        first.col_offset,
        parent,
        first.kind,
        end_lineno=first.end_lineno,
        end_col_offset=first.end_col_offset,
    )
    return doc, body[1:]


def _placed(kind: type, raw: Any, parent: nodes.NodeNG, tree: Growing, *values: Any) -> Any:
    """A node of a kind that has its position, made by astroid's constructor; ``values`` are its other arguments."""
    node = kind(
        *values,
        lineno=raw.lineno,
        col_offset=raw.col_offset,
        parent=parent,
        end_lineno=raw.end_lineno,
        end_col_offset=raw.end_col_offset,
    )
    tree.begin(node)
    return node


def _children(raws: list[Any], node: nodes.NodeNG, tree: Growing) -> list[Any]:
    return [None if raw is None else BUILD[raw.__class__](raw, node, tree) for raw in raws]


def _child(raw: Any, node: nodes.NodeNG, tree: Growing) -> Any:
    return None if raw is None else BUILD[raw.__class__](raw, node, tree)


def _function(raw: Any, parent: nodes.NodeNG, tree: Growing) -> nodes.FunctionDef:
    kind = nodes.FunctionDef if raw.__class__ is ast.FunctionDef else nodes.AsyncFunctionDef
    tree.globals.append({})
    node = _placed(kind, raw, parent, tree, raw.name)
    if raw.decorator_list:
        node.lineno = raw.decorator_list[0].lineno
    doc, body = _documented(raw.body, node)
    decorators = _decorators(raw, node, tree)
    args = BUILD[ast.arguments](raw.args, node, tree)
    returns = _child(raw.returns, node, tree)
    type_params = _children(getattr(raw, "type_params", []), node, tree)
    node.postinit(
        args=args,
        body=[BUILD[child.__class__](child, node, tree) for child in body],
        decorators=decorators,
        returns=returns,
        position=_header(raw, node, tree),
        doc_node=doc,
        type_params=type_params,
    )
    tree.end(node)
    tree.globals.pop()
    parent.set_local(node.name, node)
    return node


def _class(raw: ast.ClassDef, parent: nodes.NodeNG, tree: Growing) -> nodes.ClassDef:
    node = _placed(nodes.ClassDef, raw, parent, tree, raw.name)
    doc, body = _documented(raw.body, node)
    metaclass = next((one for one in raw.keywords if one.arg == "metaclass"), None)
    plain = [one for one in raw.keywords if one.arg != "metaclass"]
    node.postinit(
        decorators=_decorators(raw, node, tree),
        bases=_children(raw.bases, node, tree),
        keywords=_children(plain, node, tree),
        body=[BUILD[child.__class__](child, node, tree) for child in body],
        # No part of the preorder: astroid does not count it among the children.
        metaclass=TreeRebuilder(AstroidManager()).visit(metaclass, node).value if metaclass else None,
        position=_header(raw, node, tree),
        doc_node=doc,
        type_params=_children(getattr(raw, "type_params", []), node, tree),
    )
    tree.exact = tree.exact and not node.type_params
    tree.end(node)
    parent.set_local(node.name, node)
    return node


def _header(raw: Any, node: nodes.NodeNG, tree: Growing) -> Position | None:
    """Where the keyword and the name of a definition stand; astroid's tokenizer says so for unusual ones."""
    line = tree.lines[raw.lineno - 1] if raw.lineno <= len(tree.lines) else ""
    match = _HEADER.match(line, raw.col_offset)
    if match is not None and match[1] == raw.name and not line[: raw.col_offset].strip(" \t"):
        return Position(raw.lineno, match.start(), raw.lineno, match.end())
    return TreeRebuilder(AstroidManager(), "\n".join(tree.lines))._get_position_info(raw, node)


def _decorators(raw: Any, parent: nodes.NodeNG, tree: Growing) -> nodes.Decorators | None:
    found = raw.decorator_list
    if not found:
        return None
    node = nodes.Decorators(
        lineno=found[0].lineno,
        col_offset=raw.col_offset,
        end_lineno=found[-1].end_lineno,
        end_col_offset=found[-1].end_col_offset,
        parent=parent,
    )
    tree.begin(node)
    node.postinit(_children(found, node, tree))
    tree.end(node)
    return node


def _arguments(raw: ast.arguments, parent: nodes.NodeNG, tree: Growing) -> nodes.Arguments:
    vararg, kwarg = raw.vararg, raw.kwarg
    node = nodes.Arguments(
        vararg.arg if vararg else None,
        kwarg.arg if kwarg else None,
        parent,
        _starred(vararg, parent),
        _starred(kwarg, parent),
    )
    tree.begin(node)
    posonlyargs = [_parameter(one, node, tree) for one in raw.posonlyargs]
    posonlyargs_annotations = _children([one.annotation for one in raw.posonlyargs], node, tree)
    args = [_parameter(one, node, tree) for one in raw.args]
    defaults = _children(raw.defaults, node, tree)
    kwonlyargs = [_parameter(one, node, tree) for one in raw.kwonlyargs]
    kw_defaults = _children(raw.kw_defaults, node, tree)
    node.postinit(
        args=args,
        defaults=defaults,
        kwonlyargs=kwonlyargs,
        posonlyargs=posonlyargs,
        kw_defaults=kw_defaults,
        posonlyargs_annotations=posonlyargs_annotations,
        annotations=_children([one.annotation for one in raw.args], node, tree),
        varargannotation=_child(vararg and vararg.annotation, node, tree),
        kwargannotation=_child(kwarg and kwarg.annotation, node, tree),
        kwonlyargs_annotations=_children([one.annotation for one in raw.kwonlyargs], node, tree),
        type_comment_args=[None] * len(args),
        type_comment_kwonlyargs=[None] * len(kwonlyargs),
        type_comment_posonlyargs=[None] * len(posonlyargs),
    )
    tree.end(node)
    given = [*raw.args, *raw.posonlyargs, *raw.kwonlyargs, *filter(None, (vararg, kwarg))]
    if given:
        node.lineno = min(one.lineno for one in given)
        node.end_lineno = max(one.end_lineno or one.lineno for one in given)
    for one in (*args, *kwonlyargs, *posonlyargs):
        tree.bind(one.name, one)
    for star in filter(None, (vararg, kwarg)):
        parent.set_local(star.arg, node)
    return node


def _starred(raw: ast.arg | None, parent: nodes.NodeNG) -> nodes.AssignName | None:
    if raw is None:
        return None
    return nodes.AssignName(
        raw.arg, raw.lineno, raw.col_offset, parent, end_lineno=raw.end_lineno, end_col_offset=raw.end_col_offset
    )


def _parameter(raw: ast.arg, parent: nodes.NodeNG, tree: Growing) -> nodes.AssignName:
    node = _placed(nodes.AssignName, raw, parent, tree, raw.arg)
    tree.end(node)
    return node


def _handler(raw: ast.ExceptHandler, parent: nodes.NodeNG, tree: Growing) -> nodes.ExceptHandler:
    node = _placed(nodes.ExceptHandler, raw, parent, tree)
    caught = _child(raw.type, node, tree)
    name = None
    if raw.name is not None:
        name = _placed(nodes.AssignName, raw, node, tree, raw.name)
        tree.end(name)
        tree.bind(name.name, name)
    node.postinit(caught, name, _children(raw.body, node, tree))
    tree.end(node)
    return node


def _import(raw: ast.Import, parent: nodes.NodeNG, tree: Growing) -> nodes.Import:
    node = _placed(nodes.Import, raw, parent, tree, [(alias.name, alias.asname) for alias in raw.names])
    tree.end(node)
    for name, alias in node.names:
        tree.bind((alias or name).partition(".")[0], node)
    return node


def _import_from(raw: ast.ImportFrom, parent: nodes.NodeNG, tree: Growing) -> nodes.ImportFrom:
    names = [(alias.name, alias.asname) for alias in raw.names]
    node = nodes.ImportFrom(
        raw.module or "",
        names,
        raw.level or None,
        raw.lineno,
        raw.col_offset,
        parent,
        end_lineno=raw.end_lineno,
        end_col_offset=raw.end_col_offset,
    )
    tree.begin(node)
    tree.end(node)
    tree.imports.append((node, frozenset(tree.globals[-1]) if tree.globals else frozenset()))
    return node


def _global(raw: ast.Global, parent: nodes.NodeNG, tree: Growing) -> nodes.Global:
    node = _placed(nodes.Global, raw, parent, tree, raw.names)
    tree.end(node)
    if tree.globals:
        for name in raw.names:
            tree.globals[-1].setdefault(name, []).append(node)
    return node


def _with(raw: Any, parent: nodes.NodeNG, tree: Growing) -> nodes.With:
    node = _placed(nodes.With if raw.__class__ is ast.With else nodes.AsyncWith, raw, parent, tree)
    items = [(_child(one.context_expr, node, tree), _child(one.optional_vars, node, tree)) for one in raw.items]
    node.postinit(items=items, body=_children(raw.body, node, tree))
    tree.end(node)
    return node


def _dict(raw: ast.Dict, parent: nodes.NodeNG, tree: Growing) -> nodes.Dict:
    node = _placed(_LITERALS["Dict"], raw, parent, tree)
    node.postinit([_item(key, value, parent, node, tree) for key, value in zip(raw.keys, raw.values, strict=True)])
    tree.end(node)
    return node


def _item(key: ast.expr | None, value: ast.expr, parent: nodes.NodeNG, node: nodes.Dict, tree: Growing) -> tuple[Any, Any]:
    """A key and its value; astroid hangs the ``**`` that stands for a key on the parent of the dictionary."""
    if key is not None:
        return BUILD[key.__class__](key, node, tree), BUILD[value.__class__](value, node, tree)
    stars = _placed(nodes.DictUnpack, value, parent, tree)
    tree.end(stars)
    return stars, BUILD[value.__class__](value, node, tree)


def _dict_comprehension(raw: ast.DictComp, parent: nodes.NodeNG, tree: Growing) -> nodes.NodeNG:
    if raw.value is None:
        return tree.rest.build(raw, parent, tree)
    node = _placed(nodes.DictComp, raw, parent, tree)
    key, value = _child(raw.key, node, tree), _child(raw.value, node, tree)
    node.postinit(key, value, _children(raw.generators, node, tree))
    tree.end(node)
    return node


def _compare(raw: ast.Compare, parent: nodes.NodeNG, tree: Growing) -> nodes.Compare:
    node = _placed(nodes.Compare, raw, parent, tree)
    left = BUILD[raw.left.__class__](raw.left, node, tree)
    pairs = zip(raw.ops, raw.comparators, strict=True)
    node.postinit(left, [(CMP_OP_CLASSES[op.__class__], BUILD[one.__class__](one, node, tree)) for op, one in pairs])
    tree.end(node)
    return node


def _name(raw: ast.Name, parent: nodes.NodeNG, tree: Growing) -> nodes.NodeNG:
    if raw.ctx.__class__ is ast.Load:
        return _load_name(raw, parent, tree)
    node = (_store_name if raw.ctx.__class__ is ast.Store else _delete_name)(raw, parent, tree)
    tree.bind(node.name, node)
    return node


def _attribute(raw: ast.Attribute, parent: nodes.NodeNG, tree: Growing) -> nodes.NodeNG:
    if raw.ctx.__class__ is ast.Load:
        return _load_attribute(raw, parent, tree)
    return (_store_attribute if raw.ctx.__class__ is ast.Store else _delete_attribute)(raw, parent, tree)


def _other(raw: ast.AST, parent: nodes.NodeNG, tree: Growing) -> nodes.NodeNG:
    return tree.rest.build(raw, parent, tree)


class _Builders(dict[type, _Build]):
    """The function for each kind of Python's nodes; astroid's builder for one that is not known here."""

    def __missing__(self, kind: type) -> _Build:
        self[kind] = _other
        return _other


BUILD: dict[type, _Build] = _Builders()


def _generated(shape: tuple[str, str, dict[str, str], tuple[tuple[str, str, str], ...]]) -> _Build:
    """The function that builds one kind of nodes: the attributes that astroid's constructor sets, without calling it."""
    _, kind, values, children = shape
    made = _LITERALS.get(kind) or getattr(nodes, kind)
    names = {name for name, _, _ in children}
    settings = {**_defaults(made), **values, "parent": "parent"}
    if kind != "Comprehension":
        settings |= {name: f"raw.{name}" for name in _POSITION}
    lines = [
        "def build(raw, parent, tree):",
        f"    node = new({kind})",
        *(f"    node.{name} = {value}" for name, value in settings.items() if name not in names),
        "    order = tree.order",
        "    node._ldlm_start = len(order)",
        "    order.append(node)",
        *(f"    node.{name} = {_CHILD[how].format(field)}" for name, field, how in children),
        "    node._ldlm_end = len(order)",
        "    return node",
    ]
    space = {
        "new": object.__new__,
        kind: made,
        "BUILD": BUILD,
        "BINARY": BIN_OP_CLASSES,
        "BOOLEAN": BOOL_OP_CLASSES,
        "UNARY": UNARY_OP_CLASSES,
        "CONTEXTS": CONTEXT_CLASSES,
    }
    exec("\n".join(lines), space)
    return space["build"]


def _defaults(kind: type) -> dict[str, str]:
    """What astroid's constructor gives each attribute of a kind of nodes where it is told nothing, as source text."""
    node = kind(**dict.fromkeys(_parameters(kind.__init__)))
    if (later := getattr(kind, "postinit", None)) is not None:
        later(node, **dict.fromkeys(_parameters(later)))
    return {name: repr(value) for name, value in vars(node).items()}


def _parameters(function: FunctionType) -> tuple[str, ...]:
    code = function.__code__
    return code.co_varnames[1 : code.co_argcount + code.co_kwonlyargcount]


_BY_SHAPE = {shape[1]: _generated(shape) for shape in _SHAPES if hasattr(ast, shape[0]) and hasattr(nodes, shape[1])}
_load_name, _store_name, _delete_name = (_BY_SHAPE[kind] for kind in ("Name", "AssignName", "DelName"))
_load_attribute, _store_attribute, _delete_attribute = (
    _BY_SHAPE[kind] for kind in ("Attribute", "AssignAttr", "DelAttr")
)
BUILD.update({getattr(ast, raw): _BY_SHAPE[kind] for raw, kind, _, _ in _SHAPES if kind in _BY_SHAPE})
BUILD.update(
    {
        ast.AsyncFunctionDef: _function,
        ast.AsyncWith: _with,
        ast.Attribute: _attribute,
        ast.ClassDef: _class,
        ast.Compare: _compare,
        ast.Dict: _dict,
        ast.DictComp: _dict_comprehension,
        ast.ExceptHandler: _handler,
        ast.FunctionDef: _function,
        ast.Global: _global,
        ast.Import: _import,
        ast.ImportFrom: _import_from,
        ast.Name: _name,
        ast.With: _with,
        ast.arguments: _arguments,
    }
)
