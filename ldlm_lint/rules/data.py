"""Family 71, data loading: what a DataLoader costs when its workers start anew or wait."""

from __future__ import annotations

from ldlm_lint.model import Applicability, Option, Probe, Reference, Rule, Scope

_DATALOADER = Reference("torch.utils.data.DataLoader", "https://docs.pytorch.org/docs/stable/data.html#torch.utils.data.DataLoader")
_MULTIPROCESS = Reference(
    "Multi-process data loading", "https://docs.pytorch.org/docs/stable/data.html#multi-process-data-loading"
)
_TUNING = Reference(
    "PyTorch performance tuning guide",
    "https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html#enable-asynchronous-data-loading-and-augmentation",
)

PREFETCH_FACTOR = Option("prefetch-factor", 4, "prefetch_factor that the fix of dataloader-without-prefetch writes, in batches per worker")

PERSISTENT_WORKERS = Rule(
    code="R7101",
    symbol="dataloader-without-persistent-workers",
    message="this DataLoader is iterated again and again (%(where)s), and each time it starts its workers anew: "
    "persistent_workers is not set",
    summary="A loader with workers that is iterated more than once without `persistent_workers`.",
    rationale="Without `persistent_workers=True` a DataLoader shuts its worker processes down when an iteration ends and starts "
    "them again for the next one: processes are forked or spawned, the dataset is copied or pickled, imports and file handles "
    "are opened again, and the first batches of every epoch have to wait.",
    cost="One worker start-up per epoch and per evaluation. Not measured here in general: reports range from seven minutes to 35 "
    "seconds per epoch start in one project (mmhuman3d#233) to no difference on Linux in another (delta-interpolator#3). "
    "It matters where epochs are short or the dataset is heavy to start.",
    exceptions="A loader that is iterated once, an infinite sampler, very long epochs, or memory so tight that the workers' copies "
    "of the dataset must go between epochs. A dataset whose state the main process changes between epochs: persistent "
    "workers keep the copy that they started with.",
    versions="torch >= 1.7. `persistent_workers=True` with `num_workers=0` raises ValueError in every version, so the fix is "
    "guarded wherever the number of workers is not a literal.",
    verification="Time the first batch of the second epoch with and without the option, or watch worker process ids across epochs.",
    references=(
        _DATALOADER,
        _MULTIPROCESS,
        Reference("mmhuman3d#233", "https://github.com/open-mmlab/mmhuman3d/pull/233"),
        Reference("delta-interpolator#3", "https://github.com/boreshkinai/delta-interpolator/pull/3"),
    ),
    reads=("py",),
    triggers=(b"DataLoader",),
    applicability=Applicability.UNSAFE,
    fix_safety="Unsafe: the workers keep their copies of the dataset in memory between epochs, do not see later changes to the "
    "dataset object, and their random streams continue instead of being seeded anew, so shuffling and augmentation differ.",
    probe=Probe("loader-first-batch-wait", "the first batch of a later epoch waits for worker start-up"),
    scope=Scope.PROJECT,
)

PREFETCH = Rule(
    code="I7102",
    symbol="dataloader-without-prefetch",
    message="this training DataLoader has workers but keeps the default of 2 prefetched batches per worker: "
    "prefetch_factor is not set",
    summary="A training loader with workers that leaves `prefetch_factor` at its default of 2 batches per worker.",
    rationale="Each worker prepares `prefetch_factor` batches ahead (2 by default). Where the time to load a batch varies, for "
    "instance with files on a network disk, a deeper queue evens out the slow ones; where loading is slower than the "
    "training step on average, no queue helps and only more or faster workers do.",
    cost="Not measured in general, and often nothing: on a synthetic loader factors of 1, 2 and 4 made no difference. That is why "
    "this is information and never fails a gate.",
    exceptions="Large batches (each prefetched batch lies in host memory or /dev/shm: workers x factor x batch size), or a loader "
    "that keeps up already.",
    versions="torch >= 2.0 has `prefetch_factor=None` as default, which means 2 with workers. A value with `num_workers=0` raises "
    "ValueError, so the fix is guarded wherever the number of workers is not a literal.",
    verification="Measure the share of step time that waits for the loader before and after; keep the default if it does not move.",
    references=(_DATALOADER, _TUNING),
    reads=("py",),
    triggers=(b"DataLoader",),
    applicability=Applicability.UNSAFE,
    fix_safety="Unsafe: it takes more host memory and shared memory (/dev/shm, 64 MB by default in Docker), which can end the workers "
    "with a bus error.",
    options=(PREFETCH_FACTOR,),
    probe=Probe("loader-wait-share", "the step waits for the loader"),
    scope=Scope.PROJECT,
)

RULES = (PERSISTENT_WORKERS, PREFETCH)
