"""The claims of rules that the rest of a project can check before a file is analysed, and their places.

`ldlm_lint.project.outlook` checks them. A rule in neither table depends on the file only.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import NamedTuple

from ldlm_lint.shapes.evaluation import evaluating_functions

Prospect = Callable[[ast.Module, bytes], "tuple[str, ...] | None"]
"""Takes the tree of a file and its text in UTF-8."""
ANYWHERE = ("*",)
"""Stands for whichever functions of a file."""


class Variant(NamedTuple):
    """The kinds of claims that some findings of a rule make, all of them; their file holds one of the words, if there are any."""

    claims: frozenset[str]
    words: tuple[bytes, ...] = ()


def _each(*variants: str, words: tuple[bytes, ...] = ()) -> tuple[Variant, ...]:
    """Variants by their kinds of claims, those of one with blanks between them."""
    return tuple(Variant(frozenset(one.split()), words) for one in variants)


CLAIMS: dict[str, tuple[Variant, ...]] = {
    "evaluation-with-gradients": _each("evaluation-records-gradients"),
}
"""The variants of the findings that a rule has: each finding is of one of them."""

PROSPECTS: dict[str, Prospect] = {
    "evaluation-with-gradients": evaluating_functions,
}
"""The rules that a project may rule out by their functions in a file: what finds these, and None where it cannot tell."""
