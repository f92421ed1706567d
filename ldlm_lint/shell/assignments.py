"""Where a script sets variables: plain, declared, before a command, through ``env`` and by ``${NAME:=value}``."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from tree_sitter import Node

from ldlm_lint.rules.settings import Origin, Value
from ldlm_lint.shell import tree, words
from ldlm_lint.shell.script import Assignment, Form, Statement
from ldlm_lint.shell.statements import read_statement
from ldlm_lint.shell.text import Text, byte_offset

_ENV_WORD = re.compile(r"([A-Za-z_]\w*)=")
_ALL_EXPORTED = re.compile(rb"^[ \t]*set[ \t]+(?:-[a-zA-Z]*a[a-zA-Z]*\b|-o[ \t]+allexport\b)", re.MULTILINE)
_EXPORT_FLAG = re.compile(r"-[a-zA-Z]*x[a-zA-Z]*")
_NO_EXPORT_FLAG = re.compile(r"-[a-zA-Z]*[nfp][a-zA-Z]*")
_REBOUND = (
    rb"\bread\b[^\n]*\b%(name)s\b|\bfor\s+%(name)s\b|\bprintf\s+-v\s+%(name)s\b|\(\([^\n]*\b%(name)s\b\s*[-+*/]?="
)


@dataclass(frozen=True, slots=True)
class _Draft:
    """An assignment whose value has been read but not yet looked up; offsets count in the text."""

    name: str
    form: Form
    start: int
    value_start: int
    end: int
    exported: bool
    statement: Statement
    append: bool = False


def read(text: Text, found: Mapping[str, list[Node]]) -> tuple[Assignment, ...]:
    """Every assignment of the script in its order, with values where they can be told."""
    drafts = [*_assigned(text, found), *_environment_words(text, found), *_defaults(text, found)]
    drafts.sort(key=lambda draft: (draft.start, draft.end))
    exported = _exported(text, found) | {one.name for one in drafts if one.exported and one.form is Form.DECLARED}
    everything = bool(_ALL_EXPORTED.search(text.data))
    by_name: dict[str, list[_Draft]] = {}
    for draft in drafts:
        by_name.setdefault(draft.name, []).append(draft)
    return tuple(
        _finished(text, draft, by_name, draft.exported or everything or draft.name in exported) for draft in drafts
    )


def _finished(text: Text, draft: _Draft, by_name: Mapping[str, list[_Draft]], exported: bool) -> Assignment:
    raw = text.slice(draft.value_start, draft.end)
    return Assignment(
        name=draft.name,
        form=draft.form,
        span=text.span(draft.start, draft.end),
        value_span=text.span(draft.value_start, draft.end),
        values=_values(text, draft, by_name),
        exported=exported,
        statement=draft.statement,
        substitutes="`" in raw or "$(" in words.mask_arithmetic(raw),
        append=draft.append,
    )


# Values


def _values(text: Text, draft: _Draft, by_name: Mapping[str, list[_Draft]]) -> tuple[Value, ...] | None:
    raw = text.slice(draft.value_start, draft.end)
    known = None if draft.append or "\ufffd" in raw else words.read_value(raw)
    if isinstance(known, words.Reference):
        return _looked_up(text, draft, known.name, by_name)
    if known is None:
        return None
    start, end = (draft.value_start + byte_offset(raw, index) for index in (known.start, known.end))
    default = known.is_default or draft.form is Form.DEFAULT
    return (Value(known.text, text.span(start, end), Origin.DEFAULT if default else Origin.LITERAL),)


def _looked_up(text: Text, draft: _Draft, name: str, by_name: Mapping[str, list[_Draft]]) -> tuple[Value, ...] | None:
    """The value of a variable that the script sets once, before, to something that is written out."""
    setters = by_name.get(name, [])
    if len(setters) != 1 or setters[0].end > draft.start or setters[0].form in (Form.PREFIX, Form.ENV):
        return None
    if re.search(_REBOUND.replace(b"%(name)s", re.escape(name.encode())), text.data):
        return None
    source = setters[0]
    raw = text.slice(source.value_start, source.end)
    known = None if source.append or "\ufffd" in raw else words.read_value(raw)
    if not isinstance(known, words.Literal):
        return None
    return (Value(known.text, text.span(draft.value_start, draft.end), Origin.VARIABLE),)


# The forms


def _assigned(text: Text, found: Mapping[str, list[Node]]) -> Iterator[_Draft]:
    for node in found["assignment"]:
        name, value = node.child_by_field_name("name"), node.child_by_field_name("value")
        if name is None or name.type != "variable_name" or node.parent is None:
            continue
        append = text.data[name.end_byte : name.end_byte + 1] == b"+"
        end = _word_end(text, node)
        value_start = value.start_byte if value is not None else name.end_byte + (2 if append else 1)
        form, exported, statement = _context(text, node, node.parent)
        yield _Draft(text.of_node(name), form, node.start_byte, value_start, end, exported, statement, append)


def _word_end(text: Text, node: Node) -> int:
    """Where an assignment ends: bashlex decides where tree-sitter has split the word in two."""
    if text.ends_word(node.end_byte) or node.parent is None:
        return node.end_byte
    line_end = text.data.find(b"\n", node.end_byte)
    raw = text.slice(node.start_byte, line_end if line_end >= 0 else len(text.data))
    read_again = words.read_command(raw)
    if read_again is None or not read_again.assignments:
        return node.end_byte
    return max(node.end_byte, node.start_byte + byte_offset(raw, read_again.assignments[0].end))


def _context(text: Text, node: Node, parent: Node) -> tuple[Form, bool, Statement]:
    """The form of an assignment, whether it exports by itself, and its statement."""
    if parent.type == "declaration_command":
        parts = _declared_parts(parent)
        before = parent.children[parent.children.index(parts[0]) - 1].end_byte
        statement = read_statement(text, parent, [_extent(part) for part in parts], before)
        return Form.DECLARED, _exports(text, parent), statement
    if parent.type == "command":
        parts = [child for child in parent.children if child.type == "variable_assignment"]
        behind = next((child for child in parent.children if child.start_byte >= parts[-1].end_byte), None)
        after = behind.start_byte if behind is not None else None
        statement = read_statement(text, parent, [_extent(part) for part in parts], None, after, removable=False)
        return Form.PREFIX, True, statement
    if parent.type == "variable_assignments":
        return Form.PLAIN, False, read_statement(text, parent, [_extent(part) for part in parent.named_children])
    return Form.PLAIN, False, read_statement(text, node, [_extent(node)])


def _extent(node: Node) -> tuple[int, int]:
    return node.start_byte, node.end_byte


def _declared_parts(declaration: Node) -> list[Node]:
    """The words of an ``export``, ``declare`` … command behind its keyword and options."""
    named = declaration.named_children
    return [child for child in named if child.type == "variable_assignment" or child.type == "variable_name"]


def _exports(text: Text, declaration: Node) -> bool:
    options = [text.of_node(child) for child in declaration.named_children if child.type == "word"]
    if text.of_node(declaration.children[0]) == "export":
        return not any(_NO_EXPORT_FLAG.fullmatch(option) for option in options)
    return any(_EXPORT_FLAG.fullmatch(option) for option in options)


def _exported(text: Text, found: Mapping[str, list[Node]]) -> frozenset[str]:
    """The names that the script exports without a value."""
    return frozenset(
        text.of_node(child)
        for declaration in found["declaration"]
        if _exports(text, declaration)
        for child in declaration.named_children
        if child.type == "variable_name"
    )


def _environment_words(text: Text, found: Mapping[str, list[Node]]) -> Iterator[_Draft]:
    for command in found["command"]:
        written = tree.words(command)
        if len(written) < 3 or text.of_node(written[0]).rpartition("/")[2] != "env":
            continue
        settings = []
        for word in written[1:]:
            match = _ENV_WORD.match(text.of_node(word))
            if match:
                settings.append((word, match))
            elif settings:
                break
        behind = next((word for word in written if settings and word.start_byte > settings[-1][0].start_byte), None)
        if behind is None:
            continue
        extents = [_extent(word) for word, _ in settings]
        statement = read_statement(text, command, extents, None, behind.start_byte, removable=False)
        for word, match in settings:
            value_start = word.start_byte + match.end()
            yield _Draft(match[1], Form.ENV, word.start_byte, value_start, word.end_byte, True, statement)


def _defaults(text: Text, found: Mapping[str, list[Node]]) -> Iterator[_Draft]:
    """``${NAME:=value}`` sets NAME where it is unset; as an argument of ``:`` it does nothing else."""
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
        parts = [_extent(node)] if alone else []
        statement = read_statement(text, command, parts, removable=alone)
        start, end = node.start_byte, node.end_byte
        yield _Draft(text.of_node(name), Form.DEFAULT, start, operator.end_byte, end - 1, False, statement)
