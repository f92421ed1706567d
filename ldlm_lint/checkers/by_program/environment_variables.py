"""The rules about variables, for cases that one file does not decide: the mapping, the name or the value comes from
elsewhere."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from astroid import nodes

from ldlm_lint.checkers.environment import Editor, is_for_some_versions, options_of, scene_of, setting_of, settings_of
from ldlm_lint.checkers.environment_writes import Write
from ldlm_lint.checkers.project_code import ProjectCode
from ldlm_lint.code.table import COLUMNS
from ldlm_lint.concepts.environment import Environment, EnvironmentWrite
from ldlm_lint.model import Finding
from ldlm_lint.program.handles import Call
from ldlm_lint.program.modules import Module
from ldlm_lint.python.walks import nodes_of
from ldlm_lint.rules import (
    environment,
    environment_aliases,
    environment_allocator,
    environment_connections,
    environment_debugging,
    environment_error_handling,
    environment_tuning,
    environment_values,
)
from ldlm_lint.rules.environment_aliases import DEPRECATED_NCCL_VARIABLE
from ldlm_lint.rules.environment_decisions import decide, is_relevant
from ldlm_lint.rules.settings import Origin, Setting, Value
from ldlm_lint.source import Source

_ROOMS = (
    *(environment, environment_aliases, environment_allocator, environment_connections),
    *(environment_debugging, environment_error_handling, environment_tuning, environment_values),
)
RULES = tuple(rule for room in _ROOMS for rule in room.RULES)
WORDS = (b"environ", b"putenv")
_DEFAULTS = frozenset({"setdefault"})


def find(view: ProjectCode) -> Iterator[Finding]:
    """The findings that single files cannot show, file by file."""
    by_module: dict[int, list[EnvironmentWrite]] = {}
    for write in view[Environment].writes(is_relevant):
        by_module.setdefault(write.at.module.index, []).append(write)
    for index in sorted(by_module):
        yield from _in_module(view, view.program.modules.all[index], by_module[index])


def _in_module(view: ProjectCode, module: Module, writes: list[EnvironmentWrite]) -> Iterator[Finding]:
    """The findings in one file about variables that its own text does not decide, given those that it does."""
    tree = view.context.trees.of(view.path(module))
    if tree is None:
        return
    source = view.source(module)
    known = settings_of(tree, source)
    shown = [one for write in writes for one in _settings(tree, source, write)]
    new = [one for one in shown if one.values is not None and not any(_is_told(one, other) for other in known)]
    if not new:
        return
    spans = {one.span for one in new}
    rest = [one for one in known if not (one.values is None and any(one.span.start < span.end and span.start < one.span.end for span in spans))]
    facts: Mapping[str, object] = view.facts(module)
    everything = sorted((*rest, *new), key=lambda one: one.span.start)
    for finding in decide(everything, options_of(facts.get), Editor(tree, source), scene_of(source)):
        is_old = finding.rule == DEPRECATED_NCCL_VARIABLE.symbol and is_for_some_versions(tree, source, finding.span)
        if finding.span in spans and not is_old:
            yield finding


def _is_told(one: Setting, other: Setting) -> bool:
    """Whether a file alone shows the value of a variable: at the same place, or the same value at every place."""
    if one.name != other.name or other.values is None:
        return False
    same = {value.text for value in one.values or ()} <= {value.text for value in other.values}
    return same or (one.span.start < other.span.end and other.span.start < one.span.end)


def _settings(tree: nodes.Module, source: Source, write: EnvironmentWrite) -> Iterator[Setting]:
    """A write of the program in the form for decisions about variables; None if its statement is not found in the
    file.
    """
    node = _node_at(tree, write.at.place, end=write.at.end if isinstance(write.at, Call) else 0)
    if node is None:
        return
    is_default = isinstance(node, nodes.Call) and getattr(node.func, "attrname", "") in _DEFAULTS
    origin = Origin.DEFAULT if is_default and write.given_by is None else Origin.LITERAL
    if write.given_by is not None or (isinstance(node, nodes.Call) and len(node.args) != 2):
        setting = setting_of(source, Write(node, None, write.name, node, origin))
    else:
        key, value = node.args if isinstance(node, nodes.Call) else (node.targets[0].slice, node.value)
        setting = setting_of(source, Write(node, key, write.name, value, origin))
    if setting.values is None and write.texts:
        origin = origin if origin is Origin.DEFAULT else Origin.VARIABLE
        setting = setting._replace(values=tuple(Value(text, None, origin) for text in write.texts))
    yield setting


def _node_at(tree: nodes.Module, place: int, end: int) -> nodes.NodeNG | None:
    """The assignment to an item that begins at a place, or the call between two places."""
    for node in nodes_of(tree, nodes.Call if end else nodes.Assign):
        if isinstance(node, nodes.Call):
            if (_place(node), (node.end_lineno or 0) << COLUMNS | (node.end_col_offset or 0)) == (place, end):
                return node
        elif len(node.targets) == 1 and isinstance(node.targets[0], nodes.Subscript) and _place(node.targets[0]) == place:
            return node
    return None


def _place(node: nodes.NodeNG) -> int:
    return (node.lineno or 0) << COLUMNS | (node.col_offset or 0)
