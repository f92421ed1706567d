"""Values of the project outside of running functions: attributes of its objects, names of its modules."""

from __future__ import annotations

import gc
import sys
import types
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ldlm_lint.probe.session import Session
from ldlm_lint.probe.sites import is_project


@dataclass(frozen=True, slots=True)
class Place:
    """A name with its value; ``scope`` is its function or class, in the file ``path``.

    ``line`` is where a function begins, 0 for a class and for a module, whose scope is empty.
    """

    name: str
    value: Any
    path: str
    scope: str
    line: int = 0


def resting(session: Session) -> Iterator[Place]:
    """The attributes of all objects of the project's classes, as ``self.name``, and the globals of its modules.

    It scans every object, so call it once.
    """
    for module in list(sys.modules.values()):
        path = _file_of(module, session.root)
        if path:
            yield from (Place(name, value, path, "") for name, value in list(vars(module).items()))
    paths: dict[type, str] = {}
    for one in gc.get_objects():
        # Not its __class__, which an object may fake.
        kind = type(one)
        if kind not in paths:
            paths[kind] = _defined_in(kind, session.root)
        if paths[kind]:
            for name, value in _attributes(one):
                yield Place(f"self.{name}", value, paths[kind], kind.__name__)


def _defined_in(kind: type, root: str) -> str:
    return _file_of(sys.modules.get(getattr(kind, "__module__", None) or ""), root)


def _file_of(module: Any, root: str) -> str:
    path = vars(module).get("__file__") if isinstance(module, types.ModuleType) else None
    return path if isinstance(path, str) and is_project(path, root) else ""


def _attributes(one: Any) -> list[tuple[str, Any]]:
    try:
        held = object.__getattribute__(one, "__dict__")
    except (AttributeError, TypeError):
        return []
    return [(name, value) for name, value in list(held.items()) if isinstance(name, str)] if type(held) is dict else []
