"""The shell front end's entry point: one script in, its findings out."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from ldlm_lint.model import FileResult
from ldlm_lint.rules.environment_decisions import decide, is_relevant
from ldlm_lint.rules.settings import Setting
from ldlm_lint.shell.removal import ScriptEditor
from ldlm_lint.shell.scanner import scan
from ldlm_lint.shell.script import Assignment, Expansion, Reading, Script
from ldlm_lint.source import Source


def lint(source: Source, options: Mapping[str, object]) -> FileResult:
    """Every finding of the shell rules in a script; ``options`` are the rule options by name."""
    script = scan(source)
    relevant = [one for one in script.assignments if one.exported and is_relevant(one.name)]
    uses = {name: _Uses.of(source, script, name) for name in {one.name for one in relevant}}
    assignments = {_setting(one, uses[one.name]): one for one in relevant}
    findings = sorted(decide(tuple(assignments), options, ScriptEditor(assignments)), key=lambda one: one.order)
    return FileResult(source.path, tuple(findings), unseen=script.unseen)


@dataclass(frozen=True, slots=True)
class _Uses:
    """What a script does with a variable besides setting it."""

    expansions: tuple[Expansion, ...]
    mentioned: bool
    read_by_other_code: bool

    @classmethod
    def of(cls, source: Source, script: Script, name: str) -> _Uses:
        """The uses of one name."""
        expansions = tuple(one for one in script.expansions if one.name == name)
        return cls(expansions, _mentioned(source, script, name), _read_by_other_code(source, name))


def _setting(assignment: Assignment, uses: _Uses) -> Setting:
    outside = [one for one in uses.expansions if not _inside(one, assignment)]
    return Setting(
        name=assignment.name,
        values=assignment.values,
        span=assignment.span,
        expanded=bool(outside) or uses.mentioned,
        used=any(one.reading is Reading.USED for one in outside) or uses.read_by_other_code,
    )


def _inside(expansion: Expansion, assignment: Assignment) -> bool:
    return assignment.span.start <= expansion.span.start and expansion.span.end <= assignment.span.end


def _mentioned(source: Source, script: Script, name: str) -> bool:
    """Whether the name also stands in text that is neither an assignment nor a comment, such as ``printenv NAME``."""
    own = sum(assignment.name == name for assignment in script.assignments)
    code = re.sub(rb"(?:^|(?<=\s))#[^\n]*", b"", source.data)
    return len(re.findall(rb"(?<!\w)" + name.encode() + rb"(?!\w)", code)) > own


def _read_by_other_code(source: Source, name: str) -> bool:
    """Whether a program inside the script (a heredoc, ``python -c``) takes the variable from its environment."""
    return re.search(rb"(?:environ|getenv)\b[^\n]{0,20}" + name.encode() + rb"(?!\w)", source.data) is not None
