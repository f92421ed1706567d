"""Checks that a Python file is still valid after a fix, and unchanged outside of the edits."""

from __future__ import annotations

import ast
import io
import tokenize
import warnings
from collections.abc import Collection

from ldlm_lint.autofix import validate_names, validate_tree
from ldlm_lint.autofix.moves import Moves
from ldlm_lint.model import Edit
from ldlm_lint.notebooks import text
from ldlm_lint.source import Kind, Source, UnreadableError


def validate_python(before: bytes, after: bytes, edits: Collection[Edit] = ()) -> str | None:
    """The damage in a Python file, None if there is none. It is not executed.

    It must parse and compile as far as it did before; if ``edits`` are given (those that make ``after`` of ``before``),
    its tree must be the same outside of them, and the names that they add must be bound and must not hide others.
    """
    if text.is_text(before) and text.frozen(before) != text.frozen(after):
        return "it would change a command of IPython or the bounds of a cell"
    level, _ = _soundness(before)
    now, why = _soundness(after)
    if now < level:
        return why
    return _outside(before, after, edits) if level and edits else None


def _outside(before: bytes, after: bytes, edits: Collection[Edit]) -> str | None:
    try:
        old, new = Source.from_bytes("", before, Kind.PYTHON), Source.from_bytes("", after, Kind.PYTHON)
    except UnreadableError as error:
        return f"it could no longer be read: {error}"
    if old.encoding != new.encoding or old.bom != new.bom:
        return "its encoding would change"
    moves = Moves(before, edits, old.encoding)
    old_tree, new_tree = _parsed(old.text), _parsed(new.text)
    try:
        return validate_tree.difference(old, old_tree, new, new_tree, moves) or validate_names.misused(
            old, old_tree, new, new_tree, moves
        )
    except RecursionError:
        return "its expressions are nested too deeply to be compared"


def _parsed(text: str) -> ast.Module:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ast.parse(text)


def _soundness(data: bytes) -> tuple[int, str]:
    """2 if the file compiles, 1 if it only parses, 0 if not even that, with the first error.

    Compiling finds errors that parsing does not: a repeated keyword argument, a misplaced ``__future__`` import.
    """
    try:
        tree = _parsed(data.decode(tokenize.detect_encoding(io.BytesIO(data).readline)[0]))
    except (SyntaxError, ValueError, LookupError, RecursionError, MemoryError) as error:
        return 0, f"it would no longer parse: {_describe(error)}"
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            compile(tree, "<fixed>", "exec", dont_inherit=True)
    except (SyntaxError, ValueError, RecursionError) as error:
        return 1, f"it would no longer compile: {_describe(error)}"
    return 2, ""


def _describe(error: Exception) -> str:
    if isinstance(error, SyntaxError) and error.lineno:
        return f"{error.msg} (line {error.lineno})"
    return str(error) or type(error).__name__
