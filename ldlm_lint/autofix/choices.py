"""What the author wrote out on purpose is not reversed: a fix that does is shown, and never applied.

A fix may add an option that is missing or correct an amount. It must not turn ``persistent_workers=False`` into ``True``
or drop ``set_to_none=False``: the code rarely shows everything the author knew. `Rule.overrides` says for a rule why
its value cannot have been meant, because it raises or nothing reads it; every such rule has a demonstration or a source.
A run of the probe that allows a fix is a demonstration, too.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from ldlm_lint.model import Applicability, Edit, Finding, Fix
from ldlm_lint.patterns import lazily
from ldlm_lint.rules import by_symbol

if TYPE_CHECKING:
    from ldlm_lint.source import Source

# The edits of Python, scripts and configurations are texts: what follows the last sign or option is the value.
_VALUE = lazily(r"^(?:.*(?:(?<![<>!=])=|[:(,]-?|--[\w-]+(?=[ \t]))[ \t]*)?[\"']?(true|false|yes|no|on|off|none|null|~|-?\d+)[\"'\s),;]*$", re.I)
_COMMENT = lazily(r"[ \t]+#.*$")
_OFF = frozenset({"false", "no", "off", "0"})
_ON = frozenset({"true", "yes", "on", "1"})
_UNLIMITED = frozenset({"none", "null", "~", "-1"})


def respecting_choices(findings: Iterable[Finding], sources: Mapping[str, Source]) -> list[Finding]:
    """The findings; a fix that reverses what the author wrote is only shown."""
    return [finding._replace(fix=_respectful(finding, sources)) if finding.fix else finding for finding in findings]


def _respectful(finding: Finding, sources: Mapping[str, Source]) -> Fix | None:
    fix = finding.fix
    is_shown = finding.evidence is not None and finding.evidence.was_seen and finding.evidence.lifting is not None
    if fix is None or fix.applicability is Applicability.DISPLAY or by_symbol[finding.rule].overrides or is_shown:
        return fix
    reversed_value = next((old for edit in fix.edits if (old := reversed_by(edit, fix.edits, sources))), "")
    return fix.only_shown(f"`{reversed_value}` was written on purpose") if reversed_value else fix


def reversed_by(edit: Edit, edits: Sequence[Edit], sources: Mapping[str, Source]) -> str:
    """The value that an edit turns into its opposite, or drops together with its option; empty for any other edit."""
    old = sources[edit.span.path].slice(edit.span)
    value = _value(old)
    if not value or any(old.strip() in other.text for other in edits):
        # A statement that is written again elsewhere is moved.
        return ""
    if not edit.text.strip():
        return value if value.lower() in _ON | _OFF else ""
    return value if _are_opposite(value.lower(), _value(edit.text).lower()) else ""


def _value(text: str) -> str:
    """The value at the end of a piece of code or configuration: a switch or a number."""
    found = _VALUE.match(_COMMENT.sub("", text.strip())) if "\n" not in text.strip() else None
    return found[1] if found is not None else ""


def _are_opposite(old: str, new: str) -> bool:
    """On and off, none and some, unlimited and limited."""
    if old in _UNLIMITED or (old in _OFF and new.isdecimal()):
        return new.isdecimal() and int(new) > 0
    return (old in _ON and new in _OFF) or (old in _OFF and new in _ON)
