"""Code of minor importance: copied from another project, an example beside a library, or reached by no program.

Its findings stay in every machine-readable format, at level info; a report for people counts them by folder.
"""

from __future__ import annotations

import enum
from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from ldlm_lint.model import Finding


class Reach(enum.Enum):
    """Why the code of a finding is of minor importance, as the word used in JSON and SARIF."""

    COPIED = "copied"
    EXAMPLE = "example"
    UNREACHED = "unreached"


class Standing(NamedTuple):
    """The status of the code of a finding.

    ``area`` is the folder or file (absolute) that a report names for it, ``origin`` the project that it was copied
    from, or the holder of its copyright, or the library or program that an example is beside; empty for code that no
    program reaches.
    """

    reach: Reach
    area: str
    origin: str = ""

    @property
    def words(self) -> str:
        """``copied from mmcv``, ``in an example beside peft``, or ``in code that no program reaches``."""
        if self.reach is Reach.EXAMPLE and not self.area.endswith("/"):
            return f"in a notebook beside {self.origin}"
        return _WORDS[self.reach] + self.origin

    @property
    def copied_from(self) -> str:
        """The origin of copied code; else empty."""
        return self.origin if self.reach is Reach.COPIED else ""


_WORDS = {Reach.COPIED: "copied from ", Reach.EXAMPLE: "in an example beside ", Reach.UNREACHED: "in code that no program reaches"}


def counted(findings: Iterable[Finding]) -> list[tuple[Standing, int]]:
    """How many findings are in which code, the copied code first, then examples, then the most."""
    counts = Counter(finding.standing for finding in findings if finding.standing is not None)
    return sorted(counts.items(), key=lambda one: (one[0].reach.value, -one[1], one[0].area))
