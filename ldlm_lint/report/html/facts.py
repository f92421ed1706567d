"""Shared parts of pages with measurements: bounded texts, the machine as text, and commands to copy."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ldlm_lint.evidence.model import Environment
from ldlm_lint.report.cells import clean
from ldlm_lint.report.common import rule_url
from ldlm_lint.rules import by_symbol

LONGEST = 700
"""Characters of one text of evidence: it comes from elsewhere, and a page has to stay small."""


def short(text: str, most: int = LONGEST) -> str:
    """A text without control characters, cut if it is too long.

    >>> short("abcdef", 4)
    'abc…'
    """
    return clean(text if len(text) <= most else f"{text[: most - 1]}…")


def url_of(rule: str) -> str:
    """The address of a rule's documentation; empty for an unknown rule."""
    return rule_url(rule) if rule in by_symbol else ""


def machine(environment: Environment) -> Iterator[tuple[str, str]]:
    """The machine and its software as labels and values; unknown ones are left out."""
    versions = {
        "Python": environment.python,
        "torch": environment.torch,
        "CUDA": environment.cuda,
        "NCCL": environment.nccl,
        "driver": environment.driver,
    }
    found = {
        "device": _device(environment),
        "CPUs": f"{environment.cpus:g}" if environment.cpus else "",
        "threads of torch": str(environment.threads or ""),
        "software": ", ".join(f"{name} {version}" for name, version in versions.items() if version),
        "started as": environment.executable,
        "load average": ", ".join(f"{load:g}" for load in environment.load),
        "tasks waited for a CPU": _pressure(environment.cpu_pressure),
        "environment variables": _variables(environment.variables),
    }
    yield from ((label, short(value)) for label, value in found.items() if value)


def _device(environment: Environment) -> str:
    named = environment.device_name
    return f"{environment.device} ({named})" if named and named != environment.device else environment.device


def _pressure(pressure: float | None) -> str:
    return "" if pressure is None else f"{pressure:g} % of the last 10 s"


def _variables(variables: Mapping[str, str]) -> str:
    return ", ".join(f"{name}={value}" for name, value in sorted(variables.items()))
