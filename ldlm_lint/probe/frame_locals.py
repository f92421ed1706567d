"""The local values of running functions, read without keeping any of them alive and without changing what is read.

Before Python 3.13 ``frame.f_locals`` of a function is a dict that the frame keeps until the function ends: the batches
and losses that were in it would stay in memory although the program has let go of them. It is also the very dict that
``locals()`` gave the program, which may be its settings: asking for it fills it anew.
"""

from __future__ import annotations

import inspect
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from types import FrameType

_HAND_OUT = frozenset({"locals", "vars", "f_locals"})


def locals_of(frame: FrameType) -> dict[str, Any] | None:
    """A copy of the local names and their values, of a module its global ones; None where asking might change them."""
    if sys.version_info >= (3, 13) or not frame.f_code.co_flags & inspect.CO_OPTIMIZED:
        return dict(frame.f_locals)
    if not _HAND_OUT.isdisjoint(frame.f_code.co_names):
        return None
    kept = frame.f_locals
    found = dict(kept)
    kept.clear()
    return found
