"""The standard library's syntax tree of a file, parsed once: for the conditions of rules, and for the light tree built on it."""

from __future__ import annotations

import ast
import warnings

from ldlm_lint.source import Source

_TREE = "_ldlm_syntax"


def syntax_of(source: Source) -> ast.Module | None:
    """The tree of a file's text, kept with the source; None for a text that does not parse."""
    known: ast.Module | None = source.__dict__.get(_TREE)
    if known is None:
        try:
            known = parsed(source.text)
        except (SyntaxError, TypeError, ValueError, RecursionError, MemoryError):
            return None
        source.__dict__[_TREE] = known
    return known


def required(source: Source) -> ast.Module:
    """As `syntax_of`, for whoever needs the tree; raises what parsing raises."""
    known: ast.Module | None = source.__dict__.get(_TREE)
    if known is None:
        known = source.__dict__[_TREE] = parsed(source.text)
    return known


def parsed(text: str) -> ast.Module:
    """The tree of a text, without warnings; a text that ends inside a comment ends with a line of its own."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ast.parse(text + "\n")
