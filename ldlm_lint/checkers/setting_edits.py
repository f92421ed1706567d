"""Edits of settings in Python code: the arguments of a call, the defaults of a dataclass's fields, and stores to fields."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from ldlm_lint.edits.keywords import add_keyword, remove_arguments
from ldlm_lint.edits.written_parts import Part, parts_of
from ldlm_lint.frameworks.sections import Options, Scalar, Setting
from ldlm_lint.model import Edit
from ldlm_lint.program.handles import Call
from ldlm_lint.source import Source


class CodeEditor(NamedTuple):
    """Edits of settings whose place is how their value is written; ``call`` receives them, None for all else."""

    source: Source
    call: Call | None

    def replace(self, setting: Setting, value: Scalar) -> tuple[Edit, ...] | None:
        """Write another value; None if the old one is not written out at the place."""
        part = setting.place
        return (Edit(part.span, _literal(value, part.text)),) if isinstance(part, Part) and part.is_constant else None

    def add(self, beside: Setting, name: str, value: Scalar | Options) -> tuple[Edit, ...] | None:
        """Pass one more argument; a class gets no further field."""
        edit = add_keyword(self.source, self.call.span, name, _literal(value)) if self.call is not None else None
        return None if edit is None else (edit,)

    def remove(self, setting: Setting) -> tuple[Edit, ...] | None:
        """Remove an argument; None if it is not passed by name."""
        part = setting.place
        is_keyword = self.call is not None and isinstance(part, Part) and part.name and part in parts_of(self.call)
        return remove_arguments(self.source, [part.whole]) if is_keyword and isinstance(part, Part) else None


def _literal(value: Scalar | Options, old: str = "") -> str:
    """A value as Python code; a text with the quotes of the one that it replaces."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f'"{name}": {_literal(one)}' for name, one in value.items()) + "}"
    if not isinstance(value, str):
        return repr(value)
    quote = "'" if old.endswith("'") else '"'
    return f"{quote}{value}{quote}"
