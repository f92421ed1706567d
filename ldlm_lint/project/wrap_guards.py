"""Wraps of models for several ranks under a switch which nothing turns on: ``if self.world_size > 1:`` where
every caller leaves ``world_size=1``. They are no sign that ranks start."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator

from astroid import nodes

from ldlm_lint.patterns import lazily
from ldlm_lint.project.index import Project
from ldlm_lint.project.traits import Trait

# What starts ranks is also written in shell scripts, configurations and texts for readers, so it is searched for in texts.
_LIBRARIES = (
    *(b"accelerate", b"lightning", b"pytorch_lightning", b"deepspeed", b"horovod", b"transformers", b"trl", b"ignite", b"ray"),
    *(b"colossalai", b"composer", b"submitit", b"sagemaker", b"smdistributed", b"idr_torch", b"mmengine", b"mmcv"),
)
_STARTING = (
    *(b"init_process_group", b"init_distributed", b"init_dist", b"setup_distributed", b"init_device_mesh"),
    *(b"torchrun", b"distributed.launch", b"distributed.run", b"spawn", b"start_processes", b"srun", b"mpirun", b"RANK", b"WORLD_SIZE"),
    *(b"accelerate launch", b"deepspeed --", b"TorchDistributor"),
)
_IMPORTS_LIBRARY = rb"^[ \t]*(?:from|import)[ \t]+(?:" + b"|".join(_LIBRARIES) + rb")\b"
_STARTS = Trait(lazily(b"|".join(map(re.escape, _STARTING)) + rb"|" + _IMPORTS_LIBRARY, re.M), (*_STARTING, *_LIBRARIES))
_BRINGS = Trait(lazily(_IMPORTS_LIBRARY, re.M), _LIBRARIES)
# Who gives a parameter a value is known to the linked program, which `ldlm_lint.project.ranks` does not ask yet, so texts decide.
# A value that turns a switch on: neither nothing, nor one rank, nor the same name passed on.
_GIVEN = (
    rb"(?<![\w])(?:%s[\"']?\]?\s*(?::\s*[\w.\[\], |]+?)?\s*(?:=(?!=)|:(?=\s*[\w\"'$]+\s*(?:[,}#\n]|$)))\s*"
    rb"(?!(?:-?[01]|False|false|None|null|int|bool)\b|(?:\w+\.)*%s\b\s*[,)\n]|[=\s])|--%s\b)"
)


def may_wrap(project: Project, call: nodes.Call) -> bool:
    """Whether a wrap for several ranks may run: something starts ranks, or no switch around it stays off."""
    return may_be_on(project, _switches_around(call))


def may_be_on(project: Project, switches: Iterable[str]) -> bool:
    """Whether something starts ranks, or none of the switches by these names stays off."""
    return not any(_stays_off(project, name) for name in switches) or starts_ranks(project)


def starts_ranks(project: Project) -> bool:
    """Whether code, a script or a configuration of a project starts several ranks, by the texts."""
    return any(_STARTS.shows(project.data(path)) for path in (*project.files, *project.others))


def brings_ranks(project: Project, paths: Collection[str]) -> bool:
    """Whether one of these files imports a library that starts ranks, or makes their group, out of sight."""
    return project.any_shows(paths, _BRINGS)


def _switches_around(call: nodes.Call) -> Iterator[str]:
    """The names that have to hold a value for the conditions around a call to be true."""
    for one in call.node_ancestors():
        if isinstance(one, nodes.If) and any(part is call or part.parent_of(call) for part in one.body):
            yield from _names_in(one.test)


def _names_in(test: nodes.NodeNG) -> Iterator[str]:
    """``distributed`` of ``self.distributed and x``, ``world_size`` of ``world_size > 1``."""
    if isinstance(test, nodes.BoolOp) and test.op == "and":
        for one in test.values:
            yield from _names_in(one)
    elif isinstance(test, nodes.Compare) and len(test.ops) == 1 and test.ops[0][0] in (">", ">=", "!="):
        yield from _names_in(test.left) if isinstance(test.ops[0][1], nodes.Const) else ()
    elif isinstance(test, nodes.Attribute):
        yield test.attrname
    elif isinstance(test, nodes.Name):
        yield test.name


def _stays_off(project: Project, name: str) -> bool:
    """Whether no text gives a name another value than the one that is off, or one for one rank."""
    word = re.escape(name.encode())
    spelled = re.escape(name.encode()).replace(b"_", b"[-_]")
    given = re.compile(_GIVEN.replace(b"--%s", b"--" + spelled).replace(b"%s", word), re.M)
    written = [data for data in (project.data(path) for path in project.files) if name.encode() in data]
    others = [project.data(path) for path in project.others]
    return bool(written) and not any(given.search(data) for data in (*written, *others))


__all__ = ["brings_ranks", "may_be_on", "may_wrap", "starts_ranks"]
