"""The environment variables that PyTorch and NCCL read: dated tables, and the nearest real name of a misspelt one.

Refreshing: ``scripts/refresh_tables.py`` collects the real names from torch's headers; the removed ones are marked
"removed in" in ``docs/userguide/source/env.rst`` of NVIDIA/nccl; an unread name has no occurrence in either source
tree, nor in the strings of ``libtorch_cuda.so``.
"""

from __future__ import annotations

import difflib
import functools

from ldlm_lint import tables

AS_OF = f"torch {tables.newest_torch()} and NCCL 2.30"
PREFIX = "TORCH_NCCL_"
_PREFIX_OF_NCCL = "NCCL_"
_SIMILARITY = 0.8
# Of NCCL's own variables none has a similarity above 0.82 to one of torch's without its prefix.
_SIMILARITY_WITHOUT_PREFIX = 0.9

# Names that torch still reads, and their replacements in torch 2.2.
RENAMED: dict[str, str] = {
    f"{_PREFIX_OF_NCCL}{suffix}": f"{PREFIX}{suffix}"
    for suffix in (
        "ASYNC_ERROR_HANDLING",
        "BLOCKING_WAIT",
        "DESYNC_DEBUG",
        "ENABLE_TIMING",
        "USE_TENSOR_REGISTER_ALLOCATOR_HOOK",
    )
}

UNREAD: dict[str, str] = {
    "NCCL_TIMEOUT": "set the collective timeout with `init_process_group(timeout=...)`",
    "NCCL_SOCKET_TIMEOUT": "NCCL reads `NCCL_SOCKET_RETRY_CNT` and `NCCL_SOCKET_RETRY_SLEEP_MSEC`",
    "NCCL_COMM_TIMEOUT": "set the collective timeout with `init_process_group(timeout=...)`",
    "TORCH_DISTRIBUTED_TIMEOUT": "set the collective timeout with `init_process_group(timeout=...)`",
    "TORCH_DISTRIBUTED_DEFAULT_TIMEOUT": "set the collective timeout with `init_process_group(timeout=...)`",
    "TORCH_DDP_TIMEOUT": "set the collective timeout with `init_process_group(timeout=...)`",
    "GLOO_TIMEOUT": "set the collective timeout with `init_process_group(timeout=...)`",
    "TORCH_NCCL_FLIGHT_RECORDER_ENABLED": "the flight recorder is on when `TORCH_NCCL_TRACE_BUFFER_SIZE` is above 0",
}

# Names that users set in seconds for `timeout` of `init_process_group`.
TIMEOUTS = frozenset(
    ("NCCL_TIMEOUT", "NCCL_COMM_TIMEOUT", "TORCH_DISTRIBUTED_TIMEOUT", "TORCH_DISTRIBUTED_DEFAULT_TIMEOUT", "TORCH_DDP_TIMEOUT")
)

REMOVED: dict[str, str] = {
    "NCCL_TREE_THRESHOLD": "2.5",
    "NCCL_LL_THRESHOLD": "2.5",
    "NCCL_IB_CUDA_SUPPORT": "2.4",
    "NCCL_SINGLE_RING_THRESHOLD": "2.3",
}

READ = tables.nccl_variables()


def why_ineffective(name: str) -> str | None:
    """Why setting a variable has no effect, with the date of that information; None if it may have one."""
    if name in UNREAD:
        return f"neither PyTorch nor NCCL reads it (as of {AS_OF}); {UNREAD[name]}"
    if name in REMOVED:
        return f"NCCL {REMOVED[name]} removed it, and no later version reads it (as of {AS_OF}); remove it"
    nearest = misspelling_of(name)
    if nearest is None:
        return None
    nobody = "torch has no such variable" if name.startswith(PREFIX) else "neither torch nor NCCL has such a variable"
    return f"{nobody} (as of {AS_OF}); did you mean `{nearest}`?"


@functools.lru_cache(maxsize=1024)
def misspelling_of(name: str) -> str | None:
    """The real ``TORCH_NCCL_*`` variable that an unknown one resembles, None if none is close.

    So is a name without the ``TORCH_`` of one that had it from the start: ``NCCL_HEARTBEAT_TIMEOUT_SEC``.
    """
    prefix = next((one for one in (PREFIX, _PREFIX_OF_NCCL) if name.startswith(one)), "")
    if not prefix or name in READ or name in UNREAD or name in RENAMED or name in REMOVED:
        return None
    suffixes = [real.removeprefix(PREFIX) for real in sorted(READ)]
    similarity = _SIMILARITY if prefix == PREFIX else _SIMILARITY_WITHOUT_PREFIX
    close = difflib.get_close_matches(name.removeprefix(prefix), suffixes, n=1, cutoff=similarity)
    return PREFIX + close[0] if close else None
