"""The lines of a text that may say something: metrics, events, or pauses. All other lines are not looked at one by one.

Most lines of a log that mixes prints are of no interest, and to look at each of them takes longer than to read the file.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from operator import add

from ldlm_lint.monitor import events
from ldlm_lint.monitor.generic import SCORES, WORTH
from ldlm_lint.monitor.triggers import Triggers, words_of

PAUSES = ("checkpoint", "Checkpoint", "aving", "valuat", "alidat")
"""Parts of words in lines before a pause of the training: a checkpoint, an evaluation."""
# A position alone is no value.
_POSITIONS = ("step", "iter", "epoch")
# Every line that has values contains one of these words (in any case) or is drawn or written as below; `/s` and `/it` also
# begin the names of folders.
_RATE = re.compile(r"/(?:s(?:ec|econds?|amples?|teps?)?|it)(?![a-z])")
_PART, _BEGIN, _END, _WHOLE = (False, False), (True, False), (False, True), (True, True)
_METRICS = {
    **{one: _PART for one in WORTH if one not in ("/s", *_POSITIONS)},
    **dict.fromkeys(("acc", "tps", "ppl", "mfu", "lr", "cost", "skipped", *SCORES), _WHOLE),
    **dict.fromkeys(("time", "norm", "persec"), _END),
    "accuracy": _BEGIN,
}
_DRAWN = ("{'", '{"', "{ ", "%|", "━", "[=", "/?")
# Tables and lists give their meaning to the lines below, and so does a traceback, also in the next chunk.
_OPENS = ("[step=", "GLOBAL_STEP", "PU_mem", "gpu_mem", "Traceback", "ChildFailedError")
_ROWS = ("\n|", "\n |")
_LOOKED_FOR = Triggers((*events.TRIGGERS, *PAUSES, *_DRAWN, *_OPENS), events.ORDINARY | _METRICS.keys(), _METRICS)
_MEASURES = {*_METRICS, *_DRAWN}
# With more lines than this share it is faster to take all.
_MOST = 0.6
# Texts that are then read whole, since they will be like this one.
_RESTS = 7


class Sieve:
    """Finds the lines of a text that may say something."""

    def __init__(self) -> None:
        self._open = False
        self._resting = 0

    def lines(self, text: str, whole: Sequence[str]) -> dict[int, bool] | None:
        """The lines to read, by their indices in order, and the last one: whether each may have values. None for all of
        them. ``whole`` are the lines of the text."""
        if self._resting:
            self._resting -= 1
            return None
        lower = text.lower()
        triggers = set(_LOOKED_FOR.among(text, words_of(text), lower))
        opened, self._open = self._open, not triggers.isdisjoint(_OPENS)
        # A few capital letters have another length in lower case.
        if opened or self._open or len(lower) != len(text) or text.startswith("|") or any(one in text for one in _ROWS):
            return None
        if not triggers and not _RATE.search(lower):
            return {len(whole) - 1: False}
        ends = list(map(add, accumulate(map(len, whole)), range(1, len(whole) + 1)))
        found = {len(whole) - 1: False}
        for index, measures in _found(text, lower, triggers, ends):
            found[index] = measures or found.get(index, False)
        if sum(found.values()) > _MOST * len(whole):
            self._resting = _RESTS
            return None
        return dict(sorted(found.items()))


def _found(text: str, lower: str, triggers: Iterable[str], ends: Sequence[int]) -> Iterator[tuple[int, bool]]:
    """The indices of the lines with a trigger, and whether it may be of a value; ``ends`` are those of all lines, and the
    rest behind them is not a line yet."""
    for trigger in triggers:
        measures = trigger in _MEASURES
        begins, finishes = _METRICS.get(trigger, _PART)
        searched = lower if trigger in _METRICS else text
        at = searched.find(trigger)
        while 0 <= at < ends[-1]:
            after = at + len(trigger)
            if (begins and at and searched[at - 1].isalnum()) or (finishes and searched[after : after + 1].isalpha()):
                at = searched.find(trigger, after)
                continue
            index = bisect_right(ends, at)
            yield index, measures
            at = searched.find(trigger, ends[index])
    for found in _RATE.finditer(lower, 0, ends[-1]):
        yield bisect_right(ends, found.start()), True
