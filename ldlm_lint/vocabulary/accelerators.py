"""Calls that block or empty an accelerator, by the names of torch (2.13, docs.pytorch.org/docs/stable, read in November
2026)."""

from __future__ import annotations

DEVICES = ("cuda", "xpu", "mps", "npu", "accelerator")
SYNCHRONIZES = frozenset({f"torch.{one}.synchronize" for one in DEVICES} | {"torch.cuda.current_stream.synchronize"})
EMPTY = "empty_cache"
EMPTIES = frozenset(f"torch.{one}.{EMPTY}" for one in DEVICES)
AVAILABLE = frozenset(f"torch.{one}.is_available" for one in DEVICES)
