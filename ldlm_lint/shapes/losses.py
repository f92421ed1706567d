"""Whether expressions are about a loss."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable

from ldlm_lint.patterns import lazily
from ldlm_lint.shapes.meaning import leads_to
from ldlm_lint.shapes.outline import Outline

# Every loss for the checkers has one of these in its name, or in the name of its creator.
_SPEAKS = re.compile(r"loss|criterion|entropy|kl_div", re.I)
_BOUNDS = frozenset({"clamp", "clamp_", "clip", "clip_", "clamp_max", "clamp_max_"})
_LESSER = frozenset({"min", "minimum"})
_NORMALIZERS = lazily(r"\.?(^|\.)_*l2_?norm(aliz|alis)?(e|ed)?$", re.I)
_NORMS = frozenset({"norm", "vector_norm"})
_SQUARES = lazily(rb"\*\*|\b(?:pow|square)\b")


def speaks_of_loss(outline: Outline, nodes: Iterable[ast.AST]) -> bool:
    """Whether expressions name a loss, or a name bound to one, anywhere in the file."""
    return leads_to(outline, nodes, _SPEAKS)
