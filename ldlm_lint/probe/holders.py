"""Finds what keeps the graphs of past losses alive: names in running functions, else attributes of the project's
objects and names of its modules, and the lines that add to them."""

from __future__ import annotations

import ast
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

from ldlm_lint.probe.frame_locals import locals_of
from ldlm_lint.probe.resting import Place, resting
from ldlm_lint.probe.session import Session
from ldlm_lint.probe.sites import call_site, is_project, real, source_site

if TYPE_CHECKING:
    from types import FrameType
    from typing import TypeGuard

# A name must hold the losses of so many iterations before the running one.
FEWEST = 2
MOST_ELEMENTS = 64
MOST_FRAMES = 12
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_ADDING = frozenset({"append", "extend", "add", "appendleft", "update"})
_REMOVING = frozenset({"pop", "popleft", "popitem", "remove"})
_CONTAINERS = (dict, list, tuple, deque)


def holders(session: Session, marks_of: Callable[[Any], set[int]]) -> list[dict[str, Any]]:
    """Names of the project's running functions whose values contain losses of earlier iterations; if none of them is
    added to, attributes and globals (under a Trainer no function of the project is running between two steps).

    ``marks_of`` gives the iterations of the losses in a tensor's graph. Each record has the ``name``, its ``type``, the
    number of ``iterations`` it contains and the ``site`` of a line that adds to it; if none is found, of the step.
    ``most`` is how many elements it can have (None: any number), ``shortened`` whether the program also removes some.
    """
    running: list[dict[str, Any]] = []
    adding: list[dict[str, Any]] = []
    for places in (_running, resting):
        for place in places(session):
            count = _held(session, place.value, marks_of)
            if count:
                record = {"name": place.name, "type": type(place.value).__name__, "iterations": count}
                tree, inside = _source(place)
                adds = [node for node in ast.walk(inside) if _adds(node, place.name)]
                record["most"] = _most_elements(session, place.value, adds)
                record["shortened"] = any(_removes(node, place.name) for node in ast.walk(inside))
                adding.extend({**record, "site": site} for site in _sites(place, tree, adds, session.root))
                if not adds and places is _running:
                    running.append({**record, "site": call_site(session.root)})
        if adding:
            break
    # A value derived from a name that is added to contains the same graphs.
    return adding or running


def _held(session: Session, value: Any, marks_of: Callable[[Any], set[int]]) -> int:
    """The number of iterations whose losses a value contains, 0 below the reporting threshold."""
    marks = {mark for one in _tensors(session, value) for mark in marks_of(one)}
    return len(marks) if len({mark for mark in marks if mark < session.step - 1}) >= FEWEST else 0


def _running(session: Session) -> Iterator[Place]:
    """The names of the project's functions that are being run."""
    for frame in _project_frames(session.root):
        code = frame.f_code
        for name, value in _values(frame):
            yield Place(name, value, code.co_filename, code.co_name, code.co_firstlineno)


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
    for name, value in (locals_of(frame) or {}).items():
        if name == "self":
            yield from (
                (f"self.{attribute}", one)
                for attribute, one in list(vars(value).items())
                if not attribute.startswith("__")
            )
        else:
            yield name, value


def _tensors(session: Session, value: Any) -> list[Any]:
    """The tensors with a graph that a value is, or holds directly or in its containers; of a long container the last
    ones."""
    return _with_graphs(session, [value, *(one for inner in _containers(value) for one in _elements(inner))])


def _with_graphs(session: Session, values: Iterable[Any]) -> list[Any]:
    return [one for one in values if isinstance(one, session.torch.Tensor) and one.grad_fn is not None]


def _containers(value: Any) -> list[Any]:
    """A container and those in it: ``meters["loss"]``, a queue of pairs."""
    if not isinstance(value, _CONTAINERS):
        return []
    return [value, *(one for one in _elements(value) if isinstance(one, _CONTAINERS))]


def _elements(container: Any) -> list[Any]:
    return list(container.values() if isinstance(container, dict) else container)[-MOST_ELEMENTS:]


def _most_elements(session: Session, value: Any, adds: Iterable[ast.AST]) -> int | None:
    """How many losses a value can hold: by the limit of its queues, or the length of a list whose elements are only
    replaced; None if any number."""
    if isinstance(value, list) and adds and all(isinstance(node, ast.Assign) and _indexed(node) for node in adds):
        return len(value)
    if (limit := _limit(value)) is not None:
        return limit
    limits = [_limit(one) for one in _containers(value) if _with_graphs(session, _elements(one))]
    known = [one for one in limits if one is not None]
    return sum(known) if known and len(known) == len(limits) else None


def _limit(container: Any) -> int | None:
    limit: int | None = container.maxlen if isinstance(container, deque) else None
    return limit


def _source(place: Place) -> tuple[ast.AST, ast.AST]:
    """The syntax trees of a place's file and of its function, class or module; empty if it cannot be read."""
    try:
        with open(real(place.path), encoding="utf-8") as file:
            tree = ast.parse(file.read())
    except (OSError, SyntaxError, ValueError):
        tree = ast.Module([], [])
    return tree, _definition(tree, place)


def _sites(place: Place, tree: ast.AST, lines: Iterable[ast.stmt | ast.expr], root: str) -> list[dict[str, Any]]:
    """The lines that add to a place's name."""
    return [
        source_site(
            place.path, one.lineno, one.end_lineno or one.lineno, root, _function_at(tree, one.lineno, place.scope)
        )
        for one in lines
    ]


def _definition(tree: ast.AST, place: Place) -> ast.AST:
    """The function that begins at a line (its decorators may come first), or the class with a name; else the module."""
    if not place.line:
        classes = (one for one in ast.walk(tree) if isinstance(one, ast.ClassDef) and one.name == place.scope)
        return next(classes, tree)
    starts = {
        min((one.lineno, *(decorator.lineno for decorator in one.decorator_list))): one
        for one in ast.walk(tree)
        if isinstance(one, _FUNCTIONS) and one.name == place.scope
    }
    return starts.get(place.line, tree)


def _function_at(tree: ast.AST, line: int, default: str) -> str:
    """The name of the innermost function around a line."""
    around = [
        one for one in ast.walk(tree) if isinstance(one, _FUNCTIONS) and one.lineno <= line <= (one.end_lineno or 0)
    ]
    return max(around, key=lambda one: one.lineno).name if around else default


def _adds(node: ast.AST, name: str) -> TypeGuard[ast.stmt | ast.expr]:
    """Whether a statement or call adds to a name: ``name += x``, ``name = name + x``, ``name.append(x)``, ``name[k] = x``."""
    if isinstance(node, ast.AugAssign):
        return ast.unparse(node.target).partition("[")[0] == name
    if isinstance(node, ast.Assign):
        targets = {ast.unparse(one).partition("[")[0] for one in node.targets}
        indexed = _indexed(node)
        used = any(
            ast.unparse(one) == name for one in ast.walk(node.value) if isinstance(one, (ast.Name, ast.Attribute))
        )
        return name in targets and (indexed or used)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        return node.func.attr in _ADDING and _is(node.func.value, name)
    return False


def _indexed(node: ast.Assign) -> bool:
    return any(isinstance(one, ast.Subscript) for one in node.targets)


def _removes(node: ast.AST, name: str) -> bool:
    """Whether a statement or call shortens a name's container: ``name.pop(0)``, ``del name[0]``, ``name = name[-9:]``."""
    if isinstance(node, ast.Delete):
        return any(isinstance(one, ast.Subscript) and _is(one.value, name) for one in node.targets)
    if isinstance(node, ast.Assign):
        targets = {ast.unparse(one).partition("[")[0] for one in node.targets}
        parts = (one for one in ast.walk(node.value) if isinstance(one, ast.Subscript))
        return name in targets and any(isinstance(one.slice, ast.Slice) and _holds(one.value, name) for one in parts)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        return node.func.attr in _REMOVING and _is(node.func.value, name)
    return False


def _is(node: ast.expr, name: str) -> bool:
    return ast.unparse(node).partition("[")[0] == name


def _holds(node: ast.expr, name: str) -> bool:
    """Whether an expression is made of a name: ``(name + [loss])``."""
    return any(ast.unparse(one) == name for one in ast.walk(node) if isinstance(one, (ast.Name, ast.Attribute)))
