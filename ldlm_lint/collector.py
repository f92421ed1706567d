"""The pace of Python's collector while files are linted."""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Iterator, Mapping

# Syntax trees are many small objects that point at each other, taken apart when they are done with: the collector finds
# next to nothing, and at its own pace costs a third of a run.
PACE = (500_000, 20, 50)
_FULL = 2
# Each full collection of Python 3.12 sets some 400 objects aside that never go; a program that does so for itself has many more.
_OF_PYTHON = 1_000


@contextlib.contextmanager
def at_our_pace() -> Iterator[None]:
    """Let the collector go slowly for a while, in a process whose pace is for others to say."""
    usual = gc.get_threshold()
    gc.set_threshold(*PACE)
    try:
        yield
    finally:
        gc.set_threshold(*usual)


class Settled:
    """What has outlived a full collection of a run is set aside until its end, and not gone over by the next ones.

    pylint keeps its trees and what it has inferred from them, millions of objects, until its last file: going over all of
    them again and again is a fifth of its time. What comes and goes is collected as usual, and in the end everything is.
    A run that was cut short is ended by the next one of the process.
    """

    def __init__(self) -> None:
        self._begun = False

    def begin(self) -> None:
        """Set aside what there is, and from now on what full collections leave; nothing where others have done so."""
        if not self._begun and _set_aside in gc.callbacks:
            _hand_back()
        if not self._begun and gc.get_freeze_count() < _OF_PYTHON:
            self._begun = True
            gc.freeze()
            gc.callbacks.append(_set_aside)

    def end(self) -> None:
        """Hand everything back to the collector."""
        if self._begun:
            self._begun = False
            _hand_back()


def _hand_back() -> None:
    with contextlib.suppress(ValueError):
        gc.callbacks.remove(_set_aside)
    gc.unfreeze()


def _set_aside(phase: str, info: Mapping[str, int]) -> None:
    if phase == "stop" and info["generation"] == _FULL:
        gc.freeze()
