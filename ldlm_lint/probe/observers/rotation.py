"""Possible removers of old checkpoints: limits in live objects, and code that deletes files."""

from __future__ import annotations

import ast
import contextlib
import gc
import os
import sys
from argparse import Namespace
from collections.abc import Iterable, Iterator
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from ldlm_lint.probe.sites import is_project, real
from ldlm_lint.python.skim import Skim

if TYPE_CHECKING:
    from types import FrameType

# Names for the number of kept checkpoints in libraries and programs.
LIMITS = frozenset(
    {
        *("save_total_limit", "total_limit", "checkpoints_total_limit", "checkpoint_limit", "checkpoint_total_limit"),
        *("max_to_keep", "max_keep_ckpts", "max_checkpoints", "max_checkpoints_to_keep", "max_ckpt_to_keep"),
        *("save_top_k", "n_saved", "num_to_keep", "num_checkpoints_to_keep", "checkpoint_hist", "max_history"),
        *("keep_last", "keep_last_n", "keep_last_epochs", "keep_latest_k", "keep_latest", "keep_last_checkpoints"),
        *("keep_checkpoint_max", "keep_checkpoints", "keep_ckpts", "keep_n", "keep_last_k", "keep_best", "save_last_n"),
        *("keep_n_latest_checkpoints", "num_keep", "max_keep", "keep_top_k"),
    }
)
# A scan of all objects takes about 50 ms; a program has its settings when it first saves at a place.
MOST_LOOKS = 3
MOST_LIMITS = 50
_REMOVERS = frozenset({"remove", "unlink", "rmtree", "rmdir"})
# Assignments between a removed path and its number: `old = step - 20`, `name = f"{old}.pt"`, `path = out / name`.
_WAYS = 3
_OPEN = (Namespace, SimpleNamespace)
_QUIET = ("torch", "safetensors", "ldlm_lint")


class Rotation:
    """Gathers, for the process, ``limits`` by name, value, owner and library; ``may_remove``: files whose code deletes;
    ``prunes``: those of the program that delete next to code about checkpoints; ``may_limit``: files of the program that
    only name such a limit, which may be passed to a library."""

    def __init__(self) -> None:
        self._limits: dict[tuple[str, int | None, str], None] = {}
        self._read: dict[str, str] = {}
        self._prunes: set[str] = set()
        self._modules = 0
        self._places: set[tuple[str, int] | None] = set()

    def saving(self, root: str, site: dict[str, Any] | None, libraries: Iterable[str]) -> None:
        """A checkpoint is saved at a place, through files of ``libraries``."""
        place = (site["path"], site["line"]) if site is not None else None
        if place in self._places:
            return
        for path in libraries:
            self._look_at(path)
        if len(self._places) < MOST_LOOKS:
            for limit in list(_limits()):
                if len(self._limits) < MOST_LIMITS:
                    self._limits[limit] = None
        self._places.add(place)

    def may_remove(self, root: str) -> bool:
        """Whether any file that was checked has code that deletes."""
        self._look_at_modules(root)
        return next(self._files("may_remove"), None) is not None

    def _look_at_modules(self, root: str) -> None:
        modules = list(sys.modules.values())
        for module in modules if len(modules) != self._modules else ():
            path = getattr(module, "__file__", None)
            if isinstance(path, str) and path.endswith(".py") and is_project(path, root):
                self._look_at(real(path), root)
        self._modules = len(modules)

    def summary(self, root: str) -> dict[str, Any]:
        """As plain values; ``may_remove`` are the project's files that were imported, and the libraries' that saved."""
        self._look_at_modules(root)
        return {
            "limits": [
                {"name": name, "value": value, "owner": owner, "library": _library_of(owner, root)}
                for name, value, owner in self._limits
            ],
            **{kind: sorted(_shown(path, root) for path in self._files(kind)) for kind in ("may_remove", "may_limit")},
            "prunes": sorted(_shown(path, root) for path in self._prunes),
        }

    def _files(self, kind: str) -> Iterator[str]:
        return (path for path, found in self._read.items() if found == kind)

    def _look_at(self, path: str, root: str = "") -> None:
        """Read a file once; ``root`` for one of the project."""
        if path in self._read:
            return
        self._read[path] = ""
        with contextlib.suppress(OSError), open(path, "rb") as file:
            data = file.read()
            text = Skim(data)
            # A library deletes for many reasons; in a program any deletion may remove its checkpoints.
            if text.removes_files if root else text.prunes:
                self._read[path] = "may_remove"
                if root and (text.prunes or _removes_by_arithmetic(data)):
                    self._prunes.add(path)
            elif text.prunes:
                self._read[path] = "may_limit"


def _removes_by_arithmetic(data: bytes) -> bool:
    """Whether code removes a path whose name is computed by a subtraction: ``os.remove(f"{step - 20}.pt")``."""
    try:
        tree = ast.parse(data)
    except (SyntaxError, ValueError, RecursionError):
        return False
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    values: dict[str, list[ast.expr]] = {}
    for node in ast.walk(tree):
        if not isinstance(node, ast.Assign):
            continue
        for target in node.targets:
            if isinstance(target, ast.Name):
                values.setdefault(target.id, []).append(node.value)
    return any(_subtracts(path, values, _WAYS) for call in calls if (path := _removed_path(call)) is not None)


def _removed_path(call: ast.Call) -> ast.expr | None:
    function = call.func
    name = function.attr if isinstance(function, ast.Attribute) else function.id if isinstance(function, ast.Name) else ""
    if name not in _REMOVERS:
        return None
    return call.args[0] if call.args else function.value if isinstance(function, ast.Attribute) else None


def _subtracts(value: ast.expr, values: dict[str, list[ast.expr]], ways: int) -> bool:
    """Whether a path has a number in its name that is a difference, here or in the assignments of its variables."""
    numbers = [node for node in ast.walk(value) if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub)]
    names = [node.id for node in ast.walk(value) if isinstance(node, ast.Name)]
    return bool(numbers) or (ways > 0 and any(_subtracts(one, values, ways - 1) for name in names for one in values.get(name, ())))


def libraries_between(root: str, depth: int = 2) -> dict[str, str]:
    """The files (by name, with their top-level package) between a save and the project's line that led to it."""
    found: dict[str, str] = {}
    frame: FrameType | None = sys._getframe(depth)
    while frame is not None:
        path = frame.f_code.co_filename
        if is_project(path, root):
            return found
        package = str(frame.f_globals.get("__name__", "")).partition(".")[0]
        if package and package not in sys.stdlib_module_names and package not in _QUIET and os.path.isabs(path):
            found[path] = package
        frame = frame.f_back
    return {}


def _shown(path: str, root: str) -> str:
    """A path relative to the project, or to the folder that a library is installed in."""
    for top in (os.path.realpath(root), *(one for one in sys.path if os.path.isabs(one))):
        if path.startswith(top.rstrip(os.sep) + os.sep):
            return os.path.relpath(path, top).replace(os.sep, "/")
    return path


def _library_of(owner: str, root: str) -> str:
    """The top-level package of a library's class; empty for the program's own classes."""
    path = getattr(sys.modules.get(owner.rpartition(".")[0]), "__file__", None)
    package = owner.partition(".")[0]
    own = not isinstance(path, str) or is_project(path, root) or package in sys.stdlib_module_names
    return "" if own else package


def _limits() -> Iterator[tuple[str, int | None, str]]:
    """The limits that objects hold now: of dictionaries only numbers, which are not descriptions of a setting."""
    interesting: dict[type, bool] = {}
    named: list[dict[Any, Any]] = []
    attributes: set[int] = set()
    for one in gc.get_objects():
        kind = type(one)
        if kind is dict:
            if not LIMITS.isdisjoint(one):
                named.append(one)
            continue
        if kind not in interesting:
            interesting[kind] = _may_hold(kind)
        if interesting[kind] and hasattr(one, "__dict__"):
            attributes.add(id(one.__dict__))
            owner = f"{kind.__module__}.{kind.__qualname__}"
            yield from ((name, value, owner) for name, value in _held(one.__dict__))
    for values in named:
        # The attributes of an object are its own, not the program's.
        if id(values) not in attributes:
            yield from ((name, value, "dict") for name, value in _held(values) if value is not None and value > 0)


def _may_hold(kind: type) -> bool:
    """Whether objects of a class get a limit at construction, or store arbitrary arguments."""
    code = getattr(getattr(kind, "__init__", None), "__code__", None)
    return issubclass(kind, _OPEN) or (code is not None and not LIMITS.isdisjoint(code.co_varnames))


def _held(values: Any) -> list[tuple[str, int | None]]:
    if not isinstance(values, dict):
        return []
    found = ((name, values[name]) for name in LIMITS & values.keys())
    return [(name, value) for name, value in found if value is None or type(value) is int]
