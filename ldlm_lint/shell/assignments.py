"""The variable assignments of a script: plain, declared, before a command, through ``env`` and by
``${NAME:=value}``.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Iterator, Mapping

from tree_sitter import Node

from ldlm_lint.patterns import lazily
from ldlm_lint.rules.settings import Origin, Value
from ldlm_lint.shell import bindings, handed, tree, words
from ldlm_lint.shell.drafts import Draft
from ldlm_lint.shell.reaching import Change, Reaching, Step
from ldlm_lint.shell.regions import Regions
from ldlm_lint.shell.script import Assignment, Form, Statement
from ldlm_lint.shell.statements import Part, Statements
from ldlm_lint.shell.text import Text, byte_offset
from ldlm_lint.shell.values import Outside, Variables

# tree-sitter-bash parses `--rdzv_id=1` at the beginning of a line as an assignment.
_NAME = lazily(r"[A-Za-z_]\w*", re.ASCII)
_ARITHMETIC = ("c_style_for_statement",)
_ALL_EXPORTED = lazily(
    rb"(?:^|;)[ \t]*set[ \t]+(?:-[a-zA-Z]*a[a-zA-Z]*\b|-o[ \t]+allexport\b|(?P<off>\+[a-zA-Z]*a[a-zA-Z]*\b|\+o[ \t]+allexport\b))", re.M
)
_KEYWORDS = frozenset({"time", "coproc"})
_LOCAL = frozenset({"local", "declare", "typeset"})
_GLOBAL_FLAG = lazily(r"-[a-zA-Z]*g[a-zA-Z]*")
_EXPORT_FLAG = lazily(r"-[a-zA-Z]*x[a-zA-Z]*")
_NO_EXPORT_FLAG = lazily(r"-[a-zA-Z]*[nfp][a-zA-Z]*")


def read(
    text: Text, found: Mapping[str, list[Node]], outside: Outside | None = None
) -> tuple[tuple[Assignment, ...], Variables]:
    """Every assignment of the script in its order, with values if they are known, and the resulting variables."""
    statements = Statements(text)
    exporting = frozenset(node.id for node in found["declaration"] if _exports(text, node))
    drafts = [
        *_assigned(text, found, statements, exporting),
        *handed.words(text, found),
        *_defaults(text, found),
    ]
    drafts.sort(key=lambda draft: (draft.start, draft.end))
    exported = _exported(text, found, exporting) | {
        one.name for one in drafts if one.exported and one.form is Form.DECLARED
    }
    variables = _variables(text, found, drafts, outside)
    everything = _all_exported(text)
    return tuple(
        _finished(text, draft, variables, draft.exported or draft.name in exported or _lies_in(draft.start, everything))
        for draft in drafts
    ), variables


def _variables(
    text: Text, found: Mapping[str, list[Node]], drafts: Iterable[Draft], outside: Outside | None
) -> Variables:
    changes = {Form.PLAIN: Change.SET, Form.DECLARED: Change.SET, Form.DEFAULT: Change.DEFAULT}
    steps: dict[str, list[Step]] = {}
    for one in drafts:
        if one.form in changes:
            change = Change.APPEND if one.append else changes[one.form]
            step = Step(one.name, change, one.start, one.value_start, one.end, one.local)
            steps.setdefault(one.name, []).append(step)
    for step in bindings.steps(text, found):
        steps.setdefault(step.name, []).append(step)
    for some in steps.values():
        some.sort(key=lambda step: step.start)
    calls, shifts = bindings.calls(text, found)
    return Variables(text, Reaching(Regions(text, found), steps, calls, len(text.data)), shifts, outside)


def _all_exported(text: Text) -> list[tuple[int, int]]:
    """The stretches between ``set -a`` and ``set +a``."""
    stretches: list[tuple[int, int]] = []
    start = -1
    for match in _ALL_EXPORTED.finditer(text.data):
        if match["off"] and start >= 0:
            stretches.append((start, match.start()))
            start = -1
        elif not match["off"] and start < 0:
            start = match.start()
    return [*stretches, (start, len(text.data))] if start >= 0 else stretches


def _lies_in(offset: int, stretches: Iterable[tuple[int, int]]) -> bool:
    return any(start <= offset < end for start, end in stretches)


def _finished(text: Text, draft: Draft, variables: Variables, exported: bool) -> Assignment:
    raw = text.slice(draft.value_start, draft.end)
    return Assignment(
        name=draft.name,
        form=draft.form,
        span=text.span(draft.start, draft.end),
        value_span=text.span(draft.value_start, draft.end),
        values=_values(draft, raw, variables),
        exported=exported,
        statement=draft.statement,
        substitutes="`" in raw or "$(" in words.mask_arithmetic(raw),
        append=draft.append,
    )


def _values(draft: Draft, raw: str, variables: Variables) -> tuple[Value, ...] | None:
    if "\ufffd" in raw:
        return None
    if draft.append:
        step = Step(draft.name, Change.APPEND, draft.start, draft.value_start, draft.end)
        return variables.of(step) or None
    known = variables.read(raw, draft.value_start, draft.end)
    if draft.form is Form.DEFAULT and known:
        return tuple(one._replace(origin=Origin.DEFAULT) for one in known)
    return known or None


# The forms


def _assigned(
    text: Text, found: Mapping[str, list[Node]], statements: Statements, exporting: frozenset[int]
) -> Iterator[Draft]:
    for node in found["assignment"]:
        name, value = node.child_by_field_name("name"), node.child_by_field_name("value")
        if name is None or name.type != "variable_name" or node.parent is None or node.parent.type in _ARITHMETIC:
            continue
        if not _NAME.fullmatch(text.of_node(name)):
            continue
        append = text.data[name.end_byte : name.end_byte + 1] == b"+"
        end = _word_end(text, node)
        value_start = value.start_byte if value is not None else name.end_byte + (2 if append else 1)
        form, statement = _context(text, node, node.parent, statements)
        exported = form is Form.PREFIX or node.parent.id in exporting
        local = form is Form.DECLARED and _is_local(text, node.parent)
        yield Draft(text.of_node(name), form, node.start_byte, value_start, end, exported, statement, append, local)


def _word_end(text: Text, node: Node) -> int:
    """The end of an assignment: bashlex decides if tree-sitter has split the word."""
    if text.ends_word(node.end_byte) or node.parent is None:
        return node.end_byte
    line_end = text.data.find(b"\n", node.end_byte)
    raw = text.slice(node.start_byte, line_end if line_end >= 0 else len(text.data))
    end = words.assignment_end(raw)
    return node.end_byte if end is None else max(node.end_byte, node.start_byte + byte_offset(raw, end))


def _context(text: Text, node: Node, parent: Node, statements: Statements) -> tuple[Form, Statement]:
    """The form of an assignment and its statement."""
    if parent.type == "command" and tree.is_detached(text.data, parent):
        return Form.PLAIN, statements.of(node, lambda: Part((_extent(node),), removable=False))
    if parent.type == "declaration_command":
        return Form.DECLARED, statements.of(parent, lambda: _declared(parent))
    if parent.type == "command":
        return Form.PREFIX, statements.of(parent, lambda: _prefixed(text, parent))
    if parent.type == "variable_assignments":
        return Form.PLAIN, statements.of(parent, lambda: Part(tuple(map(_extent, parent.named_children))))
    return Form.PLAIN, statements.of(node, lambda: Part((_extent(node),)))


def _declared(declaration: Node) -> Part:
    """The words of an ``export``, ``declare`` … command after its keyword and options."""
    kinds = ("variable_assignment", "variable_name")
    indices = [index for index, child in enumerate(declaration.children) if child.type in kinds]
    before = declaration.children[indices[0] - 1].end_byte
    return Part(tuple(_extent(declaration.children[index]) for index in indices), before)


def _prefixed(text: Text, command: Node) -> Part:
    """The assignments in front of a command."""
    children = command.children
    parts = [child for child in children if child.type == "variable_assignment"]
    following = next((child for child in children if child.start_byte >= parts[-1].end_byte), None)
    # `A=1 time cmd` runs a program of that name, `time cmd` is a keyword.
    if following is not None and text.of_node(following) in _KEYWORDS:
        return Part((), removable=False)
    return Part(tuple(map(_extent, parts)), after=None if following is None else following.start_byte, removable=False)


def _extent(node: Node) -> tuple[int, int]:
    return node.start_byte, node.end_byte


def _is_local(text: Text, declaration: Node) -> bool:
    """Whether a declaration inside a function ends with it."""
    options = [text.of_node(child) for child in declaration.named_children if child.type == "word"]
    return text.of_node(declaration.children[0]) in _LOCAL and not any(map(_GLOBAL_FLAG.fullmatch, options))


def _exports(text: Text, declaration: Node) -> bool:
    options = [text.of_node(child) for child in declaration.named_children if child.type == "word"]
    if text.of_node(declaration.children[0]) == "export":
        return not any(_NO_EXPORT_FLAG.fullmatch(option) for option in options)
    return any(_EXPORT_FLAG.fullmatch(option) for option in options)


def _exported(text: Text, found: Mapping[str, list[Node]], exporting: frozenset[int]) -> frozenset[str]:
    """The names that the script exports without a value."""
    return frozenset(
        text.of_node(child)
        for declaration in found["declaration"]
        if declaration.id in exporting
        for child in declaration.named_children
        if child.type == "variable_name"
    )


def _defaults(text: Text, found: Mapping[str, list[Node]]) -> Iterator[Draft]:
    """``${NAME:=value}`` sets NAME if it is unset; as an argument of ``:`` it has no other effect."""
    for node in found["expansion"]:
        name = next((child for child in node.children if child.type == "variable_name"), None)
        operator = next((child for child in node.children if child.type in (":=", "=")), None)
        if name is None or operator is None:
            continue
        command = next((parent for parent in tree.ancestors(node) if parent.type == "command"), None)
        if command is None:
            continue
        written = tree.words(command)
        alone = text.of_node(written[0]) == ":" and len(written) == 2
        part = functools.partial(Part, (_extent(node),) if alone else (), removable=alone)
        statement = Statements(text).of(command, part)
        start, end = node.start_byte, node.end_byte
        yield Draft(text.of_node(name), Form.DEFAULT, start, operator.end_byte, end - 1, False, statement)
