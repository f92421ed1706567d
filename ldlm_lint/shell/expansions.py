"""The reads of variables in a script, and their purpose."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tree_sitter import Node

from ldlm_lint.patterns import lazily
from ldlm_lint.shell import tree
from ldlm_lint.shell.script import Expansion, Reading
from ldlm_lint.shell.text import Text

_IN_DATA = lazily(rb"\$\{?[!#]?([A-Za-z_]\w*)")
_PRINTERS = ("echo", "printf")
_BINDERS = ("variable_assignment", "declaration_command", "unset_command", "for_statement", "subscript")
_DEFAULTS = (":=", "=")


def read(text: Text, found: Mapping[str, list[Node]]) -> Iterator[Expansion]:
    """Every expansion of the script, also those in heredocs, in quoted text and in unparsed text."""
    for node in found["name"]:
        if not _binds(node):
            name = text.of_node(node)
            yield Expansion(name, text.span(node.start_byte, node.end_byte), _reading(text, node, name))
    split = (node.parent for node in found["assignment"] if not text.ends_word(node.end_byte))
    for node in (*found["raw"], *found["error"], *(parent for parent in split if parent is not None)):
        for match in _IN_DATA.finditer(text.data, node.start_byte, node.end_byte):
            name = match[1].decode(errors="replace")
            yield Expansion(name, text.span(*match.span(1)), _reading(text, node, name))


def _binds(name: Node) -> bool:
    """Whether a name is written there to be set, not to be read."""
    parent = name.parent
    if parent is None or parent.type not in _BINDERS:
        return False
    return parent.type != "subscript" or (parent.parent is not None and parent.parent.type == "variable_assignment")


def _reading(text: Text, node: Node, name: str) -> Reading:
    for parent in tree.ancestors(node):
        if parent.type == "variable_assignment":
            bound = parent.child_by_field_name("name")
            if bound is not None and text.of_node(bound) == name:
                return Reading.OWN
        elif parent.type == "expansion" and sets_default(parent):
            return Reading.OWN
        elif parent.type == "command":
            return Reading.PRINTED if _prints(text, parent) else Reading.USED
    return Reading.USED


def sets_default(expansion: Node) -> bool:
    """Whether an expansion is ``${NAME:=value}``."""
    return any(child.type in _DEFAULTS for child in expansion.children)


def _prints(text: Text, command: Node) -> bool:
    """Whether a command only shows its arguments; into a file they may be read from there."""
    written = tree.first_word(command)
    if written is None or text.of_node(written) not in _PRINTERS:
        return False
    parent = command.parent
    redirects = parent.children[1:] if parent is not None and parent.type == "redirected_statement" else []
    return all(text.data[redirect.start_byte : redirect.end_byte].endswith((b">&2", b">&1")) for redirect in redirects)
