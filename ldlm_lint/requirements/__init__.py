"""Determines the versions of torch and Python that a project runs on, from its own files.

`lists` and `installs` read what a file says, `levels` finds the files that apply to a folder, `choice` says what all of
them leave. Nothing of the project is run: ``setup.py`` and commands are searched as text.
"""

from __future__ import annotations

from typing import NamedTuple

OLDEST_TORCH, NEWEST_TORCH = "target-torch", "newest-torch"
"""The names under which rules are told the two ends of the range."""

Version = tuple[int, int]
TorchVersion = Version
TORCH_VERSIONS: tuple[TorchVersion, ...] = tuple((2, minor) for minor in range(14))
"""The versions (major, minor) that the rules know; as of torch 2.13."""


class TorchRange(NamedTuple):
    """The oldest and the newest torch that a project runs on; None if it does not bound them."""

    oldest: TorchVersion | None = None
    newest: TorchVersion | None = None


ANY_TORCH = TorchRange()


class Package(NamedTuple):
    """Something whose version a project's files bound: its names on PyPI and in conda, and its versions, oldest first."""

    name: str
    conda: frozenset[str]
    versions: tuple[Version, ...]


TORCH = Package("torch", frozenset({"pytorch", "pytorch-gpu", "pytorch-cpu", "torch"}), (*((1, minor) for minor in range(14)), *TORCH_VERSIONS))
PYTHON = Package("python", frozenset({"python"}), tuple((3, minor) for minor in range(6, 16)))


class Said(NamedTuple):
    """A requirement as a file writes it: the text, where it begins, and the versions as PEP 440 specifies them.

    ``locked``: a lock file states the version that was installed.
    """

    package: Package
    text: str
    at: int
    versions: str
    locked: bool = False


class Bound(NamedTuple):
    """A requirement that bounds a package, in a line of a file (absolute path), as written there.

    ``allowed`` are the known versions that it allows. ``lower`` is its lower bound, also if it is older or newer than all
    known ones; None if there is none.
    """

    package: str
    path: str
    line: int
    text: str
    allowed: tuple[Version, ...]
    lower: Version | None
    locked: bool = False
    is_open: bool = False
    """Whether it allows all versions that will follow: it does not choose one."""
    is_told: bool = False
    """Whether a page of documentation says it, which may be older than what the project requires."""

    @property
    def floor(self) -> Version:
        """The oldest version that it allows; without a lower bound the newest, which certainly counts."""
        return self.lower or self.allowed[-1]

    @property
    def newest(self) -> Version | None:
        """The newest version that it allows; None if nothing bounds it from above."""
        return None if self.is_open or not self.allowed else self.allowed[-1]
