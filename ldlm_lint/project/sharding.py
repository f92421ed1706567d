"""Whether a training shards its model with FSDP, and no other part determines the order of kernels."""

from __future__ import annotations

import posixpath
import re

from ldlm_lint.patterns import lazily
from ldlm_lint.project.index import Project
from ldlm_lint.python.skim import without_comments

_SHARDS = frozenset(
    {"FullyShardedDataParallel", "FSDP", "fully_shard", "FSDPStrategy", "FullyShardedDataParallelPlugin"}
)
_NEEDS_ORDER = lazily(
    rb"megatron|tensor_?(?:model_?)?parallel|parallelize_module|sequence_?parallel|context_?parallel|ColwiseParallel|domino", re.I
)


def shards_with_fsdp(project: Project, path: str, entries: str) -> bool:
    """Whether the programs started by a file (``entries``, separated by ``|``), or the Python file itself, train only
    with FSDP."""
    if project.is_test(path):
        return False
    if path in project.files:
        starts = [path, *project.trainers_of(path)]
    else:
        starts = [found for entry in entries.split("|") if (found := _entry(project, path, entry))]
    flow = project.reach_of_all(starts)
    shards = any(project.calling_by_name(name) & flow for name in _SHARDS)
    return shards and not any(_NEEDS_ORDER.search(without_comments(project.data(one))) for one in flow)


def _entry(project: Project, script: str, entry: str) -> str | None:
    """The project's file that a script starts: next to it, below the root, or the only one whose path ends like
    that.
    """
    if not entry.endswith(".py"):
        entry = entry.replace(".", "/") + ".py"
    name = re.sub(r"^(?:.*\$\{?\w+\}?/|\./)", "", entry)
    for folder in (posixpath.dirname(script), project.root):
        path = posixpath.normpath(posixpath.join(folder, name))
        if path in project.files:
            return path
    ending = [path for path in project.files if path.endswith("/" + name)] if name else []
    return ending[0] if len(ending) == 1 else None
