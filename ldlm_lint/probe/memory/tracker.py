"""Live and peak bytes of everything that operators allocate, by kind: a dispatch mode, for fake and for real tensors.

Allocations inside a kernel are not seen. `torch.distributed._tools.mem_tracker` does the same, and the tests compare
with it; it has no steady state (one iteration only) and needs torch 2.5.
"""

from __future__ import annotations

import weakref
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten

PARAMETERS = "parameters"
BUFFERS = "buffers"
INPUTS = "inputs"
GRADIENTS = "gradients"
STATE = "optimizer state"
ACTIVATIONS = "activations"
TEMPORARIES = "temporaries"
KINDS = (PARAMETERS, BUFFERS, INPUTS, GRADIENTS, STATE, ACTIVATIONS, TEMPORARIES)

FORWARD, BACKWARD, STEP = "forward", "backward", "optimizer step"
# CUDACachingAllocator.cpp (kMinBlockSize): sizes are rounded up to multiples of this.
CUDA_BLOCK = 512


class Tracker(TorchDispatchMode):
    """Counts storages from the operator that returned them until they are released.

    ``phase`` is the current part of the training step: storages of the forward are activations, those of the backward
    and the optimizer temporaries until `see` changes that. ``peak`` is the most bytes alive at once since
    `forget_peak`, ``at_peak`` the bytes by kind at that moment, and ``peaks`` the peak of each phase.
    """

    def __init__(self, block: int = 1) -> None:
        super().__init__()
        self.block = block
        self.phase = FORWARD
        self.total = 0
        self.by_kind = dict.fromkeys(KINDS, 0)
        self._known: dict[int, list[Any]] = {}
        self.forget_peak()

    def forget_peak(self) -> None:
        """Reset the peak to the bytes alive now."""
        self.peak, self.at_peak, self.peak_phase = self.total, dict(self.by_kind), self.phase
        self.peaks: dict[str, int] = {}

    def enter(self, phase: str) -> None:
        """The training step is in this phase now."""
        self.phase = phase
        self.peaks[phase] = max(self.peaks.get(phase, 0), self.total)

    def see(self, tensor: torch.Tensor, kind: str) -> None:
        """Count a tensor as this kind from now on."""
        for storage in _storages(tensor):
            known = self._known.get(id(storage))
            if known is None:
                self._add(storage, kind)
            elif known[1] != kind:
                self.by_kind[known[1]] -= known[0]
                self.by_kind[kind] += known[0]
                known[1] = kind

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run the operator and count the storages that are new in its result."""
        result = func(*args, **(kwargs or {}))
        kind = ACTIVATIONS if self.phase == FORWARD else TEMPORARIES
        for one in (result,) if isinstance(result, torch.Tensor) else tree_flatten(result)[0]:
            if isinstance(one, torch.Tensor):
                for storage in _storages(one):
                    if id(storage) not in self._known:
                        self._add(storage, kind)
        return result

    def _add(self, storage: Any, kind: str) -> None:
        size = -(-storage.nbytes() // self.block) * self.block
        key = id(storage)
        # The weak reference is kept with the record: without it the callback would never run.
        self._known[key] = [size, kind, weakref.ref(storage, lambda _: self._release(key))]
        self.by_kind[kind] += size
        self.total += size
        if self.total > self.peak:
            self.peak, self.at_peak, self.peak_phase = self.total, dict(self.by_kind), self.phase
        self.peaks[self.phase] = max(self.peaks.get(self.phase, 0), self.total)

    def _release(self, key: int) -> None:
        size, kind, _ = self._known.pop(key)
        self.by_kind[kind] -= size
        self.total -= size


def supported() -> bool:
    """Whether this torch keeps the Python object of a storage as long as the storage (2.1 and later do)."""
    tensor = torch.empty(1)
    return weakref.ref(tensor.untyped_storage())() is not None


def _storages(tensor: torch.Tensor) -> list[Any]:
    """The storages behind a tensor; of a wrapper subclass (DTensor, quantized) those of the tensors inside."""
    names = getattr(tensor, "__tensor_flatten__", None)
    if names is not None:
        return [storage for name in names()[0] for storage in _storages(getattr(tensor, name))]
    if tensor.layout is not torch.strided:
        return []
    return [tensor.untyped_storage()]
