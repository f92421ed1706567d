"""The probe's own code is none of dynamo's business: neither its frames nor what they call are traced when they run.

A frame of the probe that a compiled function calls outside of its graphs would be compiled like the user's. It must still
be inlined where a trace meets it, and ends there at once (`ldlm_lint.probe.patches`), so it is not "disabled".
"""

from __future__ import annotations

import sys
import types
from collections.abc import Callable, Iterator
from typing import Any

_PACKAGE = __name__.partition(".")[0]
_hidden: set[types.CodeType] = set()
# Code that is no module's: made while the program runs.
_made: set[types.CodeType] = set()
_skip: Callable[[types.CodeType], None] | None = None


def hide_frames(torch: Any) -> None:
    """Have dynamo leave alone the frames of all of the probe's functions that are loaded; once for each."""
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
    """Have dynamo leave frames of a code object alone that was made at run time, now or when frames are hidden."""
    _made.add(code)
    if _skip is not None and code not in _hidden:
        _hidden.add(code)
        _skip(code)


def _skipping(torch: Any) -> Callable[[types.CodeType], None] | None:
    """What makes dynamo leave a code object alone: a function of its own up to torch 2.6, a strategy since."""
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
    """A hook on optimizers that dynamo calls instead of inlining it: a program that compiles its whole step has steps, too.

    Around an optimizer's step a compiled function breaks its graph anyway. What `torch.compiler.disable` would do, without
    the import.
    """
    function._torchdynamo_disable = True  # type: ignore[attr-defined]
    return function


def frame_evaluation(torch: Any) -> Callable[[Any], Any]:
    """The function that sets dynamo's hook on frames and returns the one before; one that does nothing where there is none."""
    frames = getattr(getattr(torch._C, "_dynamo", None), "eval_frame", None)
    return getattr(frames, "set_eval_frame", None) or (lambda callback: None)
