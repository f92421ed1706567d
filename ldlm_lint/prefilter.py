"""Which rules a file could break at all, by the bytes it holds: most files of a repository need no tree.

A rule's triggers, requirements and silencers are necessary conditions, so that leaving a checker out can lose no
finding; they are read off the rules and written nowhere else.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable

from ldlm_lint.model import Rule
from ldlm_lint.python.skim import without_comments
from ldlm_lint.rules import ALL
from ldlm_lint.source import Kind


def rules_at_risk(data: bytes, kind: Kind) -> frozenset[str]:
    """The symbols of the rules that a file with these bytes may break; empty for most files."""
    code = without_comments(data) if kind is Kind.PYTHON else data
    if not _any_trigger(kind).search(code):
        return frozenset()
    return frozenset(rule.symbol for rule in _rules(kind) if _may_break(rule, code, kind))


def _may_break(rule: Rule, code: bytes, kind: Kind) -> bool:
    """Whether a trigger is there, a word of each required group, and no silencer."""
    if rule.setting_triggers and kind is not Kind.PYTHON:
        return any(word in code for word in rule.setting_triggers)
    groups = (rule.triggers, *rule.requires)
    return all(any(word in code for word in group) for group in groups) and not any(word in code for word in rule.silencers)


@functools.cache
def _rules(kind: Kind) -> tuple[Rule, ...]:
    return tuple(rule for rule in ALL if kind.artefact in rule.reads and any(_triggers(rule, kind)))


@functools.cache
def _any_trigger(kind: Kind) -> re.Pattern[bytes]:
    """One pattern for all rules: a single pass over the bytes rules out most files."""
    return _any_of(trigger for rule in _rules(kind) for trigger in _triggers(rule, kind))


def _triggers(rule: Rule, kind: Kind) -> tuple[bytes, ...]:
    return rule.setting_triggers if rule.setting_triggers and kind is not Kind.PYTHON else rule.triggers


def _any_of(words: Iterable[bytes]) -> re.Pattern[bytes]:
    return re.compile(b"|".join(re.escape(word) for word in sorted(set(words))) or b"(?!)")
