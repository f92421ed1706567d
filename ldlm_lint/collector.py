"""The pace of Python's collector while files are linted."""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Iterator

# Syntax trees are many small objects that point at each other, taken apart when they are done with: the collector finds
# next to nothing, and at its own pace costs a third of a run.
PACE = (500_000, 20, 50)


@contextlib.contextmanager
def at_our_pace() -> Iterator[None]:
    """Let the collector go slowly for a while, in a process whose pace is for others to say."""
    usual = gc.get_threshold()
    gc.set_threshold(*PACE)
    try:
        yield
    finally:
        gc.set_threshold(*usual)
