"""How much memory autograd holds for the backward pass, on a CPU, where no allocator tells."""

from __future__ import annotations

from collections import Counter

import torch
from torch import Tensor


class SavedBytes(torch.autograd.graph.saved_tensors_hooks):
    """A context in which ``peak`` is the most bytes that were saved for backward at once.

    A storage counts once, however many operations save it; parameters, which are held anyway, do not count. What a
    checkpointed segment saves while it is computed anew in backward goes to the segment's own hooks and is not seen.
    """

    def __init__(self) -> None:
        self.live = 0
        self.peak = 0
        self._holders: Counter[int] = Counter()
        super().__init__(self._pack, _unpack)

    def _pack(self, tensor: Tensor) -> _Held | Tensor:
        if tensor.is_leaf and tensor.requires_grad:
            return tensor
        storage = tensor.untyped_storage()
        self._holders[storage.data_ptr()] += 1
        if self._holders[storage.data_ptr()] == 1:
            self.live += storage.nbytes()
            self.peak = max(self.peak, self.live)
        return _Held(tensor, self)

    def release(self, tensor: Tensor) -> None:
        """One holder of a tensor is gone."""
        storage = tensor.untyped_storage()
        self._holders[storage.data_ptr()] -= 1
        if not self._holders[storage.data_ptr()]:
            self.live -= storage.nbytes()


class _Held:
    """A saved tensor, until autograd lets go of it."""

    def __init__(self, tensor: Tensor, saved: SavedBytes) -> None:
        self.tensor = tensor
        self.saved = saved

    def __del__(self) -> None:
        self.saved.release(self.tensor)


def _unpack(held: _Held | Tensor) -> Tensor:
    return held.tensor if isinstance(held, _Held) else held
