"""Data loaders by their public dotted names: torch's own, and those of other packages that pass their options on to
it.
"""

from __future__ import annotations

TORCH = frozenset(
    {
        "torch.utils.data.DataLoader",
        "torch.utils.data.dataloader.DataLoader",
        "torchdata.stateful_dataloader.StatefulDataLoader",
        "torchdata.stateful_dataloader.stateful_dataloader.StatefulDataLoader",
    }
)
"""Those that take torch's parameters in torch's order."""
STREAMS = frozenset({"webdataset.WebLoader", "webdataset.compat.WebLoader", "webdataset.pipeline.WebLoader"})
"""Loaders of streams that share their samples out between the workers; they take torch's parameters in torch's order."""
_OF_GRAPHS = (
    "DataLoader", "DataListLoader", "DenseDataLoader", "NeighborLoader", "LinkNeighborLoader", "HGTLoader", "ClusterLoader",
    "GraphSAINTNodeSampler", "GraphSAINTEdgeSampler", "GraphSAINTRandomWalkSampler", "ShaDowKHopSampler", "RandomNodeLoader",
    "TemporalDataLoader", "NodeLoader", "LinkLoader",
)  # fmt: skip
GRAPHS = frozenset(
    {f"torch_geometric.loader.{name}" for name in _OF_GRAPHS}
    | {f"torch_geometric.data.{name}" for name in ("DataLoader", "DataListLoader", "DenseDataLoader", "NeighborSampler")}
    | {"torch_geometric.loader.NeighborSampler", "dgl.dataloading.DataLoader", "dgl.dataloading.GraphDataLoader"}
)
"""Loaders of graphs; what they do not know of their keywords goes to torch."""
OTHERS = frozenset({"monai.data.DataLoader", "litdata.StreamingDataLoader", "lightning.data.StreamingDataLoader"})
LOADERS_OF_TORCH = frozenset({"torch.utils.data.DataLoader", "torchdata.stateful_dataloader.StatefulDataLoader"})
"""Those that trainings call."""
ITERABLE_DATASETS = frozenset({"torch.utils.data.IterableDataset", "torch.utils.data.dataset.IterableDataset"})
DISTRIBUTED_SAMPLERS = frozenset({"torch.utils.data.DistributedSampler", "torch.utils.data.distributed.DistributedSampler"})
LOADERS = TORCH | STREAMS | GRAPHS | OTHERS
PASSES = frozenset({"shuffle", "batched", "unbatched", "map", "map_dict", "map_tuple", "select", "slice", "with_length", "compose", "then", "pipe"})
"""Methods of a stream's loader that give a loader of the same stream."""
ENDLESS = frozenset({"repeat", "with_epoch"})
"""Those that make one pass of the whole run, or decide where it ends."""
