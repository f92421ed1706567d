"""Decisions of family 72's environment rules: pure functions over the settings of one file.

The watchdog's settings have one common fix (`environment_watchdog`); every other topic creates drafts
(`environment_view`). All removals of one file are planned together.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from ldlm_lint.model import Applicability, Claim, Confidence, Finding, Fix
from ldlm_lint.patterns import lazily
from ldlm_lint.rules import (
    environment_aliases,
    environment_allocator,
    environment_connections,
    environment_debugging,
    environment_deepspeed,
    environment_error_handling,
    environment_names,
    environment_tuning,
    environment_values,
    environment_watchdog,
)
from ldlm_lint.rules.collectives import COLLECTIVE_LIMIT, COLLECTIVE_MINIMUM
from ldlm_lint.rules.environment import INEFFECTIVE_ENVIRONMENT_VARIABLE
from ldlm_lint.rules.environment_view import Scene, View
from ldlm_lint.rules.settings import Editor, Origin, Removal, Setting
from ldlm_lint.untrusted_numbers import whole

_TOPICS = (
    environment_error_handling,
    environment_aliases,
    environment_values,
    environment_debugging,
    environment_tuning,
    environment_allocator,
    environment_connections,
    environment_deepspeed,
)
# A comment that mentions another unit than seconds.
_OTHER_UNIT = lazily(r"\bmin|\bms\b|milli|hour|\bhrs?\b|\bh\b", re.I)
_NAMES = frozenset(name for topic in (environment_watchdog, *_TOPICS) for name in topic.NAMES)


def is_relevant(name: str) -> bool:
    """Whether any decision is about a variable of this name."""
    return name in _NAMES or environment_names.why_ineffective(name) is not None


def decide(
    settings: Sequence[Setting],
    options: Mapping[str, object],
    editor: Editor | None = None,
    scene: Scene | None = None,
) -> Iterator[Finding]:
    """The findings about the variables that one file sets.

    ``options`` hold the rules' options and ``target-torch``; an ``editor`` plans removals, without one a fix can only
    replace values. ``scene`` has the file's facts about the processes that get the variables.
    """
    view = View(tuple(settings), options, scene or Scene())
    block = environment_watchdog.Block.of(view)
    useless = [(setting, why) for setting in settings if (why := _why_useless(setting))]
    drafts = [draft for topic in _TOPICS for draft in topic.drafts(view)]
    groups = {setting: "block" for setting in block.blocking if not setting.expanded}
    dropped = [one for one, _ in useless if environment_names.misspelling_of(one.name) is None and not one.needed]
    for setting in (*dropped, *(draft.setting for draft in drafts if draft.drops)):
        groups.setdefault(setting, f"{setting.name}:{setting.span.start}")
    removals = editor.removals(groups) if editor is not None else {}
    yield from block.findings(removals)
    for setting, why in useless:
        yield _promising(_asking(_useless(setting, why, removals.get(setting), view), setting), setting, view)
    for draft in drafts:
        yield _asking(draft.finding(removals.get(draft.setting)), draft.setting)


def _asking(finding: Finding, setting: Setting) -> Finding:
    """A finding whose fix is safe judging by its own file, with the claim that other files do not read the variable."""
    if finding.fix is None or finding.fix.applicability is not Applicability.SAFE:
        return finding
    return finding._replace(claims=(*finding.claims, Claim("variable-is-read-nowhere-else", setting.name)))


def _promising(finding: Finding, setting: Setting, view: View) -> Finding:
    """A finding about a timeout in plain seconds, with the claim that no process group uses it."""
    values = setting.values or ()
    length = values[0].text if len(values) == 1 and values[0].origin is Origin.LITERAL else ""
    known = setting.name in environment_names.TIMEOUTS and length.isascii() and length.isdigit()
    if finding.fix is None or not known or setting.place.conditional or setting.expanded:
        return finding
    least, most = (view.options.get(one.name, one.default) for one in (COLLECTIVE_MINIMUM, COLLECTIVE_LIMIT))
    if not isinstance(least, int) or not isinstance(most, int) or not least <= whole(length) <= most:
        return finding
    if _OTHER_UNIT.search(setting.place.remark):
        return finding
    return finding._replace(claims=(*finding.claims, Claim("process-group-takes-timeout", str(int(length)))))


def _why_useless(setting: Setting) -> str | None:
    return None if setting.used else environment_names.why_ineffective(setting.name)


def _useless(setting: Setting, why: str, removal: Removal | None, view: View) -> Finding:
    misspelt = environment_names.misspelling_of(setting.name) is not None
    return Finding(
        INEFFECTIVE_ENVIRONMENT_VARIABLE.symbol,
        INEFFECTIVE_ENVIRONMENT_VARIABLE.code,
        setting.span,
        (("name", setting.name), ("why", why)),
        Confidence.MEDIUM if misspelt else Confidence.HIGH,
        fix=None if removal is None else _removing(setting, removal, view),
        claims=(Claim("environment-variable-unread", setting.name),),
    )


def _removing(setting: Setting, removal: Removal, view: View) -> Fix:
    reason = removal.reason
    if setting.expanded:
        reason = "the file mentions the name in other places too"
    elif view.scene.lists_environment and not reason:
        reason = "the file prints all variables"
    title = f"remove {setting.name}"
    return Fix(title, removal.edits, Applicability.UNSAFE if reason else Applicability.SAFE, reason)
