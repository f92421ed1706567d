"""Finds the environment variables that a Python file sets, as settings for the rules of launch scripts."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from astroid import nodes

from ldlm_lint.checkers.base import span_of
from ldlm_lint.checkers.environment_writes import Write, writes_of
from ldlm_lint.checkers.version_switches import switched_by_version
from ldlm_lint.edits.lines import delete_line
from ldlm_lint.model import Edit, Finding, Span
from ldlm_lint.patterns import lazily
from ldlm_lint.python.skim import without_comments
from ldlm_lint.python.values import constant
from ldlm_lint.python.walks import nodes_of
from ldlm_lint.requirements import NEWEST_TORCH, OLDEST_TORCH
from ldlm_lint.rules.collectives import COLLECTIVE_LIMIT, COLLECTIVE_MINIMUM
from ldlm_lint.rules.environment import EXCESSIVE_HEARTBEAT_TIMEOUT
from ldlm_lint.rules.environment_aliases import DEPRECATED_NCCL_VARIABLE
from ldlm_lint.rules.environment_decisions import decide
from ldlm_lint.rules.environment_names import why_ineffective
from ldlm_lint.rules.environment_view import Scene
from ldlm_lint.rules.roles import is_diagnostic, speaks_of_debugging
from ldlm_lint.rules.settings import Removal, Setting, Surroundings, Twin, Value
from ldlm_lint.source import Source
from ldlm_lint.wording import remark_at

_WORDS = (b"environ", b"putenv", b"env=")
_REMOVED = lazily(r"environ\.pop\(\s*[\"'](\w+)|del\s+os\.environ\[\s*[\"'](\w+)|unsetenv\(\s*[\"'](\w+)")
_SEVERAL = lazily(r"init_process_group|init_distributed|\bAccelerator\(|mp\.spawn|\.Fabric\(")
# Branches of a statement: the field of its parent that a node is in.
_INHERITED = "a process that the program starts may read it"
_BRANCHES = ("body", "orelse", "handlers", "finalbody")
# ``def enable_full_determinism():`` makes runs repeatable at any cost, as its name says.
_DETERMINISM = lazily(r"determinis", re.I)


def findings_of(module: nodes.Module, source: Source, option: Callable[[str], object]) -> Iterator[Finding]:
    """The findings about the variables that a module sets; ``option`` looks up a rule option or an end of the range of torch."""
    settings = settings_of(module, source)
    if not settings:
        return
    for finding in decide(settings, options_of(option), Editor(module, source), scene_of(source)):
        if finding.rule != DEPRECATED_NCCL_VARIABLE.symbol or not is_for_some_versions(module, source, finding.span):
            yield finding


def is_for_some_versions(module: nodes.Module, source: Source, place: Span) -> bool:
    """Whether a variable is set for some versions of torch only, of which those before 2.2 have no other name for
    it.
    """
    if b"version" not in source.data:
        return False
    around = (one for one in nodes_of(module, (nodes.Assign, nodes.Call)) if _holds(span_of(source, one), place))
    return any(map(switched_by_version, around))


def _holds(outer: Span, inner: Span) -> bool:
    return outer.start <= inner.start and inner.end <= outer.end


def options_of(option: Callable[[str], object]) -> dict[str, object]:
    """The configuration for decisions about variables."""
    options = (*EXCESSIVE_HEARTBEAT_TIMEOUT.options, COLLECTIVE_LIMIT, COLLECTIVE_MINIMUM)
    return {name: option(name) for name in (*(one.name for one in options), OLDEST_TORCH, NEWEST_TORCH)}


def settings_of(module: nodes.Module, source: Source) -> list[Setting]:
    """The variables of interest that a module sets for itself or for processes that it starts."""
    if not any(word in source.data for word in _WORDS):
        return []
    return [setting_of(source, write) for write in writes_of(module)]


class Editor(NamedTuple):
    """Removes unread assignments from Python; other variables are rewritten in place."""

    module: nodes.Module
    source: Source

    def removals(self, groups: Mapping[Setting, str]) -> dict[Setting, Removal]:
        """See `ldlm_lint.rules.settings.Editor`."""
        useless = {one.span: one for one in groups if why_ineffective(one.name) is not None}
        found: dict[Setting, Removal] = {}
        for node in nodes_of(self.module, nodes.Assign) if useless else ():
            setting = useless.get(span_of(self.source, node))
            # Only a constant is removed: nothing is called, and the block keeps another statement.
            if setting is None or len(node.targets) != 1 or not isinstance(node.value, nodes.Const):
                continue
            lines = lines_of(self.source, span_of(self.source, node))
            others = any(span_of(self.source, one) not in useless for one in block_of(node))
            if lines is not None and others:
                found[setting] = Removal((Edit(lines, ""),), reason=_INHERITED)
        return found


def block_of(statement: nodes.NodeNG) -> list[nodes.NodeNG]:
    """The statements of the block that a statement is in."""
    parts = (getattr(statement.parent, name, None) for name in _BRANCHES)
    return next((part for part in parts if isinstance(part, list) and statement in part), [])


def lines_of(source: Source, span: Span) -> Span | None:
    """The lines of a statement with the comment after it, None if another statement is on them."""
    lines = delete_line(source, span).span
    before, after = source.data[lines.start : span.start], source.data[span.end : lines.end].strip()
    return lines if not before.strip() and (not after or after.startswith(b"#")) else None


def scene_of(source: Source) -> Scene:
    """The facts of a file about the processes that get its variables."""
    text = without_comments(source.data).decode(errors="replace")
    removed = frozenset(name for match in _REMOVED.findall(text) for name in match if name)
    return Scene(is_diagnostic(source.path, ()), several=bool(_SEVERAL.search(text)), unset=removed, text=text)


def setting_of(source: Source, pair: Write) -> Setting:
    """A write in the form for decisions about variables."""
    text = constant(pair.value)
    span = span_of(source, pair.statement)
    if pair.part is not None:
        first, last = (span_of(source, node) for node in pair.part)
        span = Span(span.path, first.start, last.end, span.cell)
    # A value that a loop gives to several names belongs to no single name.
    literal = _literal(source, pair.value) if pair.part is None or _holds(span, span_of(source, pair.value)) else None
    known = None
    if isinstance(text, str):
        # Only a literal in place can be rewritten; a constant that other code shares cannot.
        known = (Value(text, literal.span if literal else None, pair.origin, literal.quote if literal else ""),)
    written = source.slice(span_of(source, pair.value))
    # A dictionary from elsewhere may also be read by its keys.
    shared = not _holds(span_of(source, pair.statement), span) and source.data.count(pair.name.encode()) > 1
    return Setting(
        pair.name,
        known,
        span,
        key=None if pair.key is None or shared else _literal(source, pair.key),
        written=Value(written, span_of(source, pair.value) if literal else None),
        twin=_twin(source, pair),
        place=_surroundings(source, pair.statement),
    )


def _literal(source: Source, node: nodes.NodeNG) -> Value | None:
    """A string in plain quotes, None for everything else."""
    if not isinstance(node, nodes.Const) or not isinstance(node.value, str):
        return None
    place = span_of(source, node)
    quote = source.slice(place)[:1]
    plain = quote in ("'", '"') and len(source.slice(place)) == len(node.value) + 2
    return Value(node.value, place, quote=quote) if plain else None


def _twin(source: Source, pair: Write) -> Twin | None:
    """A second target of the same assignment assigns the value to another name."""
    if not isinstance(pair.statement, nodes.Assign) or pair.part is not None or pair.key is None or _literal(source, pair.key) is None:
        return None
    start = span_of(source, pair.statement).start
    target, key = span_of(source, pair.statement.targets[0]), span_of(source, pair.key)
    before = source.slice(Span(target.path, target.start, key.start, target.cell))
    after = source.slice(Span(target.path, key.end, target.end, target.cell))
    quote = source.slice(key)[0]
    return Twin(Span(target.path, start, start, target.cell), before + quote, f"{quote}{after} = ")


def _surroundings(source: Source, statement: nodes.NodeNG) -> Surroundings:
    """The branches and functions around a statement, and the comment next to it."""
    scope: list[int] = []
    conditions: list[str] = []
    names: list[str] = []
    inner = statement
    while (parent := inner.parent) is not None:
        if isinstance(parent, nodes.FunctionDef):
            names.append(parent.name)
            scope.append(4 * parent.lineno)
        elif isinstance(parent, (nodes.If, nodes.Try)):
            branch = next((index for index, name in enumerate(_BRANCHES) if inner in getattr(parent, name, ())), 0)
            scope.append(4 * parent.lineno + branch)
        if isinstance(parent, nodes.If) and not _is_of_course(parent.test):
            conditions.append(parent.test.as_string())
        inner = parent
    place = span_of(source, statement)
    return Surroundings(
        tuple(reversed(scope)),
        bool(conditions),
        any(speaks_of_debugging(one) or _DETERMINISM.search(one) for one in (*conditions, *names)),
        remark_at(source, place.start, place.end),
    )


def _is_of_course(test: nodes.NodeNG) -> bool:
    """Whether a condition is independent of the machine and the user: the main guard, a variable that is not set
    yet.
    """
    text = test.as_string()
    return "__name__" in text or ("environ" in text and (" not in " in text or " is None" in text))
