"""Code of minor importance: copied from another project, or reached by no program.

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
    UNREACHED = "unreached"


class Standing(NamedTuple):
    """The status of the code of a finding.

    ``area`` is the folder or file (absolute) that a report names for it, ``origin`` the project that it was copied
    from, or the holder of its copyright; empty for code that no program reaches.
    """

    reach: Reach
    area: str
    origin: str = ""

    @property
    def words(self) -> str:
        """``copied from mmcv``, or ``in code that no program reaches``."""
        return f"copied from {self.origin}" if self.reach is Reach.COPIED else "in code that no program reaches"


def counted(findings: Iterable[Finding]) -> list[tuple[Standing, int]]:
    """How many findings are in which code, the copied code first, then the most."""
    counts = Counter(finding.standing for finding in findings if finding.standing is not None)
    return sorted(counts.items(), key=lambda one: (one[0].reach.value, -one[1], one[0].area))
