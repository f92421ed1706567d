"""Whether a watched run executed a line: inferred from the observed lines and the branches between.

Lines with an observation were executed. Another line was executed too if it is under no branch, or under one with an
observation, or in a function that was seen to run or is called from an executed line.
"""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from ldlm_lint.source import Kind, Source

_FUNCTION = (ast.FunctionDef, ast.AsyncFunctionDef)
_LOOP = (ast.For, ast.AsyncFor, ast.While)
_MOST_ROUNDS = 8


def ran(source: Source, line: int, seen: Iterable[int]) -> bool:
    """Whether a run with observations at these lines of a file surely executed another line of it.

    Files other than Python have no branches. Loops are taken to run at least once.
    """
    if source.kind is not Kind.PYTHON:
        return True
    try:
        with warnings.catch_warnings():
            # Python complains about escapes in strings of the linted file.
            warnings.simplefilter("ignore")
            tree = ast.parse(source.text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return _Program(tree, set(seen)).ran(line)


@dataclass
class _Program:
    """A parsed file and the lines of it that are known to be executed."""

    tree: ast.Module
    seen: set[int]
    calls: dict[str, list[int]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Call) and (name := _called(node.func)):
                self.calls.setdefault(name, []).append(node.lineno)
        functions = [node for node in ast.walk(self.tree) if isinstance(node, _FUNCTION)]
        # A function that ran and is called in a single place was called there.
        for _ in range(_MOST_ROUNDS):
            callers = {
                self.calls[one.name][0]
                for one in functions
                if len(self.calls.get(one.name, ())) == 1 and self._saw(one.body)
            }
            if callers <= self.seen:
                break
            self.seen |= callers

    def ran(self, line: int, asked: frozenset[str] = frozenset()) -> bool:
        """Whether the line ran; ``asked`` are the functions whose callers are being checked."""
        # If nothing was observed in a file, it may not even have been imported.
        return bool(self.seen) and all(self._entered(branch, asked) for branch in _branches(self.tree.body, line))

    def _entered(self, branch: _Branch, asked: frozenset[str]) -> bool:
        if self._saw(branch.block, branch.behind):
            return True
        name = branch.function
        return name not in asked and any(self.ran(at, asked | {name}) for at in self.calls.get(name, ()))

    def _saw(self, block: Sequence[ast.stmt], behind: int = 0) -> bool:
        first, last = max(block[0].lineno, behind + 1), block[-1].end_lineno or 0
        return any(first <= line <= last for line in self.seen)


@dataclass(frozen=True)
class _Branch:
    """Statements that need not run, and the name of the function whose body they are, empty if they are not a function
    body.

    An observation at a line with a condition (``behind``) may belong to the condition: ``if loss.item() > 5: stop()``.
    """

    block: Sequence[ast.stmt]
    behind: int = 0
    function: str = ""


def _branches(block: Sequence[ast.stmt], line: int) -> Iterator[_Branch]:
    """The branches on the way from a block to a line inside it, the outermost first."""
    for number, statement in enumerate(block):
        if statement.lineno <= line <= (statement.end_lineno or 0):
            left = [at for at in range(number) if _may_leave(block[at])]
            if left:
                yield _Branch(block[left[-1] + 1 :], block[left[-1]].end_lineno or 0)
            yield from _inside(statement, line)
            return


def _inside(statement: ast.stmt, line: int) -> Iterator[_Branch]:
    for part, inner in _blocks(statement):
        if not inner[0].lineno <= line <= (inner[-1].end_lineno or 0):
            continue
        if isinstance(statement, _FUNCTION):
            yield _Branch(inner, function=statement.name)
        elif part != "finalbody" and (isinstance(statement, (ast.If, ast.Match)) or part != "body"):
            yield _Branch(inner, statement.lineno)
        yield from _branches(inner, line)


def _blocks(statement: ast.stmt) -> Iterator[tuple[str, list[ast.stmt]]]:
    """The blocks of a statement with the names of its parts that they are."""
    for part in ("body", "orelse", "finalbody"):
        if inner := getattr(statement, part, None):
            yield part, inner
    for part in ("handlers", "cases"):
        yield from ((part, one.body) for one in getattr(statement, part, ()))


def _may_leave(statement: ast.stmt, in_loop: bool = False) -> bool:
    """Whether a statement may end its block early: it returns, or breaks or continues the loop around the block."""
    if isinstance(statement, ast.Return):
        return True
    if isinstance(statement, (ast.Break, ast.Continue)):
        return not in_loop
    if isinstance(statement, (*_FUNCTION, ast.ClassDef)):
        return False
    looping = in_loop or isinstance(statement, _LOOP)
    return any(_may_leave(one, looping) for _, block in _blocks(statement) for one in block)


def _called(called: ast.expr) -> str:
    """The name of a function of the file, or of a method of the object itself, that is called; else empty."""
    if isinstance(called, ast.Attribute) and isinstance(called.value, ast.Name) and called.value.id in ("self", "cls"):
        return called.attr
    return called.id if isinstance(called, ast.Name) else ""
