"""Frames of the probe that warnings do not count.

``warnings.warn(..., stacklevel=2)`` in a function of torch means the line that called it. With a wrapper of the probe in
between it would be the wrapper, and the warning would be shown for a file that is not the user's, and once for all lines
instead of once for each.
"""

from __future__ import annotations

import types
from typing import Any

from ldlm_lint.probe import untraced

# What Python's warnings take for the import system's own frames, and pass over (since 3.3, in C and in Python alike).
_PASSED_OVER = "importlib._bootstrap"
_ours: dict[types.CodeType, types.CodeType] = {}


def uncounted(function: Any) -> Any:
    """The function, a wrapper of the probe's, with code whose frames warnings pass over; anything else as it is."""
    if isinstance(function, types.FunctionType):
        code = function.__code__
        if code not in _ours:
            _ours[code] = code.replace(co_filename=f"<ldlm-lint probe, passed over like {_PASSED_OVER}>")
            untraced.hide(_ours[code])
        function.__code__ = _ours[code]
    return function
