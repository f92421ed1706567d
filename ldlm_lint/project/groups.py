"""The files that may start processes that join a group and train, by the texts of their imports; `ranks` checks their
calls."""

from __future__ import annotations

import re

from ldlm_lint.patterns import lazily
from ldlm_lint.project.index import Project
from ldlm_lint.project.traits import Trait

_TRAINERS_HOME = lazily(rb"^[ \t]*(?:from|import)[ \t]+(?:transformers|trl|sentence_transformers)\b", re.M)
# The words in the text of a file with a call of `_IN_GROUP` or `_STARTS_GROUP`, or with a Trainer that creates the
# group itself.
_JOINING = (
    *(b"init_process_group", b"DistributedDataParallel", b"FullyShardedDataParallel", b"fully_shard", b"init_device_mesh"),
    *(b"horovod", b"Accelerator", b"deepspeed", b"init_distributed", b"init_dist", b"setup_distributed", b"idr_torch", b"Trainer"),
)
_JOINS = Trait(lazily(b"|".join(_JOINING)), _JOINING)


def names_trainer(project: Project, path: str) -> bool:
    """Whether a file may create a Trainer of a library that creates the process group itself."""
    data = project.data(path)
    return b"Trainer" in data and _TRAINERS_HOME.search(data) is not None


def may_join_group(project: Project, path: str) -> bool:
    """Whether a file, or one that it imports, may create a process group, by their texts."""
    return project.any_shows(project.reach(path), _JOINS)
