"""The spelling of Python's operators, and astroid's names of name contexts; astroid's own tables have moved since
4.0.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping

from astroid.const import Context

UNARY: Mapping[type[ast.unaryop], str] = {ast.UAdd: "+", ast.USub: "-", ast.Not: "not", ast.Invert: "~"}
BINARY: Mapping[type[ast.operator], str] = {
    **{ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.MatMult: "@", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%", ast.Pow: "**"},
    **{ast.BitAnd: "&", ast.BitOr: "|", ast.BitXor: "^", ast.LShift: "<<", ast.RShift: ">>"},
}
BOOLEAN: Mapping[type[ast.boolop], str] = {ast.And: "and", ast.Or: "or"}
COMPARISONS: Mapping[type[ast.cmpop], str] = {
    **{ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">="},
    **{ast.Is: "is", ast.IsNot: "is not", ast.In: "in", ast.NotIn: "not in"},
}
CONTEXTS: Mapping[type[ast.expr_context], Context] = {ast.Load: Context.Load, ast.Store: Context.Store, ast.Del: Context.Del}
