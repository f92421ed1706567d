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
SENDS = frozenset(
    "requests httpx aiohttp urllib urllib3 http grpc zmq socket websocket websockets redis ray openai "
    "anthropic tritonclient vllm sglang scipy sklearn gym gymnasium".split()
)
"""Packages whose functions and objects take what they are given on the host: to another process, or to compute there (read in November 2026)."""
ANSWERS = frozenset("send sendall send_bytes send_json send_pyobj sendto put put_nowait".split())
"""Their functions that have no result: the other side has what it needs."""
DECODES = frozenset({"decode", "batch_decode"})
"""Methods of tokenizers that make texts of numbers."""
COLLECTS = frozenset("append extend add insert update appendleft".split())
"""Methods of a container that put something into it."""
READS = frozenset({"item", "tolist", "cpu", "numpy", "to"})
"""Methods of a tensor that copy it to the host."""
