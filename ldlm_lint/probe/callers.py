"""The originator of a call, found on the stack from the call outwards.

The probe's own frames are skipped. Code below an optimizer's step does not always belong to the optimizer: a closure
belongs to the program, and under a Trainer the closure is the whole training step.
"""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ldlm_lint.probe.frames import uncounted
from ldlm_lint.probe.sites import STAND_IN, call_site, is_own, is_project

if TYPE_CHECKING:
    from types import CodeType, FrameType

PROGRAM, OPTIMIZER, LOADER, FRAMEWORK = "program", "optimizer", "loader", "framework"
_LOADERS = ("torch/utils/data/dataloader.py", "torch/utils/data/_utils/fetch.py")
# Every optimizer's step runs inside of a wrapper in this file, for any optimizer.
_STEPS = "torch/optim/optimizer.py"
# torch.no_grad() around a step, as most optimizers have it.
_DECORATOR = "torch/utils/_contextlib.py"


class Callers:
    """Finds the originator of the running call; the watcher calls `stepping` and `stepped`."""

    def __init__(self) -> None:
        self._closure: CodeType | None = None
        self._step_site: dict[str, Any] | None = None

    def stepping(self, closure: Callable[..., Any] | None) -> None:
        """An optimizer is about to step, with its closure."""
        self._closure = _code_of(closure)

    def stepped(self, root: str) -> None:
        """The anchor has stepped: the current line of the project caused it."""
        self._step_site = call_site(root)

    def of(self, root: str, site: dict[str, Any] | None) -> str:
        """The originator of the watched call; ``site`` is the calling line of the project.

        ``optimizer``: an optimizer's own, torch's or the project's; ``loader``: of code that prepares batches;
        ``framework``: a Trainer's, which the project calls once for all steps; else ``program``.
        """
        frame: FrameType | None = sys._getframe(1)
        project = closure = False
        innermost = below = ""
        while frame is not None:
            path = frame.f_code.co_filename
            where = _kind(path)
            if where in (LOADER, OPTIMIZER) and not is_project(path, root):
                if where == LOADER:
                    return LOADER
                # The innermost frame of the step itself is the optimizer's: all that the project's one calls is its own.
                own = is_project(below, root) and not closure
                return PROGRAM if project and not own else OPTIMIZER
            if where != "probe" and frame.f_code.co_name != STAND_IN:
                closure = closure or frame.f_code is self._closure
                project = project or is_project(path, root)
                innermost = innermost or ("" if where == "torch" else path)
                below = below if where == "decorator" else path
            frame = frame.f_back
        foreign = bool(innermost) and not is_project(innermost, root)
        return FRAMEWORK if foreign and site is not None and site == self._step_site else PROGRAM


def closure_of(arguments: tuple[Any, ...], options: dict[str, Any]) -> Callable[..., Any] | None:
    """The closure among the arguments of an optimizer's ``step``, the first of which is the optimizer."""
    found = options.get("closure", arguments[1] if len(arguments) > 1 else None)
    return found if callable(found) else None


@functools.cache
def _kind(path: str) -> str:
    plain = path.replace(os.sep, "/")
    if path.startswith("<") or is_own(path):
        return "probe"
    if plain.endswith(_LOADERS):
        return LOADER
    if plain.endswith(_STEPS):
        return OPTIMIZER
    if plain.endswith(_DECORATOR):
        return "decorator"
    return "torch" if "/torch/" in plain else ""


def _code_of(closure: Callable[..., Any] | None) -> CodeType | None:
    while isinstance(closure, functools.partial):
        closure = closure.func
    if closure is None:
        return None
    found: CodeType | None = getattr(closure, "__code__", None)
    return found if found is not None else getattr(type(closure).__call__, "__code__", None)


def with_closure(
    arguments: tuple[Any, ...], options: dict[str, Any], closure: Callable[..., Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments of an optimizer's ``step`` with another closure."""
    if "closure" in options:
        return arguments, {**options, "closure": closure}
    return (arguments[0], closure, *arguments[2:]), options


def then(closure: Callable[..., Any], work: Callable[[], None]) -> Callable[..., Any]:
    """The closure, with ``work`` done once after it has ended for the first time."""
    waiting = [work]

    def closed(*arguments: Any, **options: Any) -> Any:
        result = closure(*arguments, **options)
        if waiting:
            waiting.pop()()
        return result

    return uncounted(closed)
