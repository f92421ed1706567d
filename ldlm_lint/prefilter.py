"""Which rules a file could break at all, by the bytes it holds: most files of a repository need no tree.

A rule's triggers, requirements and silencers are necessary conditions, so that leaving a checker out can lose no
finding; they are read off the rules and written nowhere else. What the shape of a Python file says beyond its words
is asked in `ldlm_lint.shapes`.
"""

from __future__ import annotations

import functools
import re

from ldlm_lint.model import Rule
from ldlm_lint.python.skim import without_comments
from ldlm_lint.rules import ALL
from ldlm_lint.source import Kind

_RUN = re.compile(rb"\w+")


class _Words:
    """Which of many words a text holds, each looked for once.

    A text repeats its words some five times, so what is made of letters alone is looked for in the set of them, and the
    letters of any other word first.
    """

    def __init__(self, text: bytes) -> None:
        self._text = text
        self._runs = b"\n".join(set(_RUN.findall(text)))
        self._known: dict[bytes, bool] = {}

    def __contains__(self, word: bytes) -> bool:
        known = self._known.get(word)
        if known is None:
            plain, core = _core(word)
            known = self._known[word] = core in self._runs and (plain or word in self._text)
        return known


@functools.cache
def _core(word: bytes) -> tuple[bool, bytes]:
    """Whether a word is one run of letters, digits and underscores, and the longest such run in it."""
    runs = _RUN.findall(word)
    return runs == [word], max(runs, key=len, default=b"")


def rules_at_risk(data: bytes, kind: Kind) -> frozenset[str]:
    """The symbols of the rules that a file with these bytes may break; empty for most files."""
    words = _Words(without_comments(data) if kind is Kind.PYTHON else data)
    return frozenset(rule.symbol for rule, groups, silencers in _conditions(kind) if _may_break(words, groups, silencers))


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
def _conditions(kind: Kind) -> tuple[tuple[Rule, tuple[tuple[bytes, ...], ...], tuple[bytes, ...]], ...]:
    """The rules about files of a kind, with the groups of words of which a file must hold one each, and their silencers."""
    found = []
    for rule in ALL:
        if kind.artefact in rule.reads:
            groups, silencers = (rule.triggers, *rule.requires), rule.silencers
            if rule.setting_triggers and kind is not Kind.PYTHON:
                groups, silencers = (rule.setting_triggers,), ()
            if any(groups[0]):
                found.append((rule, groups, silencers))
    return tuple(found)
