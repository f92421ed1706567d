"""Interpolations of OmegaConf: ``${a.b}``, ``${.sibling}``, ``${oc.env:NAME,default}``, ``${oc.select:a.b,default}``.

A resolver that a project registers itself (``${eval:...}``) is code of the program: its result is unknown.
Source: https://omegaconf.readthedocs.io/en/2.3_branch/usage.html#variable-interpolation
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ldlm_lint.configs.document import Entry, Path


@dataclass(frozen=True, slots=True)
class Resolved:
    """What an entry comes to once its interpolations are followed.

    ``value`` is the scalar as Python data, ``entry`` the place where it is written as a literal (the one to edit),
    ``through`` the entries on the way there, outermost first. ``variable`` names the environment variable that takes
    precedence over the value where it is set (``${oc.env:NAME,default}``), empty where there is none.
    """

    value: object
    entry: Entry
    through: tuple[Entry, ...] = ()
    variable: str = ""


Lookup = Callable[[Path], "Entry | None"]
"""From an absolute path of keys to the entry that counts there, None where it is unknown or absent."""


def resolve(entry: Entry, at: Path, lookup: Lookup) -> Resolved | None:
    """What the scalar ``entry`` at the absolute path ``at`` comes to; None where it cannot be told."""
    return None


def is_interpolated(text: str) -> bool:
    """Whether a scalar holds an interpolation."""
    return "${" in text
