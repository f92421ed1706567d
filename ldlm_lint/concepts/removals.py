"""Calls that remove files, and the possible names of these."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator
from functools import cached_property
from typing import NamedTuple

from ldlm_lint.concepts.path_patterns import JOINS, PathPatterns
from ldlm_lint.program.codebase import Codebase, Concept
from ldlm_lint.program.handles import Call, Expr

_REMOVES = ("remove", "unlink", "rmtree", "removedirs", "rmdir")
_MOVES = ("replace", "rename", "move")
_LISTS = frozenset({"listdir", "scandir", "iterdir", "walk"})
_FINDS = frozenset({"glob", "iglob", "rglob"})
_OF_FILES = frozenset({"os", "shutil", "pathlib"})
OWN_ROTATION = "_keep_last"
"""What the fix of unbounded-checkpoints writes: it prunes the saves that call it, and says nothing about others."""
_ITS_PARAMETERS = ("path", "before", "after", "keep")


class Removal(NamedTuple):
    """A call that removes files, their names (empty if unknown), and the removed path, if it is one that may be written next."""

    call: Call
    names: frozenset[str]
    path: Expr | None


class Removals(Concept):
    """The calls of a program that remove files."""

    def __init__(self, code: Codebase) -> None:
        super().__init__(code)
        self._patterns = code[PathPatterns]

    @cached_property
    def all(self) -> list[Removal]:
        """The calls that remove files; renaming to a constant name removes the file under its old name."""
        return [*self._removed(), *(one for call in self.code.calls_named(*_MOVES) for one in self._moved(call))]

    def _moved(self, call: Call) -> Iterator[Removal]:
        source = _removed_by(call, call.positional[1:])
        if source is None or len(call.positional) != (1 if source == call.receiver else 2):
            return
        names = self._names(source, set())
        if names and all("*" not in posixpath.basename(one) for one in self._patterns.of(call.positional[-1])):
            yield Removal(call, frozenset(names), None)

    def _removed(self) -> Iterator[Removal]:
        for call in self.code.calls_named(*_REMOVES):
            path = _removed_by(call, call.positional)
            is_own = call.function.name == OWN_ROTATION and tuple(call.function.parameters) == _ITS_PARAMETERS
            if path is not None and not is_own:
                yield Removal(call, frozenset(self._names(path, set())), path)

    def _names(self, path: Expr, seen: set[Expr]) -> set[str]:
        """The names that a removed path may be: its own patterns, or those of the search that found it."""
        texts = set(self._patterns.of(path)) - {"*"}
        if texts or path in seen:
            return texts
        seen.add(path)
        if isinstance(path, Call) and path.called_name in _FINDS and path.positional:
            # ``folder.glob("step_*.pt")`` looks below a folder that the text does not name.
            return {text if "/" in text else f"*/{text}" for text in path.positional[0].texts}
        if isinstance(path, Call) and path.called_name in _LISTS:
            folder = path.positional[0] if path.positional else path.receiver
            return {f"{text}/*" for text in self._patterns.of(folder)} if folder is not None else set()
        if path.kind == "attr":
            # The names of a path that an object stores, such as that of the last file.
            return {text for one in path.set_to for text in self._patterns.of(one) if text.strip("*")}
        return {text for one in _inner(path) for text in self._names(one, seen)}


def _removed_by(call: Call, given: list[Expr]) -> Expr | None:
    """The path that a function of Python's standard library takes first, or whose method it is: lists have a ``remove``, too."""
    if given:
        is_of_files = any(one.partition(".")[0] in _OF_FILES for one in call.callee.outside_names)
        return call.positional[0] if is_of_files else None
    return call.receiver


def _inner(path: Expr) -> list[Expr]:
    """The expressions that name what a path names: of a join, a search, a choice, a list, or the callers of a function."""
    if isinstance(path, Call):
        return path.positional[-1:] if path.called_name in JOINS else path.positional[:1]
    if path.kind == "op":
        return path.operands[:1] if path.operator == "Div" else []
    if path.kind in ("elem", "item", "part", "star", "comp") and path.base is not None:
        return [path.base]
    return path.given if path.kind == "param" else path.operands if path.kind == "seq" else path.ways if path.kind in ("phi", "copy") else []


__all__ = ["OWN_ROTATION", "Removal", "Removals"]
