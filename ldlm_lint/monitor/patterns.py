"""The recognition of events: an expression, the short texts in its lines, and events that are only mentioned."""

from __future__ import annotations

import re
from typing import NamedTuple

from ldlm_lint.monitor.alarms import Level


class Pattern(NamedTuple):
    """How an event is recognised. Of several patterns that match a line the first one counts.

    ``spoken``: the words also occur in prose, so a line that denies, plans or configures the event does not count.
    """

    kind: str
    triggers: tuple[str, ...]
    expression: re.Pattern[str]
    level: Level | None = None
    spoken: bool = False


def pattern(kind: str, triggers: str, expression: str, level: Level | None = None, spoken: bool = False) -> Pattern:
    """A pattern with its triggers in one text, separated by ``|``."""
    return Pattern(kind, tuple(triggers.split("|")), re.compile(expression), level, spoken)


# `if the loss is NaN`, `no NaN gradient detected`, `will stop when ...`, `checks whether ...`, `0 batches skipped due to ...`.
_DENIED = re.compile(
    r"(?i)\b(?:no|not|never|none|without|if|when|whenever|whether|unless|until|once|in case|check(?:s|ing|ed)?|verif\w+|avoid\w*"
    r"|prevent\w*|detect(?:s|ion|or)?|handl\w+|may|might|can|could|will|would|should|must|how|why|whose|example|simulat\w+|test(?:s|ing)?"
    r"|regist\w+|install\w*|enabl\w+|disabl\w+|zero|monitors?|watch(?:es|ing)?(?: for)?)\b"
    r"|(?:^|[\s(])0 (?:batch|step|sample|loss|grad|worker|rank|update|iter|time|job|skipped)"
)
_CLAUSE = re.compile(r"[.!;|](?:\s|$)|\s[-\u2013\u2014]+\s|\bbut\b")
# `NaN loss detected: 0`, `watchdog timed out?`, `hang detected = False`, `... message disabled`.
_SETTING = re.compile(
    r"(?i)\s*(?:[:=]\s*(?:0(?![\d.])|no(?:ne)?\b\W*$|false|off\b|disabled|enabled|on\b|ok\b|true|skip\b|raise\b|warn\b|yes\b)|\?"
    r"|(?:alarm|alert|warning)s? (?:at|above|below|when|if|set|is|on|off)\b|(?:detection|detector|check|handling|handler|guard|policy|callback|message|count|counter|threshold|timeout|limit)s?\b)"
    r"|.{0,24}\b(?:disabled|enabled|installed|registered)\W*$"
)
_CODE = re.compile(
    r"^\s*(?:#|//|[-+*]?\s*(?:raise|print|assert|if|elif|def|return|logger|logging|warnings|except|with|for|while)\b ?[\w.]*\s*\(?f?[\"']"
    r"|(?:raise|assert|if|elif|def|class|return|except|while)\b)|\w\(\s*[frb]?[\"']"
)


def asserted(text: str, start: int, end: int) -> bool:
    """Whether a line states that the event happened: not a denial, a hypothetical case, a setting or code."""
    if _CODE.search(text, 0, max(start, 1)) or _SETTING.match(text, end):
        return False
    cut = 0
    for found in _CLAUSE.finditer(text, 0, start):
        cut = found.end()
    return not _DENIED.search(text, cut, start)
