"""The purpose of a file, from its name and the words of a condition."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import PurePosixPath

from ldlm_lint.patterns import lazily

_WORD = lazily(r"[a-z]+|[A-Z]+(?![a-z])|[A-Z][a-z]+")
_DIAGNOSTIC = frozenset(
    (
        *("bench", "benchmark", "benchmarks", "check", "debug", "debugger", "debugging", "diag", "diagnose", "diagnostic"),
        *("diagnostics", "profile", "profiler", "profiling", "repro", "sanity", "smoke", "test", "testing", "tests"),
        *("trace", "tracing", "verbose"),
    )
)
# Names of variables and of a command with such a word but any purpose.
_NOT_A_WORD = lazily(r"(?<!\w)\w*(?:NCCL|TORCH_DISTRIBUTED)_DEBUG\w*|\btest\s+(?=[-!\"$])")
# The programs of NVIDIA's nccl-tests, whose output is the point of running them.
_MEASURES = lazily(
    r"(?:all_reduce|all_gather|reduce_scatter|alltoall|broadcast|sendrecv|reduce|gather|scatter)_perf\b|nccl-?tests?\b",
    re.I,
)
_PROBING = frozenset({"pytest", "unittest"})


def speaks_of_debugging(text: str) -> bool:
    """Whether a name or a condition contains a word about debugging, testing or measuring."""
    return not _DIAGNOSTIC.isdisjoint(word.lower() for word in _WORD.findall(_NOT_A_WORD.sub("", text)))


def measures_collectives(text: str) -> bool:
    """Whether a text runs or names nccl-tests."""
    return _MEASURES.search(text) is not None


def is_diagnostic(path: str, entries: Iterable[str]) -> bool:
    """Whether a file debugs, tests or measures: by its name, or because it launches nothing else."""
    launched = [PurePosixPath(entry).stem for entry in entries]
    if launched and all(name in _PROBING or speaks_of_debugging(name) for name in launched):
        return True
    return speaks_of_debugging(PurePosixPath(path).stem)
