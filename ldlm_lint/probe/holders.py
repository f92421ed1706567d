"""Who keeps the graphs of past losses alive: names in the functions that are being run, and the lines that add to them."""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

from ldlm_lint.probe.session import Session
from ldlm_lint.probe.sites import call_site, is_project, real, source_site

if TYPE_CHECKING:
    from types import FrameType
    from typing import TypeGuard

# A name must hold the losses of so many iterations before the running one.
FEWEST = 2
MOST_ELEMENTS = 64
MOST_FRAMES = 12
_ADDING = frozenset({"append", "extend", "add", "appendleft", "update"})


def holders(session: Session, marks_of: Callable[[Any], set[int]]) -> list[dict[str, Any]]:
    """Names of the project's running functions whose values hold the losses of earlier iterations.

    ``marks_of`` says of a tensor which iterations' losses its graph holds. Each record has the ``name``, its ``type``,
    how many ``iterations`` it holds and the ``site`` of a line that adds to it; where none is found, of the step.
    """
    adding: list[dict[str, Any]] = []
    running: list[dict[str, Any]] = []
    for frame in _project_frames(session.root):
        for name, value in _values(frame):
            marks = {mark for one in _tensors(session, value) for mark in marks_of(one)}
            if len({mark for mark in marks if mark < session.step - 1}) >= FEWEST:
                record = {"name": name, "type": type(value).__name__, "iterations": len(marks)}
                sites = _adding_sites(frame, name, session.root)
                adding.extend({**record, "site": site} for site in sites)
                if not sites:
                    running.append({**record, "site": call_site(session.root)})
    # What is only made from a name that is added to holds the same graphs.
    return adding or running


def _project_frames(root: str) -> Iterator[Any]:
    frame: FrameType | None = sys._getframe(1)
    left = MOST_FRAMES
    while frame is not None and left:
        if is_project(frame.f_code.co_filename, root):
            left -= 1
            yield frame
        frame = frame.f_back


def _values(frame: Any) -> Iterator[tuple[str, Any]]:
    """The local names, and the attributes of ``self`` as ``self.name``."""
    for name, value in list(frame.f_locals.items()):
        if name == "self":
            yield from (
                (f"self.{attribute}", one)
                for attribute, one in list(vars(value).items())
                if not attribute.startswith("__")
            )
        else:
            yield name, value


def _tensors(session: Session, value: Any) -> list[Any]:
    """The tensors with a graph that a value is or holds directly; of a long container the last ones."""
    if isinstance(value, session.torch.Tensor):
        found: Iterable[Any] = [value]
    elif isinstance(value, dict):
        found = list(value.values())[-MOST_ELEMENTS:]
    elif isinstance(value, (list, tuple)) or type(value).__name__ == "deque":
        found = list(value)[-MOST_ELEMENTS:]
    else:
        return []
    return [one for one in found if isinstance(one, session.torch.Tensor) and one.grad_fn is not None]


def _adding_sites(frame: Any, name: str, root: str) -> list[dict[str, Any]]:
    """The lines of a frame's function that add to a name."""
    code = frame.f_code
    try:
        with open(real(code.co_filename), encoding="utf-8") as file:
            tree = ast.parse(file.read())
    except (OSError, SyntaxError, ValueError):
        tree = ast.Module([], [])
    inside = _function(tree, code.co_firstlineno, code.co_name)
    lines = [node for node in ast.walk(inside) if _adds(node, name)]
    spans = [(one.lineno, one.end_lineno or one.lineno) for one in lines]
    return [source_site(code.co_filename, first, last, root, code.co_name) for first, last in spans]


def _function(tree: ast.AST, line: int, name: str) -> ast.AST:
    """The function that begins at a line (its decorators may come first), or the whole module."""
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    starts = {
        min((one.lineno, *(decorator.lineno for decorator in one.decorator_list))): one
        for one in ast.walk(tree)
        if isinstance(one, kinds) and one.name == name
    }
    return starts.get(line, tree)


def _adds(node: ast.AST, name: str) -> TypeGuard[ast.stmt | ast.expr]:
    """Whether a statement or call adds to a name: ``name += x``, ``name = name + x``, ``name.append(x)``, ``name[k] = x``."""
    if isinstance(node, ast.AugAssign):
        return ast.unparse(node.target).partition("[")[0] == name
    if isinstance(node, ast.Assign):
        targets = {ast.unparse(one).partition("[")[0] for one in node.targets}
        indexed = any(isinstance(one, ast.Subscript) for one in node.targets)
        used = any(
            ast.unparse(one) == name for one in ast.walk(node.value) if isinstance(one, (ast.Name, ast.Attribute))
        )
        return name in targets and (indexed or used)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        return node.func.attr in _ADDING and ast.unparse(node.func.value) == name
    return False
