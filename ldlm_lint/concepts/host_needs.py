"""Reads that cannot be avoided: actions for an environment, lengths for packing, costs for a solver on the host.

A number that tensors are created or sliced with does not belong to them: it can be computed before the batch is moved.
"""

from __future__ import annotations

import re

from ldlm_lint.concepts.reading import Reading
from ldlm_lint.concepts.type_tests import root_of
from ldlm_lint.patterns import lazily
from ldlm_lint.program.modules import Module
from ldlm_lint.vocabulary.reading import TAKES_HOST_VALUES

# An environment takes its actions, and packing its lengths, from the host; only their names show it.
_NEEDED_ON_HOST = lazily(r"(^|_)(actions?|act|acts|choice|lengths?|lens|seq_?lens?|sizes?|splits?)(_|$)", re.I)
_ACTION = lazily(r"(^|_)actions?(_|$)")


def is_needed(module: Module, reading: Reading, call: int) -> bool:
    """Whether a method that reads a tensor (row) provides something that must be on the host."""
    row = module.nodes[call]
    receiver, is_item = module.nodes[row[1]][1], module.last_name(row[1]) == "item"
    names = {module.last_name(receiver), reading.name_of(root_of(module, receiver)), *reading.names_given(call)}
    if is_item and not reading.is_returned(call):
        if any(map(_ACTION.search, names)):
            return True
    elif any(map(_NEEDED_ON_HOST.search, names)):
        return True
    return reading.is_given_to(call, TAKES_HOST_VALUES)


__all__ = ["is_needed"]
