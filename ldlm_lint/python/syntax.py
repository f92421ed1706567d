"""The standard library's syntax tree of a file, parsed once: for the conditions of rules, and for the light tree built on it."""

from __future__ import annotations

import ast
import warnings

from ldlm_lint.source import Source

_TREE = "_ldlm_syntax"


def syntax_of(source: Source) -> ast.Module | None:
    """The tree of a file's text, kept with the source until it is taken; None for a text that does not parse."""
    known: ast.Module | None = source.__dict__.get(_TREE)
    if known is None:
        try:
            known = parsed(source.text)
        except (SyntaxError, TypeError, ValueError, RecursionError, MemoryError):
            return None
        source.__dict__[_TREE] = known
    return known


def taken_from(source: Source) -> ast.Module:
    """The tree of a file's text for whoever uses it up; raises what parsing raises."""
    known: ast.Module | None = source.__dict__.pop(_TREE, None)
    return parsed(source.text) if known is None else known


def parsed(text: str) -> ast.Module:
    """The tree of a text, without warnings; a text that ends inside a comment ends with a line of its own."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ast.parse(text + "\n")
