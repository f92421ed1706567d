"""The variables that a script passes to its processes, as settings."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import replace
from typing import NamedTuple

from ldlm_lint.model import Span
from ldlm_lint.patterns import lazily
from ldlm_lint.rules.environment_decisions import is_relevant
from ldlm_lint.rules.settings import Setting, Surroundings, Twin, Value
from ldlm_lint.shell.launch_code import Code
from ldlm_lint.shell.launch_entries import entry_of
from ldlm_lint.shell.processes import COMMENT
from ldlm_lint.shell.reaching import Change
from ldlm_lint.shell.script import Assignment, Expansion, Form, Reading, Script
from ldlm_lint.shell.surroundings import Places
from ldlm_lint.source import Source

_ASKS = lazily(rb"(?:\bprintenv|\b(?:declare|typeset)[ \t]+-p|[ \t]-v)\b")
_COMMAND_END = lazily(rb"[\n;&|]")
_SET = lazily(rb"\bset(?=[ \t])([^\n;&|]*)")
_NOUNSET = lazily(rb"[ \t]-(?:[a-zA-Z]*u|[a-zA-Z]*o[ \t]+nounset)")
_BASH_NOUNSET = lazily(rb"\bbash[ \t]+-[a-zA-Z]*u")
_EXPORTING = (Form.DECLARED, Form.PREFIX, Form.ENV)


def settings(source: Source, found: tuple[Code, ...], names: Collection[str] | None = None) -> tuple[Setting, ...]:
    """The variables of a script and of the strings it evaluates of any rule, or with given names."""
    return tuple(assignments_of(source, joined(found), names)) if found else ()


def assignments_of(source: Source, script: Script, names: Collection[str] | None = None) -> dict[Setting, Assignment]:
    """The settings of a script, with their assignments: of variables of any rule, or with given names."""
    relevant = [one for one in script.assignments if one.exported and is_relevant(one.name)]
    relevant = [one for one in relevant if names is None or one.name in names]
    relevant = [one for one in relevant if not _is_taken_back(script, one)]
    if not relevant:
        return {}
    code = COMMENT.sub(b"", source.data)
    uses = {name: _Uses.of(source, code, script, name) for name in {one.name for one in relevant}}
    places = Places(source)
    assignments = {}
    for one in relevant:
        entry = next((entry_of(started) for started in script.launches if _contains(started.span, one.span)), "")
        assignments[_setting(source, one, uses[one.name], places.of(one, entry))] = one
    return assignments


def joined(found: tuple[Code, ...]) -> Script:
    """A script with the variables and launches of the strings that it evaluates."""
    script = found[0].script
    inner = [code for code in found[1:] if code.evaluated]
    if not inner:
        return script
    return replace(
        script,
        assignments=(*script.assignments, *(_kept_inside(one, code) for code in inner for one in code.script.assignments)),
        launches=(*script.launches, *(launch for code in inner for launch in code.script.launches)),
        unset=(*script.unset, *(name for code in inner for name in code.script.unset)),
    )


def _kept_inside(assignment: Assignment, code: Code) -> Assignment:
    """An assignment whose statement, when it goes, does not touch the quote before the string."""
    statement = assignment.statement
    if statement.deletion is None or statement.deletion.start >= code.start:
        return assignment
    return assignment._replace(statement=statement._replace(deletion=None))


def _is_taken_back(script: Script, assignment: Assignment) -> bool:
    """Whether a variable is unset again before any launch."""
    behind = [launch.span.start for launch in script.launches if launch.span.end > assignment.span.start]
    if assignment.name not in script.unset or not behind or assignment.form not in (Form.PLAIN, Form.DECLARED):
        return False
    steps = script.variables.steps_at(assignment.name, min(behind))
    return bool(steps) and all(step.change is Change.UNSET for step in steps)


class _Uses(NamedTuple):
    """The uses of a variable in a script besides setting it; ``needed``: a command fails if it is not set."""

    expansions: tuple[Expansion, ...]
    mentioned: bool
    read_by_other_code: bool
    needed: bool

    @classmethod
    def of(cls, source: Source, code: bytes, script: Script, name: str) -> _Uses:
        """The uses of one name; ``code`` is the script without its comments."""
        expansions = tuple(one for one in script.expansions if one.name == name)
        needed = _is_needed(code, name.encode())
        return cls(expansions, _mentioned(code, script, name), _read_by_other_code(source, name), needed)


def _setting(source: Source, assignment: Assignment, uses: _Uses, place: Surroundings) -> Setting:
    outside = [one for one in uses.expansions if not _contains(assignment.span, one.span)]
    span, value = assignment.span, assignment.value_span
    raw = source.slice(value)
    named = assignment.form is not Form.DEFAULT
    written = Value(raw, value if named else None)
    twin = None
    if assignment.form in _EXPORTING and not assignment.substitutes and not assignment.append:
        twin = Twin(Span(span.path, span.end, span.end, span.cell), " ", f"={raw}")
    return Setting(
        name=assignment.name,
        values=assignment.values,
        span=span,
        expanded=bool(outside) or uses.mentioned,
        used=any(one.reading is Reading.USED for one in outside) or uses.read_by_other_code,
        needed=uses.needed,
        key=Value(assignment.name, Span(span.path, span.start, span.start + len(assignment.name), span.cell)) if named else None,
        written=written,
        twin=twin,
        place=place,
    )


def _contains(outer: Span, inner: Span) -> bool:
    return outer.start <= inner.start and inner.end <= outer.end


def _mentioned(code: bytes, script: Script, name: str) -> bool:
    """Whether the name also is in text that is neither an assignment nor a comment, such as ``printenv NAME``."""
    own = sum(assignment.name == name for assignment in script.assignments)
    return len(re.findall(name.encode() + rb"(?<!\w" + name.encode() + rb")(?!\w)", code)) > own


def _read_by_other_code(source: Source, name: str) -> bool:
    """Whether a program inside the script (a heredoc, ``python -c``) reads the variable from its environment."""
    if b"environ" not in source.data and b"getenv" not in source.data:
        return False
    return re.search(rb"(?:environ|getenv)\b[^\n]{0,20}" + name.encode() + rb"(?!\w)", source.data) is not None


def _is_needed(code: bytes, name: bytes) -> bool:
    """Whether a command fails where the variable is not set: ``${NAME:?}``, ``printenv NAME``, under ``set -u`` any ``$NAME``."""
    expanded = rb"\$(?:%s\b|\{[#!]?%s(?!\w|:?[-+=]))"
    return b"${%s?" % name in code or b"${%s:?" % name in code or _is_asked_for(code, name) or (
        re.search(expanded % (name, name), code) is not None and _stops_at_unset(code)
    )


def _is_asked_for(code: bytes, name: bytes) -> bool:
    """Whether a command tests whether a variable is set, after its first word."""
    word = re.compile(rb"\b%s\b" % name)
    asking = ((part, _ASKS.search(part)) for part in _COMMAND_END.split(code) if name in part)
    return any(found is not None and word.search(part, found.end()) is not None for part, found in asking)


def _stops_at_unset(code: bytes) -> bool:
    """Whether a script runs under ``set -u``."""
    options = (match[1] for match in _SET.finditer(code))
    return _BASH_NOUNSET.search(code) is not None or any(map(_NOUNSET.search, options))
