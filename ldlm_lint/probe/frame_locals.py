"""The local values of running functions, read without keeping them alive and without changing them.

Before Python 3.13 ``frame.f_locals`` of a function is a dict that the frame keeps until the function ends: batches and
losses in it would stay in memory although the program has released them. It is also the same dict that ``locals()``
returned to the program, which may be its settings: reading it would update it.
"""

from __future__ import annotations

import inspect
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from types import FrameType

_HAND_OUT = frozenset({"locals", "vars", "f_locals"})


def locals_of(frame: FrameType) -> dict[str, Any] | None:
    """A copy of the local names and their values, of a module its global ones; None if asking might change them."""
    if sys.version_info >= (3, 13) or not frame.f_code.co_flags & inspect.CO_OPTIMIZED:
        return dict(frame.f_locals)
    if not _HAND_OUT.isdisjoint(frame.f_code.co_names):
        return None
    kept = frame.f_locals
    found = dict(kept)
    kept.clear()
    return found
