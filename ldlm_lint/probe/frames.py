"""Hides frames of the probe from warnings.

``warnings.warn(..., stacklevel=2)`` in a function of torch refers to the calling line. With a wrapper of the probe in
between it would refer to the wrapper: the warning would show a file that is not the user's, and only once instead of
once per line.
"""

from __future__ import annotations

import sys
import types
from collections.abc import Callable
from typing import Any

from ldlm_lint.probe import untraced
from ldlm_lint.probe.sites import STAND_IN, is_own

# The frames that Python's warnings treat as the import system's and skip (since 3.3, in C and in Python alike).
_PASSED_OVER = "importlib._bootstrap"
_ours: dict[types.CodeType, types.CodeType] = {}


def uncounted(function: Any) -> Any:
    """The function, a wrapper of the probe's, with code whose frames warnings skip; anything else unchanged."""
    if isinstance(function, types.FunctionType):
        code = function.__code__
        if code not in _ours:
            _ours[code] = code.replace(co_filename=f"<ldlm-lint probe, skipped like {_PASSED_OVER}>")
            untraced.hide(_ours[code])
        function.__code__ = _ours[code]
    return function


def in_the_callers_name(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of C's, to be called by a wrapper: its warnings refer to the running line, which must be the line that
    called the wrapper. A Python function has its own frame and is returned unchanged."""
    if isinstance(function, types.FunctionType):
        return function

    def call(*arguments: Any, **options: Any) -> Any:
        frame = sys._getframe(1)
        while frame.f_back is not None and _is_probes(frame.f_code.co_filename):
            frame = frame.f_back
        code = _CALL.replace(co_filename=frame.f_code.co_filename, co_firstlineno=frame.f_lineno or 1, co_name=STAND_IN)
        return types.FunctionType(code, frame.f_globals)(function, arguments, options)

    return uncounted(call)


def _is_probes(path: str) -> bool:
    return is_own(path) or _PASSED_OVER in path


_CALL = (lambda function, arguments, options: function(*arguments, **options)).__code__
