"""The standard library's syntax tree of a file, parsed once: for the conditions of rules, and for the light tree built on it."""

from __future__ import annotations

import ast
import contextlib
import warnings
from collections.abc import Iterator

from ldlm_lint.source import Source

_TREE = "_ldlm_syntax"
# The compiler rejects this import with these words, after parsing and before any other check.
_STOP, _STOPPED = "from __future__ import braces\n", "not a chance"


def parses(source: Source) -> bool:
    """Whether a file's text is Python, by the parser alone, without creating node objects.

    That takes some 55 % of the time of `syntax_of` and a fraction of its memory. The one difference: an expression that
    is nested too deeply for a tree of objects is accepted here, since its tree is not needed.
    """
    if _TREE in source.__dict__:
        return True
    try:
        with _without_warnings():
            # For the line in its message the compiler opens the file with this name; the empty name never exists.
            compile(f"{_STOP}{source.text}\n", "", "exec", dont_inherit=True)
    except SyntaxError as error:
        if error.msg == _STOPPED:
            return True
    except (TypeError, ValueError, RecursionError, MemoryError):
        pass
    # The parser's error for a text is computed without the line above it.
    return syntax_of(source) is not None


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
    """Like `syntax_of`, for callers that need the tree; raises what parsing raises."""
    known: ast.Module | None = source.__dict__.get(_TREE)
    if known is None:
        known = source.__dict__[_TREE] = parsed(source.text)
    return known


def parsed(text: str) -> ast.Module:
    """The tree of a text, without warnings; a text that ends inside a comment gets a final line."""
    with _without_warnings():
        return ast.parse(text + "\n")


@contextlib.contextmanager
def _without_warnings() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
