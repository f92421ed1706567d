"""Functions that read a number immediately: torch functions that use it as a size, and Python functions that pass it
on."""

from __future__ import annotations

from ldlm_lint.vocabulary.tensors import SIZES_OF_FUNCTIONS, SIZES_OF_METHODS

MAKES_SIZES = frozenset({*SIZES_OF_FUNCTIONS, *SIZES_OF_METHODS, "range", "trange"})
HANDS_ON = frozenset({"int", "float", "round", "abs", "min", "max", "bool"})
"""``int(x.item())``, ``max(1, x.item())``."""
FINITE = frozenset({"isnan", "isinf", "isfinite"})
TAKES_HOST_VALUES = frozenset({"pack_padded_sequence", "linear_sum_assignment", "rpc_sync", "rpc_async", "remote"})
"""Functions that take their arguments from the host, whatever waits for them."""
