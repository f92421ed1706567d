"""Whether a program keeps track of its checkpoints: it lists their folder repeatedly, stores their names, or asks for
others of the same series (``if os.path.exists(f"{step - 20}.pt")``).

Such a program may remove the oldest once there are more than a number known only to it.
"""

from __future__ import annotations

import gc
import itertools
import os
import re
import sys
from collections import deque
from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING, Any

from ldlm_lint.probe.sites import is_project

if TYPE_CHECKING:
    from types import FrameType

LISTINGS = ("os.listdir", "os.scandir")
LISTS, HOLDS, ASKS = "lists their folder repeatedly", "keeps their names", "asks for other checkpoints of this series"
# A program that looks for the newest file at its start does so once.
FEWEST_STEPS = 2
# How many checkpoints there are when all objects are looked through for their names.
_LOOKS = frozenset({3, 6, 12, 24})
_LONGEST = 1000
# The name of a checkpoint twenty steps earlier may have a negative number.
_NUMBER = re.compile(r"-*\d+")


class Tracking:
    """Gathers ``words`` on how the program keeps track of its checkpoints."""

    def __init__(self) -> None:
        self._steps: set[int] = set()
        self._holds = False
        self._counts: dict[tuple[str, int] | None, int] = {}
        self._series: set[str] = set()
        # Names that did not exist when the program asked for them, with the step.
        self._asked: dict[str, int] = {}

    def saved(self, path: str) -> None:
        """A checkpoint was saved under a name: asking for it meant this save."""
        self._asked.pop(path, None)
        folder = os.path.dirname(path)
        # Also the folders of checkpoints of several files, if they are numbered.
        for name in (path, folder, os.path.dirname(folder)):
            if (series := _NUMBER.sub("#", name)) != name:
                self._series.add(series)

    def asked(self, root: str, path: str, step: int) -> None:
        """The program asks for a name that does not exist, or wants to remove it."""
        if len(self._asked) < _LONGEST and _NUMBER.sub("#", path) in self._series and _is_own(root):
            self._asked.setdefault(path, step)

    def listed(self, root: str, path: Any, step: int, saved: Iterator[str]) -> None:
        """A folder is listed; only by the program's own code."""
        if not isinstance(path, (str, bytes, os.PathLike)) or step in self._steps:
            return
        folder = os.path.abspath(os.fsdecode(path))
        near = any(folder in (above := os.path.dirname(one), os.path.dirname(above)) for one in saved)
        if near and _is_own(root):
            self._steps.add(step)

    def saving(self, place: tuple[str, int] | None, known: Collection[str]) -> None:
        """Another checkpoint is saved at a place; ``known`` are the earlier paths."""
        count = self._counts[place] = self._counts.get(place, 0) + 1
        if not self._holds and count in _LOOKS:
            self._holds = _is_held(known)

    @property
    def words(self) -> list[str]:
        """How the program keeps track, as text."""
        asks = len(set(self._asked.values())) >= FEWEST_STEPS
        found = {LISTS: len(self._steps) >= FEWEST_STEPS, HOLDS: self._holds, ASKS: asks}
        return [words for words, is_so in found.items() if is_so]


def _is_own(root: str) -> bool:
    """Whether the project's code, with only the standard library in between, is running; imports do not count."""
    frame: FrameType | None = sys._getframe(3)
    while frame is not None:
        path = frame.f_code.co_filename
        if is_project(path, root):
            return True
        package = str(frame.f_globals.get("__name__", "")).partition(".")[0]
        if path.startswith("<frozen importlib") or package not in (*sys.stdlib_module_names, "ldlm_lint"):
            return False
        frame = frame.f_back
    return False


def _is_held(known: Collection[str]) -> bool:
    """Whether two of the paths are in one list, queue or dictionary, alone or with a score."""
    names = {os.path.basename(one) for one in known} | {os.path.basename(os.path.dirname(one)) for one in known}
    for one in gc.get_objects():
        if type(one) in (list, deque, dict) and 2 <= len(one) <= _LONGEST:
            first, *others = itertools.islice(one, 3)
            if _names(first, names) and any(_names(other, names) for other in others):
                return True
    return False


def _names(value: Any, names: Collection[str]) -> bool:
    if type(value) is tuple:
        return any(_names(one, names) for one in value[:3] if type(one) is not tuple)
    if isinstance(value, os.PathLike):
        value = os.fspath(value)
    return type(value) is str and value.rstrip("/").rpartition("/")[2] in names
