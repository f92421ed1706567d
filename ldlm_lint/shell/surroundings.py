"""The context of an assignment in a script: the branches, functions and commands around it."""

from __future__ import annotations

from tree_sitter import Node

from ldlm_lint.rules.roles import is_diagnostic, speaks_of_debugging
from ldlm_lint.rules.settings import Surroundings
from ldlm_lint.shell import tree
from ldlm_lint.shell.script import Assignment, Form
from ldlm_lint.shell.text import Text
from ldlm_lint.source import Source
from ldlm_lint.wording import remark_at

_BRANCHES = ("if_statement", "elif_clause", "else_clause", "case_item")
_CONDITIONAL = (*_BRANCHES, "while_statement")
_SCOPES = (*_BRANCHES, "function_definition", "subshell")
_OF_COMMAND = (Form.PREFIX, Form.ENV)


class Places:
    """The surroundings of the assignments of one script."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._text = Text.of(source)
        self._root = tree.parse(self._text.data)

    def of(self, assignment: Assignment, entry: str) -> Surroundings:
        """The surroundings of an assignment; ``entry`` is the entry of the launch it precedes, if any."""
        bom = self._source.bom
        start, end = assignment.span.start - bom, assignment.span.end - bom
        node = self._root.descendant_for_byte_range(start, end) or self._root
        scope: list[int] = []
        conditions: list[str] = []
        debugging = bool(entry) and is_diagnostic("", [entry])
        inner = node
        for parent in tree.ancestors(node):
            if parent.type in _SCOPES and not _is_other_branch(inner, parent):
                scope.append(parent.start_byte)
            if parent.type in _CONDITIONAL or (parent.type == "list" and inner != parent.children[0]):
                conditions.append(self._condition(parent, inner))
            elif parent.type == "function_definition" and (name := parent.child_by_field_name("name")) is not None:
                debugging = debugging or speaks_of_debugging(self._text.of_node(name))
            inner = parent
        scope.reverse()
        if assignment.form in _OF_COMMAND:
            scope.append(assignment.statement.span.start)
        return Surroundings(
            tuple(scope),
            bool(conditions),
            debugging or any(map(speaks_of_debugging, conditions)),
            remark_at(self._source, assignment.span.start, assignment.span.end),
        )

    def _condition(self, parent: Node, inner: Node) -> str:
        """The condition of the inner part: the words before it."""
        start, end = parent.start_byte, inner.start_byte
        if parent.type == "case_item" and parent.parent is not None:
            start = parent.parent.start_byte
            head = self._text.slice(start, parent.parent.children[1].end_byte)
            return head + " " + self._text.slice(parent.start_byte, end)
        if parent.type in ("if_statement", "elif_clause"):
            then = next((child for child in parent.children if child.type == "then"), None)
            end = min(end, then.start_byte) if then is not None else end
        return self._text.slice(start, end)


def _is_other_branch(inner: Node, parent: Node) -> bool:
    """Whether a part of an ``if`` has its own scope, so that the statement's own is that of its first branch."""
    return parent.type == "if_statement" and inner.type in ("elif_clause", "else_clause")
