"""Epochs passed to samplers and datasets: a constant is not an epoch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ldlm_lint.code.table import column_of, line_of
from ldlm_lint.program.atoms import MASK

if TYPE_CHECKING:
    from ldlm_lint.checkers.by_program.view import View

_WRITTEN = frozenset({"const", "copy", "phi", "free", "param", "impf", "un"})


def tells_constant_epoch(view: View, path: str, position: str) -> bool:
    """Whether the call of ``set_epoch`` at ``line:column`` of a file passes the same number each time."""
    for call in view.program.calls.get("set_epoch", ()):
        module = view.program.module_of(call)
        place = module.table.sites[call & MASK].place
        if f"{line_of(place)}:{column_of(place)}" != position or view.path(module) != path:
            continue
        given = view.ask.argument(call, "epoch", 0).sources
        return len(given) == 1 and module.nodes[given[0] & MASK][0] in _WRITTEN and view.ask.meaning(*given).only.__class__ is int
    return False
