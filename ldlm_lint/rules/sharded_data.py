"""Family 71: which rank and worker sees which sample."""

from __future__ import annotations

from ldlm_lint.model import Applicability, Confidence, Consequence, Frequency, Probe, Reference, Rule

_SAMPLER = Reference(
    "torch.utils.data.distributed.DistributedSampler",
    "https://docs.pytorch.org/docs/stable/data.html#torch.utils.data.distributed.DistributedSampler",
)
_ITERABLE = Reference(
    "torch.utils.data.IterableDataset", "https://docs.pytorch.org/docs/stable/data.html#torch.utils.data.IterableDataset"
)
_DDP = Reference(
    "Getting started with DistributedDataParallel", "https://docs.pytorch.org/tutorials/intermediate/ddp_tutorial.html"
)

SAMPLER_WITHOUT_SET_EPOCH = Rule(
    code="W7111",
    symbol="sampler-without-set-epoch",
    frequency=Frequency.EPOCH,
    consequence=Consequence.WRONG_RESULT,
    message="%(where)s goes through the data in the same order in every epoch: %(sampler)s derives its order from the "
    "epoch number, which this training never sets; call `set_epoch(epoch)` at the start of each epoch",
    summary="A shuffling `DistributedSampler` whose loader is iterated repeatedly, without `set_epoch` between the "
    "epochs.",
    rationale="`DistributedSampler` shuffles with a generator seeded by `seed + epoch`, and its epoch stays 0 until "
    "`set_epoch(epoch)` is called. Without the call, or with the same number in each epoch, each rank gets the same "
    "samples in the same order, so the batches are the same in every epoch.",
    cost="The data is shuffled once instead of in every epoch, which can reduce the quality of the trained model. Not "
    "measured here.",
    exceptions="A sampler with `shuffle=False`, evaluation, and a run of one epoch. Accelerate and Lightning call "
    "`set_epoch` on the samplers of the loaders that they are given, and the Hugging Face Trainer on the loaders it "
    "creates.",
    versions="All versions. The sampler is in the main process, so `set_epoch` works with `persistent_workers=True` "
    "too.",
    verification="Compare `list(sampler)` before and after an epoch on one rank; a CPU and one process are enough.",
    references=(
        _SAMPLER,
        Reference(
            "torch/utils/data/distributed.py, __iter__ and set_epoch",
            "https://github.com/pytorch/pytorch/blob/v2.10.0/torch/utils/data/distributed.py",
        ),
    ),
    reads=("py",),
    triggers=(b"DistributedSampler", b".backward("),
    applicability=Applicability.UNSAFE,
    fix_safety="Unsafe: each epoch then has another order, which is the purpose of shuffling, but runs are no longer "
    "comparable sample by sample with earlier ones.",
    probe=Probe("sampler-epochs", "a shuffling sampler gave two passes the same order"),
)

UNSHARDED_DATA = Rule(
    code="W7112",
    symbol="unsharded-distributed-data",
    frequency=Frequency.EPOCH,
    consequence=Consequence.WRONG_RESULT,
    message="this DataLoader shuffles without a `DistributedSampler`: each rank of this DDP training goes through the "
    "whole dataset, so every sample is used once per rank in an epoch; pass `sampler=DistributedSampler(...)` instead of "
    "`shuffle=True`",
    summary="A shuffling DataLoader without a sampler in a DDP training of several ranks.",
    rationale="A `DataLoader` does not know about ranks. Without a `DistributedSampler`, or a dataset that is split "
    "by rank, each rank draws from all samples: an epoch goes through the data once per rank, and with the same seed "
    "on every rank all ranks compute the same batches.",
    cost="An epoch costs as many passes over the data as there are ranks, or, with equal seeds, additional ranks "
    "contribute nothing. Not measured here.",
    exceptions="A dataset that reads only its rank's share, data that is drawn with replacement and counted in steps, "
    "an engine that inserts its own sampler (Accelerate, Lightning, the Hugging Face Trainer).",
    versions="All versions.",
    verification="Print the indices of the first batches on two ranks, and the length of the loader next to the size "
    "of the dataset.",
    references=(_SAMPLER, _DDP),
    reads=("py",),
    triggers=(b"DataLoader",),
    confidence=Confidence.LOW,
    default=False,
)

UNSHARDED_ITERABLE = Rule(
    code="W7113",
    symbol="unsharded-iterable-dataset",
    frequency=Frequency.EPOCH,
    consequence=Consequence.WRONG_RESULT,
    message="`%(dataset)s.__iter__` does not use `get_worker_info()`: every worker of the loader at %(where)s yields "
    "all samples, so each sample comes once per worker; split the samples with `get_worker_info()`",
    summary="An `IterableDataset` that does not split its samples between workers, read by a loader with workers.",
    rationale="Each worker process of a `DataLoader` gets a copy of the dataset object and iterates all of it. An "
    "`__iter__` that uses neither `torch.utils.data.get_worker_info()` nor the rank yields every sample once per "
    "worker.",
    cost="Every sample comes as many times as there are workers, in batches that repeat each other; an epoch takes "
    "that many times longer. Not measured here.",
    exceptions="An endless stream of random samples that are drawn independently in each worker, and a dataset that a "
    "`worker_init_fn` splits.",
    versions="All versions.",
    verification="Collect the samples of one iteration with `num_workers=2` and look for repetitions; a CPU is enough.",
    references=(_ITERABLE,),
    reads=("py",),
    triggers=(b"IterableDataset",),
    confidence=Confidence.MEDIUM,
    default=False,
)

RULES: tuple[Rule, ...] = (SAMPLER_WITHOUT_SET_EPOCH, UNSHARDED_DATA, UNSHARDED_ITERABLE)
