"""Finds collectives where all ranks wait while one rank downloads or prepares data for an unknown time."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from ldlm_lint.project.calls import Calls
from ldlm_lint.project.index import Project
from ldlm_lint.project.ranks import Ranks
from ldlm_lint.project.traits import Trait
from ldlm_lint.python.first_blocks import Block, blocks_of
from ldlm_lint.python.flow import CallSite

_DEPTH = 3
_SYNCHRONISES = Trait(
    re.compile(rb"barrier|wait_for_everyone|process_first|zero_first|broadcast|all_reduce|all_gather|DistributedDataParallel|\bDDP\("),
    (b"barrier", b"wait_for_everyone", b"_first", b"broadcast", b"all_reduce", b"all_gather", b"DistributedDataParallel", b"DDP("),
)
_OF_TORCH = {
    *("barrier", "monitored_barrier", "all_reduce", "all_gather", "all_gather_object", "all_gather_into_tensor", "reduce", "gather"),
    *("gather_object", "scatter", "broadcast", "broadcast_object_list", "scatter_object_list", "reduce_scatter", "all_to_all"),
}
_COLLECTIVES = {f"torch.distributed.{name}" for name in _OF_TORCH} | {"torch.nn.parallel.DistributedDataParallel"}
# Methods of Accelerate's Accelerator and of Lightning's strategies that wait for every process.
_WAITING_METHODS = {"wait_for_everyone", "barrier"}
# Context managers of transformers and Accelerate: the other ranks wait until the first one has left the block.
_FIRST = {"main_process_first", "local_main_process_first", "rank_zero_first"}
_STARTS = {
    *("torch.distributed.init_process_group", "deepspeed.init_distributed", "accelerate.Accelerator"),
    *("transformers.TrainingArguments", "transformers.HfArgumentParser"),
}
# Libraries whose calls fetch or prepare data: their time depends on a network, a disk and the size of a corpus.
_LONG = (
    *("datasets.load_dataset", "datasets.load_from_disk", "huggingface_hub.", "nltk.download", "urllib.request.", "requests.", "gdown."),
    *("wget.", "subprocess.", "os.system", "torch.hub.", "torchvision.datasets.", "kaggle.", "tarfile.", "zipfile.", "boto3.", "tokenizers."),
)
# Methods that process a whole dataset or corpus, of the datasets and tokenizers libraries and similar ones.
_LONG_METHODS = {
    *("map", "save_to_disk", "download_and_prepare", "train_from_iterator", "train_new_from_iterator", "prepare_data", "from_pretrained"),
    *("encode_batch", "batch_encode_plus", "extractall"),
}
# Each takes a moment, and a corpus has millions of lines or files: so they take long in a loop.
_LONG_IN_LOOPS = {"encode", "encode_ordinary", "tokenize", "encode_plus", "loads", "read", "read_text", "readlines", "imread", "urlopen"}


class Wait(NamedTuple):
    """The line of a collective where the others wait, and the work of the one rank: its line and its call."""

    path: str
    line: int
    work: int
    called: str


class WaitingRanks:
    """Finds the work that ranks wait for; each file is analysed once."""

    def __init__(self, project: Project, calls: Calls, ranks: Ranks) -> None:
        self._project = project
        self._calls = calls
        self._ranks = ranks
        self._waits: dict[str, Wait | None] = {}
        self._long: dict[tuple[str, str], str] = {}
        self._waiting: dict[tuple[str, str], bool] = {}

    def in_files(self, files: Iterable[str]) -> Iterator[Wait]:
        """The first wait in each of these files."""
        paths = self._project.universe.of(files) & self._project.showing(_SYNCHRONISES) & self._project.plain
        return (found for path in paths if (found := self._in_file(path)) is not None)

    def _in_file(self, path: str) -> Wait | None:
        if path not in self._waits:
            self._waits[path] = next(self._find(path), None)
        return self._waits[path]

    def _find(self, path: str) -> Iterator[Wait]:
        blocks = self._project.trees.glance(path, lambda module, _: blocks_of(module)) or []
        for scope in ("", *self._project.functions(path)):
            calls = sorted(self._project.calls_in(path, scope), key=_line)
            yield from self._at_collectives(path, calls)
            yield from self._in_blocks(path, calls, [one for one in blocks if one.scope == scope])

    def _at_collectives(self, path: str, calls: Sequence[CallSite]) -> Iterator[Wait]:
        """One rank works in front of a collective of all, or between the two that let the others wait for it."""
        collectives = [one for one in calls if self._synchronises(path, one)]
        begins = max((_line(one) for one in calls if one.callee.name in _STARTS), default=0)
        for work in calls if collectives else ():
            long = self._long_work(path, work) if work not in collectives and _line(work) > begins else ""
            if not long:
                continue
            behind = [one for one in collectives if _line(one) > _line(work)]
            before = [one for one in collectives if begins < _line(one) < _line(work) and self._ranks.leaves_to_others(path, one)]
            # One that only a single rank comes to lets nobody else wait.
            shared = [one for one in behind if not self._ranks.guarded(path, one)]
            if shared and (self._ranks.guarded(path, work) or self._is_guarded_inside(path, work)):
                yield Wait(path, _line(shared[0]), _line(work), long)
            elif before and behind and self._ranks.divides(path, behind[0]) and not self._ranks.divides(path, work):
                yield Wait(path, _line(before[-1]), _line(work), long)

    def _in_blocks(self, path: str, calls: Sequence[CallSite], blocks: Sequence[Block]) -> Iterator[Wait]:
        for block in blocks:
            if block.entered not in _FIRST and not self._lets_one_go_first(path, calls, block):
                continue
            if any(self._ranks.guarded(path, one) for one in calls if one.position == block.position):
                continue
            inside = (one for one in calls if block.first <= _line(one) <= block.last)
            yield from (Wait(path, int(block.position.partition(":")[0]), _line(one), long) for one in inside if (long := self._long_work(path, one)))

    def _lets_one_go_first(self, path: str, calls: Sequence[CallSite], block: Block) -> bool:
        """Whether a context manager of the project synchronises under a test of the rank."""
        entered = [one for one in calls if one.position == block.position]
        targets = (target for one in entered for target in self._calls.targets(path, one.callee))
        return any(
            function.yields and self._synchronises(where, inner) and self._ranks.divides(where, inner)
            for where, function in targets
            for inner in self._project.calls_in(where, function.scope)
        )

    def _synchronises(self, path: str, call: CallSite, depth: int = 0) -> bool:
        kind, name = call.callee
        if (kind == "import" and name in _COLLECTIVES) or (kind == "method" and name in _WAITING_METHODS):
            return True
        targets = self._calls.targets(path, call.callee) if depth < _DEPTH else ()
        return any(self._synchronises_in(where, function.scope, depth) for where, function in targets)

    def _synchronises_in(self, path: str, scope: str, depth: int) -> bool:
        key = (path, scope)
        if key not in self._waiting:
            # A repeated request during the analysis means recursion.
            self._waiting[key] = False
            self._waiting[key] = any(self._synchronises(path, one, depth + 1) for one in self._project.calls_in(path, scope))
        return self._waiting[key]

    def _is_guarded_inside(self, path: str, call: CallSite) -> bool:
        """Whether a function of the project leaves its long work to one rank."""
        return any(
            self._ranks.guarded(where, inner) and self._long_work(where, inner)
            for where, function in self._calls.targets(path, call.callee)
            for inner in self._project.calls_in(where, function.scope)
        )

    def _long_work(self, path: str, call: CallSite, depth: int = 0) -> str:
        """The long work of a call, such as a download or processing a corpus, by name; empty if unknown."""
        kind, name = call.callee
        last = name.rpartition(".")[2]
        if (kind == "import" and name.startswith(_LONG)) or (kind in ("method", "import") and last in _LONG_METHODS):
            return last
        if last in _LONG_IN_LOOPS and call.loops and kind != "def":
            return last
        for where, function in self._calls.targets(path, call.callee) if depth < _DEPTH else ():
            found = self._long_in(where, function.scope, depth)
            if found:
                return last
        return ""

    def _long_in(self, path: str, scope: str, depth: int) -> str:
        key = (path, scope)
        if key not in self._long:
            # A repeated request during the analysis means recursion.
            self._long[key] = ""
            inner = (self._long_work(path, one, depth + 1) for one in self._project.calls_in(path, scope))
            self._long[key] = next(filter(None, inner), "")
        return self._long[key]


def _line(call: CallSite) -> int:
    return int(call.position.partition(":")[0])
