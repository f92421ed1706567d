"""Hides the probe's own code from dynamo: neither its frames nor their callees are traced when they run.

A frame of the probe that a compiled function calls outside of its graphs would be compiled like the user's. It must
still be inlined when a trace reaches it, and ends there immediately (`ldlm_lint.probe.patches`), so it is not
"disabled".
"""

from __future__ import annotations

import sys
import types
from collections.abc import Callable, Iterator
from typing import Any

_PACKAGE = __name__.partition(".")[0]
_hidden: set[types.CodeType] = set()
# Code outside of modules: created at run time.
_made: set[types.CodeType] = set()
_skip: Callable[[types.CodeType], None] | None = None


def hide_frames(torch: Any) -> None:
    """Make dynamo skip the frames of all loaded functions of the probe; once for each."""
    global _skip
    _skip = _skipping(torch)
    if _skip is None:
        return
    codes = [
        code
        for name, module in list(sys.modules.items())
        if name.partition(".")[0] == _PACKAGE
        for code in _codes(module)
    ]
    for code in (*codes, *_made):
        if code not in _hidden:
            _hidden.add(code)
            _skip(code)


def hide(code: types.CodeType) -> None:
    """Make dynamo skip frames of a code object created at run time, now or when frames are hidden."""
    _made.add(code)
    if _skip is not None and code not in _hidden:
        _hidden.add(code)
        _skip(code)


def _skipping(torch: Any) -> Callable[[types.CodeType], None] | None:
    """The function that makes dynamo skip a code object: a function of its own up to torch 2.6, a strategy since."""
    frames: Any = getattr(getattr(torch._C, "_dynamo", None), "eval_frame", None)
    if hasattr(frames, "skip_code"):
        return frames.skip_code
    names = ("set_code_exec_strategy", "_FrameExecStrategy", "_FrameAction")
    if not all(hasattr(frames, name) for name in names):
        return None
    action = frames._FrameAction
    strategy = frames._FrameExecStrategy(action.SKIP, action.DEFAULT)
    return lambda code: frames.set_code_exec_strategy(code, strategy)


def _codes(module: types.ModuleType) -> Iterator[types.CodeType]:
    for value in list(vars(module).values()):
        members = vars(value).values() if isinstance(value, type) else (value,)
        for member in members:
            function = getattr(member, "__func__", None) or getattr(member, "fget", None) or member
            code = getattr(function, "__code__", None)
            if isinstance(code, types.CodeType):
                yield from _nested(code)


def _nested(code: types.CodeType) -> Iterator[types.CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _nested(constant)


def kept_out(function: Callable[..., Any]) -> Callable[..., Any]:
    """A hook on optimizers that dynamo calls instead of inlining it: a program that compiles its whole step still has
    steps.

    Around an optimizer's step a compiled function breaks its graph anyway. It has the effect of
    `torch.compiler.disable` without the import.
    """
    function._torchdynamo_disable = True  # type: ignore[attr-defined]
    return function


def frame_evaluation(torch: Any) -> Callable[[Any], Any]:
    """The function that sets dynamo's frame hook and returns the previous one; a no-op if dynamo has none."""
    frames = getattr(getattr(torch._C, "_dynamo", None), "eval_frame", None)
    return getattr(frames, "set_eval_frame", None) or (lambda callback: None)
