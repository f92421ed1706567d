"""Family 71, data loading: workers that are missing, too many, started anew or waited for, and options that raise."""

from __future__ import annotations

from ldlm_lint.model import Applicability, Confidence, Consequence, Frequency, Option, Probe, Reference, Rule

_DATALOADER = Reference("torch.utils.data.DataLoader", "https://docs.pytorch.org/docs/stable/data.html#torch.utils.data.DataLoader")
_MULTIPROCESS = Reference(
    "Multi-process data loading", "https://docs.pytorch.org/docs/stable/data.html#multi-process-data-loading"
)
_TUNING = Reference(
    "PyTorch performance tuning guide",
    "https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html#enable-asynchronous-data-loading-and-augmentation",
)

_PINNED = Reference("CUDA semantics: pinned memory buffers", "https://docs.pytorch.org/docs/stable/notes/cuda.html#use-pinned-memory-buffers")
_SOURCE = Reference(
    "torch/utils/data/dataloader.py, the checks of the constructor",
    "https://github.com/pytorch/pytorch/blob/v2.10.0/torch/utils/data/dataloader.py",
)
NUM_WORKERS = Option(
    "num-workers",
    4,
    "num_workers that the fix of dataloader-in-main-process writes, in workers per rank",
    minimum=1,
    below="workers-limit",
)
# Half of it is at least one worker.
WORKERS_LIMIT = Option(
    "workers-limit", 16, "smallest number of loader workers per rank that is too many; the fix writes half of it", minimum=2
)
SHARE_CORES = "divide them by the number of ranks on the node"
MOST_WITH_DEEPER_QUEUE = 8
"""Workers up to which more prefetched batches are advised: with many, and with the CPU count of a node, they fill /dev/shm."""
PREFETCH_FACTOR = Option(
    "prefetch-factor",
    4,
    "prefetch_factor that the fix of dataloader-without-prefetch writes, in batches per worker",
    minimum=1,
)

PERSISTENT_WORKERS = Rule(
    code="R7101",
    symbol="dataloader-without-persistent-workers",
    frequency=Frequency.EPOCH,
    consequence=Consequence.SLOW,
    message="this DataLoader is iterated again and again (%(where)s) and starts its worker processes anew each time, "
    "because `persistent_workers` is %(how)s: training waits for the first batch of every epoch; set "
    "`persistent_workers=True`",
    summary="A loader with workers that is iterated more than once without `persistent_workers`.",
    rationale="Without `persistent_workers=True` a DataLoader shuts its worker processes down when an iteration ends and starts "
    "them again for the next one: processes are forked or spawned, the dataset is copied or pickled, imports and file handles "
    "are opened again, and the first batches of every epoch have to wait.",
    cost="One worker start-up per epoch and per evaluation. Not measured here in general: reports range from seven minutes to 35 "
    "seconds per epoch start in one project (mmhuman3d#233) to no difference on Linux in another (delta-interpolator#3). "
    "It matters where epochs are short or the dataset is heavy to start.",
    exceptions="Where `persistent_workers` is switched off by hand, in Python, a configuration or a flag, the finding is information: once for each "
    "value. Not reported are a loader that is iterated once, an infinite sampler, very long epochs, or memory so tight that the workers' copies "
    "of the dataset must go between epochs. A dataset that the main process changes between epochs (`dataset.set_epoch(epoch)`, "
    "`loader.dataset.epoch = epoch`, a new sample): persistent workers would keep the copy that they started with, so such a loader "
    "is not reported. `sampler.set_epoch(epoch)` changes no dataset, since the sampler stays in the main process.",
    versions="torch >= 1.7. `persistent_workers=True` with `num_workers=0` raises ValueError in every version, so the fix is "
    "guarded wherever the number of workers is not a literal.",
    verification="Time the first batch of the second epoch with and without the option, or watch worker process ids across epochs.",
    references=(
        _DATALOADER,
        _MULTIPROCESS,
        Reference("mmhuman3d#233", "https://github.com/open-mmlab/mmhuman3d/pull/233"),
        Reference("delta-interpolator#3", "https://github.com/boreshkinai/delta-interpolator/pull/3"),
    ),
    reads=("py", "sh", "cfg"),
    triggers=(b"DataLoader", b"dataloader_num_workers"),
    setting_triggers=(b"persistent_workers", b"persistent-workers", b"dataloader_num_workers", b"dataloader-num-workers"),
    applicability=Applicability.UNSAFE,
    fix_safety="Unsafe: the workers keep their copies of the dataset in memory between epochs, do not see later changes to the "
    "dataset object, and their random streams continue instead of being seeded anew, so shuffling and augmentation differ from the "
    "second iteration on. A sampler that is seeded with the epoch gives the same batches as before.",
    probe=Probe(
        "loader-starts",
        "starting the workers of the loader again took at least 5 % of its later epochs",
        experiment="dataloader",
    ),
)

PREFETCH = Rule(
    code="I7102",
    symbol="dataloader-without-prefetch",
    frequency=Frequency.STEP,
    consequence=Consequence.SLOW,
    message="`prefetch_factor` is left at 2 batches per worker: when some batches load slowly this buffer can run empty "
    "and the GPU waits; try `prefetch_factor=%(factor)s` (uses more host memory)",
    summary="A training loader with workers that leaves `prefetch_factor` at its default of 2 batches per worker.",
    rationale="Each worker prepares `prefetch_factor` batches ahead (2 by default). Where the time to load a batch varies, for "
    "instance with files on a network disk, a deeper queue evens out the slow ones; where loading is slower than the "
    "training step on average, no queue helps and only more or faster workers do.",
    cost="Not measured in general, and often nothing: on a synthetic loader factors of 1, 2 and 4 made no difference. That is why "
    "this is information and never fails a gate.",
    exceptions="Large batches (each prefetched batch lies in host memory or /dev/shm: workers x factor x batch size), or a loader "
    "that keeps up already. A loader that may have more than 8 workers, or as many as the node has CPUs, is not reported: its queue is "
    "long as it is. Nor is one with too many workers (`dataloader-too-many-workers`), by its code, a launch or a configuration.",
    versions="torch >= 2.0 has `prefetch_factor=None` as default, which means 2 with workers. A value with `num_workers=0` raises "
    "ValueError, so the fix is guarded wherever the number of workers is not a literal.",
    verification="Measure the share of step time that waits for the loader before and after; keep the default if it does not move.",
    references=(_DATALOADER, _TUNING),
    reads=("py", "cfg"),
    triggers=(b"DataLoader",),
    setting_triggers=(b"DataLoader",),
    applicability=Applicability.UNSAFE,
    fix_safety="Unsafe: it takes more host memory and shared memory (/dev/shm, 64 MB by default in Docker), which can end the workers "
    "with a bus error.",
    options=(PREFETCH_FACTOR,),
    probe=Probe("loader-wait-share", "single batches came late, and the training waited for them at least 10 % of the time", experiment="dataloader"),
)

IN_MAIN_PROCESS = Rule(
    code="W7103",
    symbol="dataloader-in-main-process",
    frequency=Frequency.STEP,
    consequence=Consequence.SLOW,
    message="this training DataLoader has no worker processes%(why)s: the training process loads and prepares every batch "
    "itself, and the GPU waits meanwhile; set `num_workers`",
    summary="A training loader with `num_workers=0` or none given, over a dataset that works for each item.",
    rationale="With `num_workers=0`, torch's default, `next(loader)` reads, decodes, tokenises and collates a batch in the training "
    "process, between two steps. Nothing overlaps: each step lasts as long as loading and computing together.",
    cost="The time to load a batch, in every step. Not measured here: it is nothing for tensors in memory and most of the step "
    "for images that are decoded. Measure it before and after.",
    exceptions="A dataset in memory (tensors, tokens, a memory map): workers then add copies between processes and gain nothing. A "
    "dataset on the GPU, which workers cannot use; a stream that would be repeated by each worker; evaluation, tests, toys.",
    versions="All. On Windows and macOS workers are spawned: the dataset and `collate_fn` have to be picklable, and the script needs "
    "`if __name__ == '__main__':`.",
    verification="Measure the share of step time that waits for `next(loader)`; it should be near zero with workers.",
    references=(_DATALOADER, _MULTIPROCESS, _TUNING),
    reads=("py", "sh", "cfg"),
    triggers=(b"DataLoader", b"workers"),
    setting_triggers=(b"workers",),
    confidence=Confidence.MEDIUM,
    applicability=Applicability.UNSAFE,
    fix_safety="Unsafe: workers take memory, get copies of the dataset, draw other random numbers than the main process would, repeat "
    "the items of an iterable dataset that does not share them out, and fail "
    "with what cannot be forked or pickled (open files, CUDA tensors, lambdas where processes are spawned).",
    options=(NUM_WORKERS,),
    probe=Probe("loader-wait-share", "the step waits for the loader", experiment="dataloader"),
)

OPTIONS_WITHOUT_WORKERS = Rule(
    code="E7104",
    symbol="dataloader-worker-options-without-workers",
    consequence=Consequence.CRASH,
    message="this DataLoader sets %(options)s but has no worker processes: it raises %(error)s; set "
    "`num_workers`, or drop %(options)s",
    summary="`prefetch_factor`, `persistent_workers`, `multiprocessing_context` or `timeout` with `num_workers=0` or none given.",
    rationale="These options speak to worker processes. Without workers `DataLoader(...)` raises ValueError for the first three, and "
    "`timeout > 0` raises AssertionError when the loader is iterated.",
    cost="The program ends where the loader is made, or in its first step.",
    exceptions="None: a test that expects the exception is not reported.",
    versions="torch >= 2.0. Before, the default of `prefetch_factor` was 2, and 2 was accepted without workers.",
    verification="Make the loader once.",
    references=(_DATALOADER, _SOURCE),
    reads=("py", "sh", "cfg"),
    triggers=(b"DataLoader", b"dataloader_persistent_workers", b"dataloader_prefetch_factor"),
    setting_triggers=(b"persistent_workers", b"prefetch_factor", b"persistent-workers", b"prefetch-factor"),
    applicability=Applicability.SAFE,
    fix_safety="Safe on every supported version: the call raised before, and without the options it loads in the main process as "
    "`num_workers=0` says. Where a variable holds the 0 the options stay for its other values. Where workers were meant, set "
    "`num_workers` instead. Unsafe where code around the call catches the error, and in a configuration: a launch may give workers.",
)

WORKERS_MAY_BE_ZERO = Rule(
    code="W7105",
    symbol="dataloader-worker-count-may-be-zero",
    consequence=Consequence.CRASH,
    message="`num_workers` can be 0 (%(why)s): with %(options)s set, this DataLoader then raises %(error)s; set "
    "%(options)s only where there are workers",
    summary="A number of workers that can be 0, with options that raise without workers.",
    rationale="A floor division such as `os.cpu_count() // world_size` is 0 as soon as there are more ranks than CPUs, and a "
    "debugging switch or a default of 0 is 0 by intention. `prefetch_factor` and `persistent_workers=True` then raise ValueError.",
    cost="The program ends where the loader is made, on the machine or with the flag that nobody tried.",
    exceptions="A number that something else keeps above 0.",
    versions="torch >= 2.0, where `prefetch_factor=None` is the default that stands for 2 with workers and nothing without.",
    verification="Make the loader with `num_workers=0`.",
    references=(
        _DATALOADER,
        _SOURCE,
        Reference("os.cpu_count", "https://docs.python.org/3/library/os.html#os.cpu_count"),
    ),
    reads=("py",),
    triggers=(b"DataLoader",),
    confidence=Confidence.MEDIUM,
    applicability=Applicability.SAFE,
    fix_safety="Safe on torch >= 2.0: with workers the guarded values are those that were there, and without workers the call raised. "
    "The constructor compares the number with 0 itself, so the comparison raises nothing new. No fix where the number comes from a call "
    "that may not be made twice; unsafe where code around the loader catches the error.",
)

DATALOADER_TOO_MANY_WORKERS = Rule(
    code="W7106",
    symbol="dataloader-too-many-workers",
    consequence=Consequence.SLOW,
    message="%(workers)s DataLoader workers per rank means %(workers)s x (ranks on the node) processes on one node's CPU "
    "cores and memory, which can slow loading down; %(advice)s",
    summary="A number of DataLoader workers per rank that is at least `workers-limit`, or the node's CPU count for each of "
    "its ranks.",
    rationale="`num_workers` counts for each DataLoader of each rank. 16 workers on a node of 8 ranks are 128 processes for the "
    "training set and as many again for a validation set that is open at the same time. They compete for the CPUs with "
    "the ranks themselves, and each holds a copy of the dataset object and `prefetch_factor` batches. "
    "`os.cpu_count()` counts the whole node, whatever share of it a rank or a container has.",
    cost="Host memory and /dev/shm, slow starts, and CPU time that the training processes need. Not measured in general. torch's own "
    "warning compares one loader of one process with the CPUs that this process may use, so it says nothing about "
    "8 ranks of 16 workers on a node with 128 CPUs.",
    exceptions="One process per node with CPUs to spare, or a decoding load that was measured to need them: raise `workers-limit`.",
    versions="All.",
    verification="Count the worker processes on a node and watch its CPU load; lower the number until the loader's wait grows.",
    references=(
        _MULTIPROCESS,
        _SOURCE,
        Reference("os.cpu_count", "https://docs.python.org/3/library/os.html#os.cpu_count"),
        Reference("torchrun, environment variables", "https://docs.pytorch.org/docs/stable/elastic/run.html#environment-variables"),
    ),
    reads=("py", "sh", "cfg"),
    triggers=(b"DataLoader", b"workers", b"WORKERS"),
    setting_triggers=(b"workers", b"WORKERS"),
    applicability=Applicability.UNSAFE,
    fix_safety="Unsafe: fewer workers may be too few for a slow dataset, and the random streams of the workers change with their number. "
    "`LOCAL_WORLD_SIZE` is set by torchrun and by what starts ranks through it; elsewhere 1 is assumed.",
    options=(WORKERS_LIMIT,),
    probe=Probe("loader-workers", "the workers of all ranks of the machine are more than its cores", device_bound=True),
)

WITHOUT_PIN_MEMORY = Rule(
    code="R7107",
    symbol="dataloader-without-pin-memory",
    frequency=Frequency.STEP,
    consequence=Consequence.SLOW,
    message="this training DataLoader returns batches in pageable memory, because `pin_memory` is not set: their copies to "
    "the GPU cannot overlap with computation; set `pin_memory=True`",
    summary="A loader with workers that feeds a training on CUDA without `pin_memory`.",
    rationale="A copy from pageable host memory goes through a staging buffer of the driver and blocks the host. With "
    "`pin_memory=True` a thread of the loader moves each batch to page-locked memory while the step runs, and "
    "`batch.to(device, non_blocking=True)` can then copy asynchronously.",
    cost="The copy of each batch to the GPU, in every step; it matters for large batches such as images. Not measured here.",
    exceptions="`pin_memory=False`, which is a choice, wherever it is written; training on CPU; a driver of Ray that hands its batches to other processes; batches of a type of the project's own without a `pin_memory()` method, which stay as they are; little "
    "host memory to lock. Without workers pinning would happen in the training process and may cost more than it gains, so "
    "dataloader-in-main-process speaks alone there.",
    versions="All. Without an accelerator torch >= 2.7 warns and pins nothing.",
    verification="Measure the time of the batch's `.to(device)` in a profile before and after, with `non_blocking=True`.",
    references=(
        _PINNED,
        Reference(
            "A guide on good usage of non_blocking and pin_memory()",
            "https://docs.pytorch.org/tutorials/intermediate/pinmem_nonblock.html",
        ),
        Reference("Memory pinning in DataLoader", "https://docs.pytorch.org/docs/stable/data.html#memory-pinning"),
    ),
    reads=("py",),
    triggers=(b"DataLoader",),
    applicability=Applicability.UNSAFE,
    fix_safety="Unsafe: page-locked memory cannot be swapped out, and a batch that holds CUDA tensors already cannot be pinned.",
    probe=Probe(
        "host-to-device-copies",
        "batches were copied to the device from pageable memory",
        device_bound=True,
        experiment="dataloader",
    ),
)

CONFLICTING_OPTIONS = Rule(
    code="E7108",
    symbol="dataloader-conflicting-options",
    consequence=Consequence.CRASH,
    message="this DataLoader raises ValueError because %(left)s excludes %(right)s: drop %(right)s",
    summary="Options of one DataLoader of which torch accepts only one: `shuffle=True` with a sampler, a batch sampler with "
    "`batch_size`, and the like.",
    rationale="A sampler decides the order, so `shuffle=True` beside it is an error; a batch sampler decides order and size, so "
    "`batch_size`, `shuffle`, `sampler` and `drop_last` beside it are; an `IterableDataset` has an order of its own and takes "
    "neither `shuffle=True` nor a sampler; `batch_size=None` makes no batches of which the last could be dropped.",
    cost="The program ends where the loader is made.",
    exceptions="None: `shuffle=(sampler is None)` and `shuffle=False` beside a sampler are right and stay silent.",
    versions="All.",
    verification="Make the loader once.",
    references=(_DATALOADER, _SOURCE),
    reads=("py",),
    triggers=(b"DataLoader",),
    applicability=Applicability.UNSAFE,
    fix_safety="Unsafe: it drops the option that the other one takes the place of, and which of the two was meant only the author knows.",
)

RULES = (
    PERSISTENT_WORKERS,
    PREFETCH,
    IN_MAIN_PROCESS,
    OPTIONS_WITHOUT_WORKERS,
    WORKERS_MAY_BE_ZERO,
    DATALOADER_TOO_MANY_WORKERS,
    WITHOUT_PIN_MEMORY,
    CONFLICTING_OPTIONS,
)


def fewer_workers(limit: int) -> str:
    """What to do about a number of workers at the limit or above it."""
    return f"start with {max(limit // 2, 1)}"
