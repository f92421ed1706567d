"""Names that are about the ranks of a training: what communicates between them, and tests of how many there are."""

from __future__ import annotations

from ldlm_lint.patterns import lazily

_REDUCES = lazily(r"reduc|gather|broadcast|synchron|sync_|aggregat|all_ranks|any_rank|across|consensus|agree|allsum|\bpmean|global")
_COUNTS = lazily(r"(?i)world_size|num_process|n_?gpus?\b|distributed|\bddp\b|is_dist|single")
_LOCAL = ("builtins.", "functools.", "numpy.", "einops.", "math.", "cv2.")


def communicates(name: str) -> bool:
    """Whether a function says by its name that it communicates with the other ranks."""
    return _REDUCES.search(name.lower()) is not None


def is_local(name: str) -> bool:
    """Whether a function, by its dotted name, belongs to a package that knows of no ranks: ``einops.reduce``, ``torch.gather``."""
    return name.startswith(_LOCAL) or (name.startswith("torch.") and not name.startswith("torch.distributed."))


def asks_for_ranks(name: str) -> bool:
    """Whether a name in a test says how many ranks there are, or whether there are several."""
    return _COUNTS.search(name) is not None


_RANK = lazily(
    r"(?i)(?<!lora_)rank(?!ing|s$|ed|er)|is_?main|main_?(proc|rank|thread|worker|node)|^main$|is_?master|^master$|master_?(proc|rank|node|worker|only)"
    r"|is_?(primary|root|chief|leader|coordinator|global_zero|world_zero|writer|zero)|root_?(proc|rank)|process_?(index|id)$|proc_?id|world_process_zero"
    r"|zero_only|should_save|host_?id|^gpu(_id)?$"
)
_ONE = lazily(r"(?i)^(is_)?(main|master)$|is_?main|main_?proc|is_?master|master_?proc|is_?(rank_?zero|global_zero|world_process_zero|root|chief|primary)")
_NUMBER = lazily(r"(?i)(^|_)rank$")
_LOCAL_NUMBER = lazily(r"(?i)local_?rank$|local_?process_?index$|local_?proc(?:ess)?_?id$|(?:^|_)LOCALID$|node_local_rank$")
_LOCAL_TEST = lazily(r"is_local_main_process$|is_local_process_zero$|is_local_zero$|local_process_zero$|is_local_master$")
_DEVICES = lazily(r"device_count$|gpus_per_node$|n?proc_?per_?node$|local_world_size$|local_size$")
_OWN = lazily(
    r"(?i)rank|gpu|device|local_?id|proc|(^|_)pid|worker|host|uuid|tempfile|mkdtemp|Temporary|BytesIO|StringIO|devnull|buffer|wandb"
)


def is_about_rank(name: str) -> bool:
    """Whether a name in a test means the rank of a process, or that it is the first one."""
    return _RANK.search(name) is not None


def is_of_first(name: str) -> bool:
    """Whether a name is true in one process only: ``is_main_process``."""
    return _ONE.search(name) is not None


def is_rank_number(name: str) -> bool:
    """Whether a name is that of a rank's number, which is true in all processes but one."""
    return _NUMBER.search(name) is not None


def is_local_rank(name: str) -> bool:
    """Whether a name is that of the number of a process on its node."""
    return _LOCAL_NUMBER.search(name) is not None


def is_local_test(name: str) -> bool:
    """Whether a name is true in the first process of each node."""
    return _LOCAL_TEST.search(name) is not None


def counts_on_node(name: str) -> bool:
    """Whether a name is the number of processes, or devices, of a node."""
    return _DEVICES.search(name) is not None


def is_of_process(name: str) -> bool:
    """Whether a name or a text in a path differs between processes, or says that nothing is written to a disk."""
    return _OWN.search(name) is not None
