"""Interfaces of other libraries, as dated data: `interfaces.json`, refreshed by ``scripts/refresh_tables.py``.

Rules look up the order of positional parameters, first versions and variables here, so that a new release of a library
changes a table and no rule. The defaults that rules depend on are stored for the script, which reports changes.
"""

from __future__ import annotations

import functools
import json
from pathlib import Path
from typing import Any

from ldlm_lint.model import Interface


@functools.cache
def _interfaces() -> dict[str, Any]:
    return json.loads((Path(__file__).parent / "interfaces.json").read_text(encoding="utf-8"))


def as_of() -> str:
    """The day on which the table was last compared with wheels, ``YYYY-MM-DD``."""
    return _interfaces()["as_of"]


def newest_torch() -> str:
    """The newest torch that was read, such as ``2.13``."""
    return ".".join(_interfaces()["read"]["torch"][-1].split(".")[:2])


def positional(name: str) -> tuple[str, ...]:
    """The positional parameters of a public callable, in the order common to all versions read; KeyError if there is
    none."""
    return tuple(_interfaces()["positional"][name])


def fused_since(optimizer: str) -> tuple[int, int] | None:
    """The first torch whose optimizer of this class name accepts ``fused``; None if none does."""
    version = _interfaces()["fused_since"].get(optimizer)
    return None if version is None else _version(version)


def fused(optimizer: str) -> Interface:
    """The ``fused`` of an optimizer's class name, as a fix needs it; KeyError where no torch has it."""
    return Interface(f"{optimizer}(fused=)", _version(_interfaces()["fused_since"][optimizer]))


def interface(name: str) -> Interface:
    """A torch interface that a fix uses, with its first version; KeyError if the table lacks it."""
    return Interface(name, _version(_interfaces()["since"][name]))


def dated_names() -> tuple[str, ...]:
    """The dotted names of torch whose first version is in the table."""
    return tuple(name for name in _interfaces()["since"] if name.startswith("torch.") and "(" not in name)


def first_version(name: str) -> tuple[int, int] | None:
    """The first torch version with a dotted name; None if it is not in the table."""
    version = _interfaces()["since"].get(name)
    return None if version is None else _version(version)


def compiles_on(torch: tuple[int, int]) -> tuple[int, int] | None:
    """The newest Python on which ``torch.compile`` of a torch runs: on newer ones the call raises RuntimeError at once.

    None for a torch without it.
    """
    known = {_version(since): _version(newest) for since, newest in _interfaces()["compiles_on"].items()}
    return max((newest for since, newest in known.items() if since <= torch), default=None)


def _version(text: str) -> tuple[int, int]:
    major, minor = text.split(".")
    return int(major), int(minor)


def nccl_variables() -> frozenset[str]:
    """The ``TORCH_NCCL_*`` variables that torch reads."""
    return frozenset(_interfaces()["nccl_variables"])


@functools.cache
def _vocabularies() -> dict[str, Any]:
    return json.loads((Path(__file__).parent / "vocabularies.json").read_text(encoding="utf-8"))


def vocabularies_as_of() -> str:
    """The day on which the vocabularies of training frameworks were last compared with their sources, ``YYYY-MM-DD``."""
    return _vocabularies()["as_of"]


def vocabulary(framework: str) -> dict[str, Any]:
    """A framework's names of its settings, with defaults, first versions and new names (`vocabularies.json`); KeyError
    if there is none."""
    return _vocabularies()["frameworks"][framework]


@functools.cache
def launchers() -> dict[str, Any]:
    """The options of launchers, `launchers.json`: by launcher those with a ``value``, with a ``pair`` of values, and
    ``flag``.

    Long names have dashes if a launcher also accepts underscores. ``processes`` and ``nodes`` are the options for the
    number of processes (in all, or on each node), ``module`` and ``command`` the ones after which the entry is a module
    or an executable.
    """
    return json.loads((Path(__file__).parent / "launchers.json").read_text(encoding="utf-8"))
