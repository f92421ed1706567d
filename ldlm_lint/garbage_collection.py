"""The pace of Python's garbage collector while files are linted."""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Iterator, Mapping

# Syntax trees are many small objects that point at each other, released when they are no longer needed: the collector
# finds almost nothing, and at its default pace takes a third of a run.
PACE = (500_000, 20, 50)
_FULL = 2
# Each full collection of Python 3.12 sets some 400 objects aside that never go; a program that does so for itself has many more.
_OF_PYTHON = 1_000


@contextlib.contextmanager
def at_our_pace() -> Iterator[None]:
    """Slow the garbage collector down for a while, in a process whose settings belong to others."""
    usual = gc.get_threshold()
    gc.set_threshold(*PACE)
    try:
        yield
    finally:
        gc.set_threshold(*usual)


def set_aside() -> None:
    """Freeze all objects of now, in a process whose garbage collector runs at our pace: a linked program has no cycles, and one
    scan of it takes as long as a tenth of linking it. `bring_back` ends that.
    """
    if gc.get_threshold() == PACE and gc.get_freeze_count() < _OF_PYTHON:
        gc.freeze()


def bring_back() -> None:
    """Hand what `set_aside` froze back to the collector; what a run of pylint has frozen stays so until its end."""
    if gc.get_threshold() == PACE and _set_aside not in gc.callbacks:
        gc.unfreeze()


class Settled:
    """Objects that survived a full collection of a run are frozen until its end, so that later collections skip them.

    pylint keeps its trees and its inferred values, millions of objects, until its last file: scanning all of them
    repeatedly takes a fifth of its time. Short-lived objects are collected as usual, and all others at the end. If a
    run was aborted, the next one of the process ends it.
    """

    def __init__(self) -> None:
        self._begun = False

    def begin(self) -> None:
        """Freeze the existing objects, and from now on those that survive full collections; no effect if other code has
        done so.
        """
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
