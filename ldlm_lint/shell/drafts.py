"""A preliminary assignment from the syntax tree."""

from __future__ import annotations

from typing import NamedTuple

from ldlm_lint.shell.script import Form, Statement


class Draft(NamedTuple):
    """An assignment whose value has not been read yet; offsets count in the text.

    ``local``: it ends with the enclosing function.
    """

    name: str
    form: Form
    start: int
    value_start: int
    end: int
    exported: bool
    statement: Statement
    append: bool = False
    local: bool = False
