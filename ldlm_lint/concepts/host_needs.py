"""Reads that nothing can replace: of actions for an environment, of lengths and sizes that Python needs, of costs for a solver on the host."""

from __future__ import annotations

import re

from ldlm_lint.concepts.reading import Need, Reading
from ldlm_lint.concepts.type_tests import root_of
from ldlm_lint.patterns import lazily
from ldlm_lint.program.modules import Module
from ldlm_lint.vocabulary.reading import TAKES_HOST_VALUES

# An environment takes its actions, and packing its lengths, from the host; what they are called is all that tells.
_NEEDED_ON_HOST = lazily(r"(^|_)(actions?|act|acts|choice|lengths?|lens|seq_?lens?|sizes?|splits?)(_|$)", re.I)
# Of what `.item()` reads: an action, and the greatest length, which kernels for sequences of many lengths take as a number.
_NUMBERS_ON_HOST = lazily(r"(^|_)(actions?|max_?(seq_?)?len(gth)?s?)(_|$)")


def is_needed(module: Module, reading: Reading, call: int) -> bool:
    """Whether a method that reads a tensor (row) gives what can come from the host only."""
    row = module.nodes[call]
    receiver, is_item = module.nodes[row[1]][1], module.last_name(row[1]) == "item"
    names = {module.last_name(receiver), reading.name_of(root_of(module, receiver)), *reading.names_given(call)}
    if is_item and not reading.is_returned(call):
        if any(map(_NUMBERS_ON_HOST.search, names)) or reading.need_of(call) is Need.SIZES:
            return True
    elif any(map(_NEEDED_ON_HOST.search, names)):
        return True
    return reading.is_given_to(call, TAKES_HOST_VALUES)


__all__ = ["is_needed"]
