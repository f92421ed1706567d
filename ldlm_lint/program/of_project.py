"""The program of a project's Python files: parsed or remembered tables, linked."""

from __future__ import annotations

import ast
import contextlib
import gc
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

from ldlm_lint.code import Table, table_of
from ldlm_lint.garbage_collection import set_aside
from ldlm_lint.program.modules import NOTHING_SHOWN
from ldlm_lint.program.program import Filed, Program, linked
from ldlm_lint.program.slices import shown_by
from ldlm_lint.project.configured_texts import ConfiguredTexts
from ldlm_lint.project.tables import Tabled
from ldlm_lint.python.syntax import forget_trees, parsed, required
from ldlm_lint.source import Kind, Source, UnreadableError

if TYPE_CHECKING:
    from ldlm_lint.project.index import Project

_FRAMES = 6_000
"""Frames of Python that the nesting of one file may take: the parser of CPython bounds it long before."""
_MANY = 400
"""Files of a project whose program is large: the trees of the last ones are worth less than their memory."""
_FAILURES = (SyntaxError, TypeError, ValueError, RecursionError, MemoryError)


def program_of(project: Project) -> Program:
    """Link the files of a project; one that does not parse is left out; its own lint reports it."""
    if len(project.files) > _MANY:
        # No part of a run needs more memory.
        forget_trees()
    with _at_our_pace():
        return linked(_tables(project), configured=ConfiguredTexts(project))


def program_of_file(project: Project, path: str) -> Program:
    """One file of a project as a program of its own; without any module if it does not parse."""
    known = project.tabled(path)
    name = path.removeprefix(project.root.rstrip("/") + "/")
    with _at_our_pace():
        return linked([Filed(name, *known, False)] if known is not None else [])


def _tables(project: Project) -> Iterator[Filed]:
    root = project.root.rstrip("/") + "/"
    for path in sorted(project.files):
        if project.is_test(path):
            yield Filed(path.removeprefix(root), NOTHING_SHOWN, Table(), True)
            continue
        known = project.tabled(path)
        if known is not None:
            yield Filed(path.removeprefix(root), *known, False)


def tabled_file(project: Project, path: str) -> Tabled | None:
    """The table of a file with its `Shown`; None for one that is not Python."""
    table = table_of_file(project, path)
    return None if table is None else Tabled(shown_by(table), table)


def table_of_file(project: Project, path: str) -> Table | None:
    """The table of a file, or of the cells of a notebook; None for one that is not Python."""
    try:
        return table_of(_tree_of(Source.from_bytes(path, project.data(path), Kind.PYTHON)))
    except (*_FAILURES, UnreadableError):
        return None


def _tree_of(source: Source) -> ast.Module:
    """The tree of a text, or of what is before its first syntax error; raises what parsing raises if not even that
    parses."""
    try:
        return required(source)
    except SyntaxError as error:
        # Linting the file alone also examines the part before it.
        from ldlm_lint.python.tree import readable

        return parsed(readable(source, error.lineno or 1, error.msg or ""))


@contextlib.contextmanager
def _at_our_pace() -> Iterator[None]:
    """Without garbage collection, which would scan all tables repeatedly; they have no cycles."""
    collects, limit = gc.isenabled(), sys.getrecursionlimit()
    gc.disable()
    sys.setrecursionlimit(max(limit, _FRAMES))
    try:
        yield
    finally:
        sys.setrecursionlimit(limit)
        if collects:
            set_aside()
            gc.enable()
