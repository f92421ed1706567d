"""Family 71, data loading: missing, too many, restarted or slow workers, and options that raise."""

from __future__ import annotations

from ldlm_lint.model import Applicability, Confidence, Consequence, Frequency, Option, Probe, Reference, Rule
from ldlm_lint.rules.measured import H100

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
    message="this DataLoader is iterated repeatedly (%(where)s) and starts new worker processes each time, because "
    "`%(option)s` is %(how)s: training waits for the first batch of every epoch; set `%(setting)s`",
    summary="A loader with workers that is iterated more than once without `persistent_workers`.",
    rationale="Without `persistent_workers=True` a DataLoader stops its worker processes when an iteration ends and "
    "starts new ones for the next iteration. Processes are forked or spawned, the dataset is copied or pickled, "
    "modules and files are opened again, and training waits for the first batches of every epoch.",
    cost="One worker start-up per epoch and per evaluation. Not measured here in general: the start of an epoch went "
    "from seven minutes to 35 seconds in one project (mmhuman3d#233), and another saw no difference on Linux "
    "(delta-interpolator#3). It matters if epochs are short or the dataset takes long to start.",
    exceptions="If `persistent_workers` is switched off explicitly, in Python, a configuration or a flag, the finding "
    "is at level info, once per value. Persistent workers do not help a loader that is iterated once (not reported), "
    "an infinite sampler or very long epochs. They do harm if memory is so tight that the workers' copies of the "
    "dataset must be freed between epochs. A dataset that the main process changes between epochs "
    "(`dataset.set_epoch(epoch)`, `loader.dataset.epoch = epoch`, a new sample) is not reported: persistent workers "
    "would keep the copy that they started with. `sampler.set_epoch(epoch)` does not change the dataset, because the "
    "sampler is in the main process.",
    versions="torch >= 1.7. `persistent_workers=True` with `num_workers=0` raises ValueError in every version, so the "
    "fix adds a check unless the number of workers is a literal.",
    verification="Time the first batch of the second epoch with and without the option, or compare the process ids of "
    "the workers across epochs.",
    references=(
        _DATALOADER,
        _MULTIPROCESS,
        Reference("mmhuman3d#233", "https://github.com/open-mmlab/mmhuman3d/pull/233"),
        Reference("delta-interpolator#3", "https://github.com/boreshkinai/delta-interpolator/pull/3"),
    ),
    reads=("py", "sh", "cfg"),
    needs="DataLoader(persistent_workers=)",
    triggers=(b"DataLoader", b"dataloader_num_workers"),
    setting_triggers=(b"persistent_workers", b"persistent-workers", b"dataloader_num_workers", b"dataloader-num-workers"),
    applicability=Applicability.UNSAFE,
    fix_safety="Unsafe: the workers keep their copies of the dataset in memory between epochs and do not see later "
    "changes to the dataset object. Their random streams continue instead of being seeded again, so shuffling and "
    "augmentation differ from the second iteration on. A sampler that is seeded with the epoch gives the same batches "
    "as before.",
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
    message="`%(option)s` is left at 2 batches per worker: when some batches load slowly this buffer can run empty "
    "and the GPU waits; try `%(setting)s` (uses more host memory)",
    summary="A training loader with workers that leaves `prefetch_factor` at its default of 2 batches per worker.",
    rationale="Each worker prepares `prefetch_factor` batches ahead (2 by default). If the time to load a batch "
    "varies, for example with files on a network disk, a deeper queue absorbs the slow batches. If loading is slower "
    "than the training step on average, no queue helps, only more or faster workers.",
    cost="Not measured in general, and often nothing: on a synthetic loader factors of 1, 2 and 4 made no difference. "
    "Therefore the finding is at level info and never fails CI.",
    exceptions="Large batches (prefetched batches take host memory or /dev/shm: workers x factor x batch size), or a "
    "loader that already keeps up. Not reported: a loader that may have more than 8 workers, or as many as the node "
    "has CPUs, because its queue is already long; a loader with too many workers (`dataloader-too-many-workers`), by "
    "its code, a launch or a configuration.",
    versions="In torch >= 2.0 the default is `prefetch_factor=None`, which means 2 with workers. A value with "
    "`num_workers=0` raises ValueError, so the fix adds a check unless the number of workers is a literal.",
    verification="Measure the share of step time that is spent waiting for the loader before and after; keep the "
    "default if it does not change.",
    references=(_DATALOADER, _TUNING),
    reads=("py", "cfg"),
    needs="DataLoader(prefetch_factor=)",
    triggers=(b"DataLoader",),
    setting_triggers=(b"DataLoader",),
    applicability=Applicability.UNSAFE,
    fix_safety="Unsafe: it takes more host memory and shared memory (/dev/shm, 64 MB by default in Docker). If shared "
    "memory runs out, the workers end with a bus error.",
    options=(PREFETCH_FACTOR,),
    probe=Probe("loader-wait-share", "single batches came late, and the training waited for them at least 10 % of the time", experiment="dataloader"),
)

IN_MAIN_PROCESS = Rule(
    code="W7103",
    symbol="dataloader-in-main-process",
    frequency=Frequency.STEP,
    consequence=Consequence.SLOW,
    message="this training DataLoader has no worker processes%(why)s: the training process loads and prepares every "
    "batch itself while the GPU waits; set `%(option)s`",
    summary="A training loader with `num_workers=0` or no `num_workers`, over a dataset that does work for each item.",
    rationale="With `num_workers=0`, torch's default, `next(loader)` reads, decodes, tokenizes and collates a batch "
    "in the training process, between two steps. Nothing overlaps: each step takes the loading time plus the "
    "computing time.",
    cost="The time to load a batch, in every step. Not measured here: it is nothing for tensors in memory and most of "
    "the step for images that are decoded. Measure it before and after.",
    exceptions="A dataset in memory (tensors, tokens, a memory map): workers would only add copies between processes. "
    "A dataset on the GPU, which workers cannot use; a stream that each worker would repeat; evaluation, tests, toy "
    "programs.",
    versions="All versions. On Windows and macOS workers are spawned: the dataset and `collate_fn` must be picklable, "
    "and the script needs `if __name__ == '__main__':`.",
    verification="Measure the share of step time that is spent waiting for `next(loader)`; with workers it should be "
    "near zero.",
    references=(_DATALOADER, _MULTIPROCESS, _TUNING),
    reads=("py", "sh", "cfg"),
    triggers=(b"DataLoader", b"workers"),
    setting_triggers=(b"workers",),
    confidence=Confidence.MEDIUM,
    applicability=Applicability.UNSAFE,
    fix_safety="Unsafe: workers take memory, get copies of the dataset, draw other random numbers than the main "
    "process would, and repeat the items of an iterable dataset that does not split them. They fail with objects that "
    "cannot be forked or pickled (open files, CUDA tensors, lambdas if processes are spawned).",
    options=(NUM_WORKERS,),
    probe=Probe("loader-wait-share", "the step waits for the loader", experiment="dataloader"),
)

OPTIONS_WITHOUT_WORKERS = Rule(
    code="E7104",
    symbol="dataloader-worker-options-without-workers",
    consequence=Consequence.CRASH,
    message="this DataLoader sets %(options)s but has no worker processes: it raises %(error)s; set "
    "`%(option)s`, or drop %(options)s",
    summary="`prefetch_factor`, `persistent_workers`, `multiprocessing_context` or `timeout` with `num_workers=0` or "
    "no `num_workers`.",
    rationale="These options configure worker processes. Without workers `DataLoader(...)` raises ValueError for the "
    "first three, and `timeout > 0` raises AssertionError when the loader is iterated.",
    cost="The program ends when the loader is created, or in its first step.",
    exceptions="A test that expects the exception is not reported.",
    versions="torch >= 2.0. Before, the default of `prefetch_factor` was 2, and 2 was accepted without workers.",
    verification="Create the loader once.",
    references=(_DATALOADER, _SOURCE),
    reads=("py", "sh", "cfg"),
    triggers=(b"DataLoader", b"dataloader_persistent_workers", b"dataloader_prefetch_factor"),
    setting_triggers=(b"persistent_workers", b"prefetch_factor", b"persistent-workers", b"prefetch-factor"),
    applicability=Applicability.SAFE,
    fix_safety="Safe on every supported version: the call raised before, and without the options it loads in the main "
    "process, as `num_workers=0` says. If a variable holds the 0, the options stay for its other values. If you want "
    "workers, set `num_workers` instead. Unsafe if code around the call catches the error, and in a configuration "
    "file, because a launch may set workers.",
    overrides="the constructor raises with it",
)

WORKERS_MAY_BE_ZERO = Rule(
    code="W7105",
    symbol="dataloader-worker-count-may-be-zero",
    consequence=Consequence.CRASH,
    message="`num_workers` can be 0 (%(why)s): with %(options)s set, this DataLoader then raises %(error)s; set "
    "%(options)s only if there are workers",
    summary="A number of workers that can be 0, with options that raise without workers.",
    rationale="A floor division such as `os.cpu_count() // world_size` is 0 as soon as there are more ranks than "
    "CPUs. A debugging switch or a default of 0 is 0 on purpose. `prefetch_factor` and `persistent_workers=True` then "
    "raise ValueError.",
    cost="The program ends when the loader is created, on a machine or with a flag that was never tested.",
    exceptions="A number that other code keeps above 0.",
    versions="torch >= 2.0, in which the default `prefetch_factor=None` means 2 with workers and nothing without.",
    verification="Create the loader with `num_workers=0`.",
    references=(
        _DATALOADER,
        _SOURCE,
        Reference("os.cpu_count", "https://docs.python.org/3/library/os.html#os.cpu_count"),
    ),
    reads=("py",),
    triggers=(b"DataLoader",),
    confidence=Confidence.MEDIUM,
    applicability=Applicability.SAFE,
    fix_safety="Safe on torch >= 2.0: with workers the guarded values do not change, and without workers the call "
    "raised. The constructor itself compares the number with 0, so the comparison raises nothing new. No fix is "
    "offered if the number comes from a call that must not run twice. Unsafe if code around the loader catches the "
    "error.",
    overrides="the constructor raises with it",
)

DATALOADER_TOO_MANY_WORKERS = Rule(
    code="W7106",
    symbol="dataloader-too-many-workers",
    consequence=Consequence.SLOW,
    message="%(workers)s DataLoader workers per rank means %(workers)s x (ranks on the node) processes on one node's CPU "
    "cores and memory, which can slow loading down; %(advice)s",
    summary="At least `workers-limit` DataLoader workers per rank, or as many per rank as the node has CPUs.",
    rationale="`num_workers` applies to each DataLoader of each rank. 16 workers on a node with 8 ranks are 128 "
    "processes for the training set, and as many again for a validation set that is open at the same time. They "
    "compete with the ranks for the CPUs, and each of them holds a copy of the dataset object and `prefetch_factor` "
    "batches. `os.cpu_count()` counts the CPUs of the whole node, even if a rank or a container gets only a share of "
    "them.",
    cost="Host memory and /dev/shm, slow starts, and CPU time that the training processes need. Not measured in "
    "general. torch's own warning compares one loader of one process with the CPUs that this process may use, so it "
    "does not warn about 8 ranks with 16 workers each on a node with 128 CPUs.",
    exceptions="One process per node with spare CPUs, or a decoding load that was measured to need the workers: raise "
    "`workers-limit`.",
    versions="All versions.",
    verification="Count the worker processes on a node and watch its CPU load; lower the number until the time spent "
    "waiting for the loader grows.",
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
    fix_safety="Unsafe: fewer workers can be too few for a slow dataset, and the random streams of the workers change "
    "with their number. torchrun and launchers that use it set `LOCAL_WORLD_SIZE`; elsewhere 1 is assumed.",
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
    cost="The copy of each batch to the GPU, in every step; it matters for large batches such as images. "
    "On an H100 a copy of 64 MiB took 3.79 ms from pageable memory and 1.25 ms from pinned memory.",
    exceptions="Not reported: `pin_memory=False`, wherever it is written, because it is a choice; training on a CPU; "
    "a Ray driver that passes its batches to other processes; batches of a class of the project without a "
    "`pin_memory()` method, which are not pinned. If the host has little memory to lock, leave it off. Without "
    "workers, pinning would run in the training process and can cost more than it gains: there only "
    "dataloader-in-main-process is reported.",
    versions="All versions. Without an accelerator, torch >= 2.7 warns and pins nothing.",
    verification="Measure the time of the batch's `.to(device)` in a profile before and after, with `non_blocking=True`.",
    references=(
        _PINNED,
        Reference(
            "A guide on good usage of non_blocking and pin_memory()",
            "https://docs.pytorch.org/tutorials/intermediate/pinmem_nonblock.html",
        ),
        Reference("Memory pinning in DataLoader", "https://docs.pytorch.org/docs/stable/data.html#memory-pinning"),
        H100,
    ),
    reads=("py",),
    triggers=(b"DataLoader",),
    applicability=Applicability.UNSAFE,
    fix_safety="Unsafe: page-locked memory cannot be swapped out, and a batch that already contains CUDA tensors "
    "cannot be pinned.",
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
    summary="DataLoader options that exclude each other: `shuffle=True` with a sampler, a batch sampler with "
    "`batch_size`, and similar pairs.",
    rationale="A sampler decides the order, so `shuffle=True` with a sampler is an error. A batch sampler decides "
    "order and size, so `batch_size`, `shuffle`, `sampler` and `drop_last` with it are errors. An `IterableDataset` "
    "has its own order and accepts neither `shuffle=True` nor a sampler. With `batch_size=None` there are no batches, "
    "so `drop_last` has none to drop.",
    cost="The program ends when the loader is created.",
    exceptions="None. `shuffle=(sampler is None)` and `shuffle=False` with a sampler are correct and are not reported.",
    versions="All versions.",
    verification="Create the loader once.",
    references=(_DATALOADER, _SOURCE),
    reads=("py",),
    triggers=(b"DataLoader",),
    applicability=Applicability.UNSAFE,
    fix_safety="Unsafe: it removes the option that the other one replaces, but only you know which of the two was "
    "meant.",
    overrides="the constructor raises with it",
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
    """The advice for a number of workers at the limit or above it."""
    return f"start with {max(limit // 2, 1)}"
