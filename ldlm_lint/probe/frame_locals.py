"""The local values of running functions, read without keeping any of them alive.

Before Python 3.13 ``frame.f_locals`` of a function is a dict that the frame keeps until the function ends: the batches
and losses that were in it would stay in memory although the program has let go of them.
"""

from __future__ import annotations

import inspect
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from types import FrameType

# The frame's, the name's here, and the one that asks.
_OWN_REFERENCES = 3


def locals_of(frame: FrameType) -> dict[str, Any]:
    """A copy of the local names and their values; of a module its global ones."""
    kept = frame.f_locals
    found = dict(kept)
    snapshot = sys.version_info < (3, 13) and frame.f_code.co_flags & inspect.CO_OPTIMIZED
    # A program that called locals() has this very dict.
    if snapshot and sys.getrefcount(kept) <= _OWN_REFERENCES:
        kept.clear()
    return found
