"""Which programs run on several nodes, by the launches that start them, and whether these share a disk, judging by the
launch."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from ldlm_lint.model import Span
from ldlm_lint.patterns import lazily
from ldlm_lint.project.index import Project
from ldlm_lint.project.launches import Launches, Program
from ldlm_lint.untrusted_numbers import whole

_DIRECTIVE = re.compile(rb"^#SBATCH[ \t]+(?:-N|--nodes)[= \t]?[ \t]*(\d+)", re.M)
_COUNT = lazily(r"(?:\d+:)?(\d+)")
_OF_JOB = lazily(r"\$\{?SLURM_\w*NODES\w*(?::-?[^{}]*)?\}?")


class NodeLaunch(NamedTuple):
    """A launch on several nodes; ``scheduled``: Slurm runs it, whose nodes share the submission folder."""

    span: Span
    scheduled: bool


def launches_on_nodes(project: Project, launches: Launches, path: str) -> Iterator[NodeLaunch]:
    """The launches that run a Python file on more than one node."""
    for program in launches.running(path):
        directive = _DIRECTIVE.search(project.data(program.path))
        given = _nodes(program, whole(directive[1]) if directive else None)
        if given is not None and given > 1:
            yield NodeLaunch(program.span, directive is not None or "srun" in program.launchers or b"#SBATCH" in project.data(program.path))


def _nodes(program: Program, of_job: int | None) -> int | None:
    """The number of nodes of a program: from the launcher, else from the job if each node starts a process."""
    text = program.nodes
    if text is None:
        return of_job if "srun" in program.launchers else None
    if match := _COUNT.fullmatch(text):
        return whole(match[1])
    return of_job if _OF_JOB.fullmatch(text) else None


__all__ = ["NodeLaunch", "launches_on_nodes"]
