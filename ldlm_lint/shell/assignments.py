"""Where a script sets variables: plain, declared, before a command, through ``env`` and by ``${NAME:=value}``."""

from __future__ import annotations

import collections
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from tree_sitter import Node

from ldlm_lint.rules.settings import Origin, Value
from ldlm_lint.shell import tree, words
from ldlm_lint.shell.script import Assignment, Form, Statement
from ldlm_lint.shell.statements import Part, Statements
from ldlm_lint.shell.text import Text, byte_offset

_ENV_WORD = re.compile(r"([A-Za-z_]\w*)=")
# tree-sitter-bash takes `--rdzv_id=1` at the head of a line for an assignment.
_NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_ARITHMETIC = ("c_style_for_statement",)
_ALL_EXPORTED = re.compile(rb"^[ \t]*set[ \t]+(?:-[a-zA-Z]*a[a-zA-Z]*\b|-o[ \t]+allexport\b)", re.MULTILINE)
_EXPORT_FLAG = re.compile(r"-[a-zA-Z]*x[a-zA-Z]*")
_NO_EXPORT_FLAG = re.compile(r"-[a-zA-Z]*[nfp][a-zA-Z]*")
# Names that get a value in another way: read, for, printf -v, arithmetic.
_REBOUND = re.compile(
    rb"\b(?:read|mapfile|readarray|getopts|let)\b[^\n;|]*|\bfor\s+\w+|\bprintf\s+-v\s+\w+|\(\([^\n)]*"
)
_WORD = re.compile(rb"[A-Za-z_]\w*")


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
    statements = Statements(text)
    exporting = frozenset(node.id for node in found["declaration"] if _exports(text, node))
    drafts = [
        *_assigned(text, found, statements, exporting),
        *_environment_words(text, found),
        *_defaults(text, found),
    ]
    drafts.sort(key=lambda draft: (draft.start, draft.end))
    exported = _exported(text, found, exporting) | {
        one.name for one in drafts if one.exported and one.form is Form.DECLARED
    }
    everything = bool(_ALL_EXPORTED.search(text.data))
    once = _set_once(text, drafts)
    return tuple(
        _finished(text, draft, once, draft.exported or everything or draft.name in exported) for draft in drafts
    )


def _set_once(text: Text, drafts: list[_Draft]) -> dict[str, _Draft]:
    """The assignments that are the only one of their variable, and change it in the script itself."""
    count = collections.Counter(draft.name for draft in drafts)
    rebound = {word.decode() for match in _REBOUND.finditer(text.data) for word in _WORD.findall(match[0])}
    scoped = (Form.PREFIX, Form.ENV)
    alone = (draft for draft in drafts if count[draft.name] == 1 and draft.form not in scoped)
    return {draft.name: draft for draft in alone if draft.name not in rebound}


def _finished(text: Text, draft: _Draft, once: Mapping[str, _Draft], exported: bool) -> Assignment:
    raw = text.slice(draft.value_start, draft.end)
    return Assignment(
        name=draft.name,
        form=draft.form,
        span=text.span(draft.start, draft.end),
        value_span=text.span(draft.value_start, draft.end),
        values=_values(text, draft, once),
        exported=exported,
        statement=draft.statement,
        substitutes="`" in raw or "$(" in words.mask_arithmetic(raw),
        append=draft.append,
    )


# Values


def _values(text: Text, draft: _Draft, once: Mapping[str, _Draft]) -> tuple[Value, ...] | None:
    raw = text.slice(draft.value_start, draft.end)
    known = None if draft.append or "\ufffd" in raw else words.read_value(raw)
    if isinstance(known, words.Reference):
        return _looked_up(text, draft, once.get(known.name))
    if known is None:
        return None
    start, end = (draft.value_start + byte_offset(raw, index) for index in (known.start, known.end))
    default = known.is_default or draft.form is Form.DEFAULT
    return (Value(known.text, text.span(start, end), Origin.DEFAULT if default else Origin.LITERAL),)


def _looked_up(text: Text, draft: _Draft, source: _Draft | None) -> tuple[Value, ...] | None:
    """The value of a variable that the script sets once, before, to something that is written out."""
    if source is None or source.end > draft.start:
        return None
    raw = text.slice(source.value_start, source.end)
    known = None if source.append or "\ufffd" in raw else words.read_value(raw)
    if not isinstance(known, words.Literal):
        return None
    return (Value(known.text, text.span(draft.value_start, draft.end), Origin.VARIABLE),)


# The forms


def _assigned(
    text: Text, found: Mapping[str, list[Node]], statements: Statements, exporting: frozenset[int]
) -> Iterator[_Draft]:
    for node in found["assignment"]:
        name, value = node.child_by_field_name("name"), node.child_by_field_name("value")
        if name is None or name.type != "variable_name" or node.parent is None or node.parent.type in _ARITHMETIC:
            continue
        if not _NAME.fullmatch(text.of_node(name)):
            continue
        append = text.data[name.end_byte : name.end_byte + 1] == b"+"
        end = _word_end(text, node)
        value_start = value.start_byte if value is not None else name.end_byte + (2 if append else 1)
        form, statement = _context(node, node.parent, statements)
        exported = form is Form.PREFIX or node.parent.id in exporting
        yield _Draft(text.of_node(name), form, node.start_byte, value_start, end, exported, statement, append)


def _word_end(text: Text, node: Node) -> int:
    """Where an assignment ends: bashlex decides where tree-sitter has split the word in two."""
    if text.ends_word(node.end_byte) or node.parent is None:
        return node.end_byte
    line_end = text.data.find(b"\n", node.end_byte)
    raw = text.slice(node.start_byte, line_end if line_end >= 0 else len(text.data))
    end = words.assignment_end(raw)
    return node.end_byte if end is None else max(node.end_byte, node.start_byte + byte_offset(raw, end))


def _context(node: Node, parent: Node, statements: Statements) -> tuple[Form, Statement]:
    """The form of an assignment and its statement."""
    if parent.type == "declaration_command":
        return Form.DECLARED, statements.of(parent, lambda: _declared(parent))
    if parent.type == "command":
        return Form.PREFIX, statements.of(parent, lambda: _prefixed(parent))
    if parent.type == "variable_assignments":
        return Form.PLAIN, statements.of(parent, lambda: Part(tuple(map(_extent, parent.named_children))))
    return Form.PLAIN, statements.of(node, lambda: Part((_extent(node),)))


def _declared(declaration: Node) -> Part:
    """The words of an ``export``, ``declare`` … command behind its keyword and options."""
    kinds = ("variable_assignment", "variable_name")
    indices = [index for index, child in enumerate(declaration.children) if child.type in kinds]
    before = declaration.children[indices[0] - 1].end_byte
    return Part(tuple(_extent(declaration.children[index]) for index in indices), before)


def _prefixed(command: Node) -> Part:
    """The assignments in front of a command."""
    children = command.children
    parts = [child for child in children if child.type == "variable_assignment"]
    after = next((child.start_byte for child in children if child.start_byte >= parts[-1].end_byte), None)
    return Part(tuple(map(_extent, parts)), after=after, removable=False)


def _extent(node: Node) -> tuple[int, int]:
    return node.start_byte, node.end_byte


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


def _environment_words(text: Text, found: Mapping[str, list[Node]]) -> Iterator[_Draft]:
    """``env NAME=value command``; without a command it only prints."""
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
        part = Part(tuple(_extent(word) for word, _ in settings), None, behind.start_byte, removable=False)
        # A prefix assignment of the same command has parts of its own: `A=1 env B=2 cmd`.
        statement = Statements(text).of(command, lambda part=part: part)
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
        part = Part((_extent(node),) if alone else (), removable=alone)
        statement = Statements(text).of(command, lambda part=part: part)
        start, end = node.start_byte, node.end_byte
        yield _Draft(text.of_node(name), Form.DEFAULT, start, operator.end_byte, end - 1, False, statement)
