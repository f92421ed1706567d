"""What to do instead of a wait for the device, by the operation that waits and by what the value is for."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

TESTED = "use `torch.where`, or test only every N steps"
ALL_AT_ONCE = "read all of them at once with one `.tolist()`"
FILLED = "use `torch.where`, which does not need the number of elements"
COPIED = "keep %s on the GPU and copy it to the CPU only when you log"
_SHOWN = "show it only every N steps"
_ON_HOST_FIRST = "compute it on the CPU before the batch is moved"
_OF_UNKNOWN_SIZE = ("nonzero", "unique", "masked_select", "argwhere", "where", "unique_consecutive")
ALWAYS: Mapping[str, str] = MappingProxyType(
    {
        "format": _SHOWN,
        "print": _SHOWN,
        "type": "keep it on the GPU and copy it to the CPU only when you log",
        "add_scalar": "write it only every N steps",
        "scale": "read the scale only every N steps",
        "repeat_interleave": "give `output_size` if the length of the result is known",
    }
)
"""By operations whose values have one purpose only."""


class Advice(NamedTuple):
    """What to do: for a value that a batch alone decides, and for one that the model computed."""

    of_batch: str
    of_model: str


DECIDED = Advice(f"{_ON_HOST_FIRST}, or use `torch.where`", "decide it on the GPU: `torch.where`, `clamp` and `torch.maximum` take tensors")
RUNS = Advice(
    f"it decides which code runs: {_ON_HOST_FIRST}, or decide only every N steps",
    "it decides which code runs, and no tensor operation can: decide only every N steps, or count in Python",
)
INDEXED = Advice(DECIDED.of_batch, "use `index_select` or `gather`, which take the index as a tensor")
SIZED = Advice("compute the size on the CPU before the batch is moved", "use a fixed size and a mask, or read all sizes with one `.tolist()`")
OTHERWISE = Advice("compute it before the batch is moved, or use `torch.where`", "use it as a tensor: `torch.where`, `clamp` and `torch.maximum` take one")
_BOUND = Advice("compute the bound on the CPU before the batch is moved, or use a mask", "use a mask, or read all bounds with one `.tolist()`")
_SELECTED = Advice(
    "select on the CPU before the batch is moved, or keep all rows and weigh them with the mask",
    "keep all rows and weigh them with the mask: `(x * mask).sum() / mask.sum()`",
)
_COUNTED = Advice(
    f"only the GPU knows the size of its result; {_ON_HOST_FIRST}, or use a mask", "only the GPU knows the size of its result; use a mask or a fixed size"
)
_EXTREME = Advice(f"{_ON_HOST_FIRST}, or use `torch.maximum` or `clamp`", "`torch.maximum`, `torch.minimum` and `clamp` give a tensor without a wait")
BY_OPERATION: Mapping[str, Advice] = MappingProxyType(
    {"size": SIZED, "slice": _BOUND, "mask": _SELECTED, "min": _EXTREME, "max": _EXTREME, "range": SIZED, **dict.fromkeys(_OF_UNKNOWN_SIZE, _COUNTED)}
)
