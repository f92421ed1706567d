"""Numbers in text, and the skeleton: a line without its numbers.

All lines that one print statement wrote have the same skeleton, so the meaning of a line is determined once per
skeleton. Meaning must never depend on a number's value, or a cached meaning could differ from a fresh one.
"""

from __future__ import annotations

import re
from collections.abc import Container, Sequence

MARK = "\x00"

_PLAIN = r"[0-9]+(?:\.[0-9]*)?"
# Commas group digits only outside of lists: `[100,200]`.
_GROUPED = r"(?<![\[(,])[0-9]{1,3}(?:,[0-9]{3})+(?![0-9]|,[0-9])(?:\.[0-9]+)?"
# A comma that groups nothing is a decimal one, `2,5` and `1.234,5`: `values.py` decides.
_COMMA = r"(?<![\[(,])(?:[0-9]{1,3}(?:\.[0-9]{3})+|[0-9]+),[0-9]+(?![0-9.]|,[0-9])"
_EXPONENT = r"(?:[eE][-+]?[0-9]+)?"
# "number of nan iterations: 0" holds one number.
_WORDS = r"(?<! of )(?:[nN][aA][nN]|[iI][nN][fF](?:inity)?)(?![\w/])"
# A sign and a digit count only at the start of a word: `layer_3`, `H100` and `2025-05-27` contain no negative numbers,
# and `Acc@1`, `top-5` and `mAP50-95` are names. Blanks before a number are padding and belong to it.
_START = r"(?:(?<! ) +|(?<![\w.@])(?<![tT]op-)(?<!50-)|(?<=[0-9]T))"
_NUMBER = re.compile(rf"({_START}[-+]?(?:(?:{_GROUPED}|{_COMMA}|{_PLAIN}|\.[0-9]+){_EXPONENT}|{_WORDS}))")
# The same number after a known text; the plain one first, as it is the usual one.
_LOCKED = rf"[-+]?(?:(?:{_PLAIN}|{_GROUPED}|\.[0-9]+){_EXPONENT}|{_WORDS})"
# A needed number is a word of its characters: three times as fast, and `float` rejects others.
_LOOSE = rf"(?:[-+0-9.eEnNaAiIfF]+|[-+]?{_GROUPED}{_EXPONENT})"
_DIGITS = rf"(?:[-+0-9.eE]+|[-+]?{_GROUPED}{_EXPONENT})"
_SECONDS = r"[0-9]+(?:\.[0-9]+|,[0-9]{3}(?![0-9,.]))?"
# The bar of a progress bar is drawn again each time.
_BAR = r"%\|[^|\[]*\|"
_BARS = re.compile(rf"{_BAR}|[━╸╺╌─][━╸╺╌─ ]*|\[[=>.]{{8,}}\]")

_GAPS = re.compile(r"\s{40,}")
_LONG = 1000
_DRAWN = {"%": "%||", "[": "[=]"}

split = _NUMBER.split
search = _NUMBER.search


def without_bars(text: str) -> str:
    """The line with its progress bars drawn empty, and no gap that patterns would search from each of its blanks."""
    if "%|" in text or "━" in text or "[=" in text or "[>." in text or "[..." in text:
        text = _BARS.sub(lambda found: _DRAWN.get(found[0][0], "━"), text)
    return _GAPS.sub("    ", text) if len(text) > _LONG else text


def locked(texts: Sequence[str], wanted: Container[int], clock: Sequence[int] = ()) -> re.Pattern[str]:
    """A pattern that matches lines of one skeleton, with the numbers at ``wanted`` as its groups.

    A line is of this skeleton if it matches and `values.py` accepts each group, else of another one. ``texts`` are the
    pieces between the numbers, as `split` gives them for a line without bars; ``clock`` are the numbers of a date and
    time, which are not read as values: all but the last are one group, the last is one.
    """
    made = [_literal(texts[0])]
    for index, text in enumerate(texts[1:]):
        before = texts[index]
        glued = not before if index else False
        blanks = " +" if glued or (before and (before[-1].isalnum() or before[-1] in "_.")) else " *"
        if before.endswith("T") and texts[index - 1 : index]:
            blanks = " *"
        pattern = _LOOSE
        if index in clock:
            pattern = _SECONDS if index == clock[-1] else "[0-9]+"
        elif index not in wanted or before.endswith(" of"):
            pattern = _LOCKED
        elif text[:1] == "/" or text[:1].isalnum() or text[:1] == "_":  # `nanms` is not a number
            pattern = _DIGITS
        grouped = index in wanted and (index not in clock or index == clock[-1])
        made.append(f"{'(' if clock and index == clock[0] else ''}{blanks}{f'({pattern})' if grouped else pattern}")
        made.append(f"{')' if len(clock) > 1 and index == clock[-2] else ''}{_literal(text)}")
    return re.compile("".join(made))


def _literal(text: str) -> str:
    if text == ",":
        # Without a blank after it, it may be a decimal comma.
        return ",(?= )"
    made = re.escape(text).replace(re.escape("%||"), _BAR).replace("━", "[━╸╺╌─][━╸╺╌─ ]*")
    return made.replace(re.escape("[=]"), r"\[[=>.]{8,}\]")
