"""The calls with configuration values that rules check, and the conditions on such a call."""

from __future__ import annotations

from typing import NamedTuple

from ldlm_lint import tables
from ldlm_lint.python.slots import LOADERS

_LOADER = tables.positional("torch.utils.data.DataLoader")
_DDP = frozenset({"torch.nn.parallel.DistributedDataParallel"})
_WRAPPERS = frozenset({"torch.nn.parallel.DistributedDataParallel", "accelerate.DistributedDataParallelKwargs"})
_OPTIMIZERS = frozenset({"torch.optim.Adam", "torch.optim.AdamW", "torch.optim.SGD"})


class Topic(NamedTuple):
    """A parameter of some calls.

    ``asks`` are the questions about a call; a topic with ``only_in_force`` reports nothing if every launch of the file
    sets another value.
    """

    sinks: frozenset[str]
    parameter: str
    asks: tuple[str, ...]
    positional: tuple[str, ...] = ()
    only_in_force: bool = True


TOPICS = {
    # Users who start the program without the override get the value, and a node full of processes, so it should be
    # fixed.
    "too-many-workers": Topic(LOADERS, "num_workers", ("belongs-to-training", "each-rank-has-its-loader"), _LOADER, only_in_force=False),
    "all-cpus-for-workers": Topic(LOADERS, "num_workers", ("belongs-to-training", "runs-many-ranks"), _LOADER, only_in_force=False),
    "no-workers": Topic(LOADERS, "num_workers", ("loader-feeds-training", "dataset-works-per-item"), _LOADER),
    "workers-not-persistent": Topic(LOADERS, "persistent_workers", ("loader-is-reiterated",), _LOADER),
    "unused-parameters": Topic(_WRAPPERS, "find_unused_parameters", ("wrapped-model-trains",)),
    "reentrant-checkpoint": Topic(_DDP, "find_unused_parameters", ("model-checkpoints-reentrantly",)),
    "static-graph": Topic(_DDP, "static_graph", ("no-sync-on-wrap",)),
    "not-fused": Topic(_OPTIMIZERS, "fused", ("optimizer-trains-on-cuda",)),
}

TIMEOUTS: dict[str, tuple[str, ...]] = {
    name: tables.positional(name)
    for name in ("torch.distributed.init_process_group", "torch.distributed.new_group", "accelerate.InitProcessGroupKwargs")
} | {"deepspeed.init_distributed": (), "lightning.strategies.DDPStrategy": (), "lightning.strategies.FSDPStrategy": ()}
