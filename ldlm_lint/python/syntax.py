"""The standard library's syntax tree of a file, parsed once: for the conditions of rules, and for the light tree built on it."""

from __future__ import annotations

import ast
import contextlib
import warnings
from collections.abc import Iterator

from ldlm_lint.source import Source

_TREE = "_ldlm_syntax"
KEPT = 1_000_000
"""The characters of the texts whose trees are kept: a tree takes some 25 bytes for each."""
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


class _Recent:
    """The trees of the last texts that were parsed: rules ask for the tree of one file in several ways, and nothing changes a
    tree."""

    def __init__(self) -> None:
        self._trees: dict[str, ast.Module] = {}
        self._length = 0

    def of(self, text: str) -> ast.Module:
        """The tree of a text; raises what parsing raises."""
        tree = self._trees.pop(text, None)
        if tree is None:
            with _without_warnings():
                tree = ast.parse(text + "\n")
            self._length += len(text)
        self._trees[text] = tree
        while self._length > KEPT:
            oldest = next(iter(self._trees))
            del self._trees[oldest]
            self._length -= len(oldest)
        return tree

    def forget(self) -> None:
        """Free the memory."""
        self._trees.clear()
        self._length = 0


_recent = _Recent()


def parsed(text: str) -> ast.Module:
    """The tree of a text, without warnings; a text that ends inside a comment gets a final line."""
    return _recent.of(text)


def forget_trees() -> None:
    """Free the trees that are kept because they are often asked for again."""
    _recent.forget()


@contextlib.contextmanager
def _without_warnings() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
