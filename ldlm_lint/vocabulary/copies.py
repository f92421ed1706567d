"""Calls that read, wait for or only inspect a tensor, by the names of torch (2.13, docs.pytorch.org/docs/stable, read
in November 2026)."""

from __future__ import annotations

VIEWS = frozenset(
    "detach view reshape squeeze unsqueeze flatten permute transpose t contiguous view_as expand data T unbind split chunk".split()
)
"""A view of the memory, or the tensor itself: nothing is read yet."""
READS = frozenset(
    "item tolist numpy clone float double half int long bool sum mean std max min argmax argmin any all abs norm nonzero unique topk "
    "sort exp log mul add div sub".split()
)
GOES_THROUGH = frozenset({"enumerate", "zip", "reversed", "tqdm"})
READING_BUILTINS = frozenset({"float", "int", "bool", "print", "str", "repr", "list", "sum", "max", "min", "sorted"})
READING_CALLS = frozenset({"torch.save", "pickle.dump", "pickle.dumps", "torch.isnan", "torch.isfinite", "torch.equal", "torch.allclose"})
WAITS = frozenset(
    "synchronize wait wait_stream wait_event query elapsed_time barrier synchronize_stream record record_event record_stream".split()
)
BLOCKS = frozenset({"item", "tolist", "cpu", "numpy"})
LOOKS = frozenset({"shape", "dtype", "device", "ndim"})
