"""Decides from the bytes of a file which rules it could break at all: most files of a repository need no syntax tree.

A rule's triggers, requirements and silencers are necessary conditions, so that skipping a checker can lose no finding;
they are read from the rules and declared nowhere else.
"""

from __future__ import annotations

import functools
from collections import defaultdict
from collections.abc import Iterable
from typing import NamedTuple

from ldlm_lint.patterns import lazily
from ldlm_lint.python.skim import without_comments
from ldlm_lint.rules import ALL
from ldlm_lint.source import Kind

_RUN = lazily(rb"\w+")
_BLANKED = bytes(one if _RUN.fullmatch(bytes((one,))) else 0x20 for one in range(256))


class _Condition(NamedTuple):
    """A file must contain one word of each group, and none of the silencers; ``cores`` are the groups as bits of
    `_Cores`."""

    symbol: str
    groups: tuple[tuple[bytes, ...], ...]
    silencers: tuple[bytes, ...]
    cores: tuple[int, ...]


class _Cores:
    """The longest runs of letters in words, each with a bit: a text with a word also has its core.

    A core is searched only if the cores inside it were found: without ``NCCL_`` no name that contains it can occur.
    """

    def __init__(self, words: Iterable[bytes]) -> None:
        cores = sorted({_core(word)[1] for word in words} - {b""}, key=lambda one: (len(one), one))
        self._bits = {core: 2 << number for number, core in enumerate(cores)}
        self._tree: dict[bytes, list[bytes]] = defaultdict(list)
        for core in cores:
            within = next((one for one in self._tree if one in core), core)
            self._tree[within] += [core] if within != core else []

    def mask(self, words: Iterable[bytes]) -> int:
        """The bits of the cores of some words; a core without letters is in every text."""
        return functools.reduce(int.__or__, (self._bits.get(_core(word)[1], 1) for word in words), 0)

    def of(self, runs: bytes) -> int:
        """The bits of the cores that a text holds."""
        bits, found = self._bits, 1
        for core, longer in self._tree.items():
            if core in runs:
                found |= bits[core]
                for one in longer:
                    if one in runs:
                        found |= bits[one]
        return found


class _Words:
    """Which of many words a text contains; each is searched once.

    A text repeats each word about five times, so words of letters alone are looked up in the set of its words; for
    other words, their letters are looked up first.
    """

    def __init__(self, text: bytes) -> None:
        self._text = text
        self.runs = b" ".join(set(text.translate(_BLANKED).split()))
        self._known: dict[bytes, bool] = {}

    def __contains__(self, word: bytes) -> bool:
        known = self._known.get(word)
        if known is None:
            plain, core = _core(word)
            known = self._known[word] = core in self.runs and (plain or word in self._text)
        return known


@functools.cache
def _core(word: bytes) -> tuple[bool, bytes]:
    """Whether a word is one run of letters, digits and underscores, and the longest such run in it."""
    runs = _RUN.findall(word)
    return runs == [word], max(runs, key=len, default=b"")


def rules_at_risk(data: bytes, kind: Kind) -> frozenset[str]:
    """The symbols of the rules that a file with these bytes may break; empty for most files."""
    words = _Words(without_comments(data) if kind is Kind.PYTHON else data)
    cores, conditions = _conditions(kind)
    found = cores.of(words.runs)
    return frozenset(
        one.symbol for one in conditions if all(found & mask for mask in one.cores) and _may_break(words, one.groups, one.silencers)
    )


def _may_break(words: _Words, groups: tuple[tuple[bytes, ...], ...], silencers: tuple[bytes, ...]) -> bool:
    """Whether a word of each group is there, and no silencer."""
    for group in groups:
        for word in group:
            if word in words:
                break
        else:
            return False
    return not any(word in words for word in silencers)


@functools.cache
def _conditions(kind: Kind) -> tuple[_Cores, tuple[_Condition, ...]]:
    """The conditions of the rules about files of a kind, and the cores of the words that they need."""
    needs = []
    for rule in ALL:
        if kind.artefact in rule.reads:
            groups, silencers = (rule.triggers, *rule.requires), rule.silencers
            if rule.setting_triggers and kind is not Kind.PYTHON:
                groups, silencers = (rule.setting_triggers,), ()
            if any(groups[0]):
                needs.append((rule.symbol, groups, silencers))
    cores = _Cores(word for _, groups, _ in needs for group in groups for word in group)
    return cores, tuple(_Condition(*one, tuple(map(cores.mask, one[1]))) for one in needs)
