"""Names of attention: its operands, the functions that multiply, and the kernels that compute it as a whole (November 2026).

A product of queries and keys and one of other tensors look alike in code, so that only the names of the operands tell them
apart; and a class that has a way with a fused kernel may reach it by a function that the program does not show.
"""

from __future__ import annotations

import re

from ldlm_lint.patterns import lazily

PRODUCTS = frozenset({"matmul", "bmm", "einsum", "baddbmm"})
"""Functions of torch and methods of tensors."""
SOFTMAXES = ("softmax", "_softmax", "Softmax", "()Softmax")
QUERY_OR_KEY = lazily(
    r"^(q|k|qs|ks|queries|keys|qk\w*)$|(^|_)(q|k|query|key)(_|$)|^(query|key)\w*|^w_?[qk]$|^[qk]_\w+|\w+_[qk]$", re.I
)
FUSED = lazily(r"scaled_dot_product_attention|flash_attn|flash_attention|memory_efficient_attention|flex_attention|xformers|sdpa|fused_attn")
