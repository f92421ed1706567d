"""Which of many short texts a text contains, found by its words: ordinary text is looked at once for all of them.

A text that contains "Connection reset" has a word with "onnection" in it. What a word can contain is determined once, and
logs repeat their words, also where no line is like another.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Set
from types import MappingProxyType
from typing import NamedTuple

# More words than logs have; ids and hashes are new in each line.
_MOST = 1 << 17
_LETTERS = bytes(code if chr(code).isalpha() and code < 128 else 32 for code in range(256))
_RUNS = re.compile("[A-Za-z]+")


def words_of(text: str) -> set[bytes]:
    """The runs of letters in a text.

    >>> sorted(words_of("[rank0]: lossScale=2.5e3"))
    [b'e', b'lossScale', b'rank']
    """
    return set(text.encode("utf-8", "replace").translate(_LETTERS).split())


class _Stem(NamedTuple):
    """The word of a trigger that stands for it: whether it begins and ends a word of the text."""

    text: str
    run: str
    begins: bool
    ends: bool
    any_case: bool

    def tells(self, word: str, small: str) -> bool:
        """Whether a word (also given in lower case) can be of a text with the trigger."""
        word = small if self.any_case else word
        if self.begins:
            return word == self.run if self.ends else word.startswith(self.run)
        return word.endswith(self.run) if self.ends else self.run in word


class Triggers:
    """Short texts to look for; those without letters are looked for in any case.

    ``ordinary`` are words that many lines contain, so that a rarer word of a trigger stands for it; ``any_case`` are texts
    in lower case that are also found in capitals, each with whether it begins and whether it ends a word of the text.
    """

    def __init__(
        self,
        texts: Iterable[str],
        ordinary: Set[str] = frozenset(),
        any_case: Mapping[str, tuple[bool, bool]] = MappingProxyType({}),
    ) -> None:
        self.any_case = any_case
        self._stems: dict[str, list[_Stem]] = {}
        self._always: list[str] = []
        # The words of a trigger that are whole words in a text that contains it.
        self._whole: dict[str, set[bytes]] = {}
        for text in dict.fromkeys((*texts, *self.any_case)):
            any_one = text in self.any_case
            runs = list(_RUNS.finditer(text))
            if runs:
                run = max(runs, key=lambda run: (run[0].lower() not in ordinary, len(run[0])))
                begins, ends = any_case.get(text, (False, False))
                stem = _Stem(text, run[0], begins or run.start() > 0, ends or run.end() < len(text), any_one)
                self._stems.setdefault(run[0].lower(), []).append(stem)
            else:
                self._always.append(text)
            whole = {run[0].encode() for run in runs if run.start() > 0 and run.end() < len(text)}
            self._whole[text] = set() if any_one else whole
        # The words that contain a stem, with its triggers; those that contain none.
        self._telling: dict[bytes, tuple[str, ...]] = {}
        self._silent: set[bytes] = set()

    def candidates(self, words: Set[bytes]) -> set[str]:
        """The triggers that a text with these words may contain; one of letters alone it does contain."""
        known = words - self._silent
        found = set(self._always)
        if new := known - self._telling.keys():
            self._learn(new)
        for word in known:
            found.update(self._telling.get(word, ()))
        return {one for one in found if self._whole[one] <= words}

    def _learn(self, words: Collection[bytes]) -> None:
        if len(self._silent) + len(self._telling) >= _MOST:
            self._silent.clear()
            self._telling.clear()
        text = b"\n".join(words).decode().lower()
        stems = [stem for stem in self._stems if stem in text]
        for word in words:
            spelled = word.decode()
            small = spelled.lower()
            triggers = [one.text for stem in stems if stem in small for one in self._stems[stem] if one.tells(spelled, small)]
            if triggers:
                self._telling[word] = tuple(triggers)
            else:
                self._silent.add(word)

    def among(self, text: str, words: Set[bytes], lower: str = "") -> list[str]:
        """The triggers that a text contains; ``words`` are `words_of` it, ``lower`` is the text in lower case."""
        lower = lower or (text.lower() if self.any_case else "")
        found = self.candidates(words)
        return [one for one in found if _is_word(one) or _contains(lower if one in self.any_case else text, one)]


def _is_word(text: str) -> bool:
    return text.isalpha() and text.isascii()


def _contains(text: str, part: str) -> bool:
    # That a character is missing is found much faster.
    return part[0] in text and part in text
