"""Edits of settings in Python code: the arguments of a call, and the defaults of a dataclass's fields."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from astroid import nodes

from ldlm_lint.checkers.base import span_of
from ldlm_lint.edits.keywords import add_keyword, remove_arguments
from ldlm_lint.frameworks.sections import Options, Scalar, Setting
from ldlm_lint.model import Edit
from ldlm_lint.source import Source


class CodeEditor(NamedTuple):
    """Edits of settings whose place is the expression of their value; ``call`` receives them, None for fields of a
    class."""

    source: Source
    call: nodes.Call | None

    def replace(self, setting: Setting, value: Scalar) -> tuple[Edit, ...] | None:
        """Write another value; None if the old one is not written out at the place."""
        node = setting.place
        if not isinstance(node, nodes.Const):
            return None
        span = span_of(self.source, node)
        return (Edit(span, _literal(value, self.source.slice(span))),)

    def add(self, beside: Setting, name: str, value: Scalar | Options) -> tuple[Edit, ...] | None:
        """Pass one more argument; a class gets no further field."""
        edit = add_keyword(self.source, span_of(self.source, self.call), name, _literal(value)) if self.call is not None else None
        return None if edit is None else (edit,)

    def remove(self, setting: Setting) -> tuple[Edit, ...] | None:
        """Remove an argument; None if it is not passed by name."""
        node = setting.place
        keyword = node.parent if isinstance(node, nodes.NodeNG) else None
        if not isinstance(keyword, nodes.Keyword) or keyword.parent is not self.call:
            return None
        return remove_arguments(self.source, [span_of(self.source, keyword)])


def _literal(value: Scalar | Options, old: str = "") -> str:
    """A value as Python code; a text with the quotes of the one that it replaces."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f'"{name}": {_literal(one)}' for name, one in value.items()) + "}"
    if not isinstance(value, str):
        return repr(value)
    quote = "'" if old.endswith("'") else '"'
    return f"{quote}{value}{quote}"
