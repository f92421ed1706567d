"""Whether expressions are about a loss."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable

from ldlm_lint.shapes.meaning import leads_to
from ldlm_lint.shapes.outline import Outline

# Every loss for the checkers has one of these in its name, or in the name of its creator.
_SPEAKS = re.compile(r"loss|criterion|entropy|kl_div", re.I)
def speaks_of_loss(outline: Outline, nodes: Iterable[ast.AST]) -> bool:
    """Whether expressions name a loss, or a name bound to one, anywhere in the file."""
    return leads_to(outline, nodes, _SPEAKS)
