"""Loops over optimizers: training several models takes one step of each, which together is one step of the training."""

from __future__ import annotations

import re

from astroid import nodes

from ldlm_lint.patterns import lazily
from ldlm_lint.python.walks import nodes_of

_NAMED = lazily(r"optim|^opt$|_opt$", re.I)


def runs_over_optimizers(loop: nodes.NodeNG) -> bool:
    """Whether each iteration of a loop steps a different optimizer: ``for model, optimizer in zip(models,
    optimizers)``."""
    if not isinstance(loop, nodes.For):
        return False
    target = loop.target
    taken = {one.name for one in (target, *nodes_of(target, nodes.AssignName)) if isinstance(one, nodes.AssignName)}
    taken = {name for name in taken if _NAMED.search(name)}
    return bool(taken) and any(_steps(call, taken) for call in nodes_of(loop, nodes.Call))


def _steps(call: nodes.Call, names: set[str]) -> bool:
    """``optimizer.step()`` or ``scaler.step(optimizer)`` with one of these names."""
    if not isinstance(call.func, nodes.Attribute) or call.func.attrname != "step":
        return False
    return any(isinstance(one, nodes.Name) and one.name in names for one in (call.func.expr, *call.args))
