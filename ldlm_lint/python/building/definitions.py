"""Functions and classes: their headers, decorators, parameters."""

from __future__ import annotations

import ast
from typing import Any

from astroid import nodes
from astroid.manager import AstroidManager
from astroid.nodes.utils import Position
from astroid.rebuilder import TreeRebuilder

from ldlm_lint.patterns import lazily
from ldlm_lint.python.building.tree import BUILD, Build, Growing, child_of, children_of, documented, placed

_HEADER = lazily(r"(?:async[ \t]+def|def|class)[ \t]+(\w+)")


def _function(raw: Any, parent: nodes.NodeNG, tree: Growing) -> nodes.FunctionDef:
    kind = nodes.FunctionDef if raw.__class__ is ast.FunctionDef else nodes.AsyncFunctionDef
    tree.globals.append({})
    node = placed(kind, raw, parent, tree, raw.name)
    if raw.decorator_list:
        node.lineno = raw.decorator_list[0].lineno
    doc, body = documented(raw.body, node)
    decorators = _decorators(raw, node, tree)
    outer, tree.scope = tree.scope, node
    args = BUILD[ast.arguments](raw.args, node, tree)
    returns = child_of(raw.returns, node, tree)
    type_params = children_of(getattr(raw, "type_params", []), node, tree)
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
    tree.scope = outer
    tree.globals.pop()
    parent.set_local(node.name, node)
    return node


def _class(raw: ast.ClassDef, parent: nodes.NodeNG, tree: Growing) -> nodes.ClassDef:
    node = placed(nodes.ClassDef, raw, parent, tree, raw.name)
    doc, body = documented(raw.body, node)
    metaclass = next((one for one in raw.keywords if one.arg == "metaclass"), None)
    plain = [one for one in raw.keywords if one.arg != "metaclass"]
    decorators = _decorators(raw, node, tree)
    outer, tree.scope = tree.scope, node
    node.postinit(
        decorators=decorators,
        bases=children_of(raw.bases, node, tree),
        keywords=children_of(plain, node, tree),
        body=[BUILD[child.__class__](child, node, tree) for child in body],
        # No part of the preorder: astroid does not count it among the children.
        metaclass=TreeRebuilder(AstroidManager()).visit(metaclass, node).value if metaclass else None,
        position=_header(raw, node, tree),
        doc_node=doc,
        type_params=children_of(getattr(raw, "type_params", []), node, tree),
    )
    tree.exact = tree.exact and not node.type_params
    tree.scope = outer
    tree.end(node)
    parent.set_local(node.name, node)
    return node


def _header(raw: Any, node: nodes.NodeNG, tree: Growing) -> Position | None:
    """The positions of a definition's keyword and name; from astroid's tokenizer for unusual ones."""
    line = tree.lines[raw.lineno - 1] if raw.lineno <= len(tree.lines) else ""
    match = _HEADER.match(line, raw.col_offset)
    if match is not None and match[1] == raw.name and not line[: raw.col_offset].strip(" \t"):
        return Position(raw.lineno, match.start(), raw.lineno, match.end())
    return TreeRebuilder(AstroidManager(), data="\n".join(tree.lines))._get_position_info(raw, node)


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
    node.postinit(children_of(found, node, tree))
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
    posonlyargs_annotations = children_of([one.annotation for one in raw.posonlyargs], node, tree)
    args = [_parameter(one, node, tree) for one in raw.args]
    defaults = children_of(raw.defaults, node, tree)
    kwonlyargs = [_parameter(one, node, tree) for one in raw.kwonlyargs]
    kw_defaults = children_of(raw.kw_defaults, node, tree)
    node.postinit(
        args=args,
        defaults=defaults,
        kwonlyargs=kwonlyargs,
        posonlyargs=posonlyargs,
        kw_defaults=kw_defaults,
        posonlyargs_annotations=posonlyargs_annotations,
        annotations=children_of([one.annotation for one in raw.args], node, tree),
        varargannotation=child_of(vararg and vararg.annotation, node, tree),
        kwargannotation=child_of(kwarg and kwarg.annotation, node, tree),
        kwonlyargs_annotations=children_of([one.annotation for one in raw.kwonlyargs], node, tree),
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
    node = placed(nodes.AssignName, raw, parent, tree, raw.arg)
    tree.end(node)
    return node


BUILDERS: dict[type, Build] = {
    ast.AsyncFunctionDef: _function,
    ast.ClassDef: _class,
    ast.FunctionDef: _function,
    ast.arguments: _arguments,
}
