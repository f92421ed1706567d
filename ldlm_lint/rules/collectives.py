"""How long a collective may hang before the job is torn down, as options and as text."""

from __future__ import annotations

from ldlm_lint.model import Option

COLLECTIVE_LIMIT = Option("collective-limit", 7200, "longest collective timeout that is not reported, in seconds", minimum=1)
COLLECTIVE_TIMEOUT = Option(
    "collective-timeout", 1800, "collective timeout that the fix writes, in seconds (whole minutes)", minimum=1, at_most="collective-limit"
)
COLLECTIVE_MINIMUM = Option(
    "collective-minimum", 30, "shortest collective timeout that is not reported, in seconds", minimum=1, at_most="collective-timeout"
)
DO_WORK_BEFORE = "do the work of one rank before init_process_group, or in a separate run, then shorten the timeout; until then keep it above the longest wait"
"""What to do where the ranks wait for one that works alone."""


def compared(seconds: float, limit: float) -> dict[str, str]:
    """A duration and the limit that it is above, as text: in seconds if they would look the same."""
    length, most = length_of(seconds), length_of(limit)
    return {"length": length if length != most else f"{seconds:g} seconds", "limit": most}


def length_of(seconds: float) -> str:
    """A duration in seconds in the unit that people read: ``10 hours``, ``138.9 days``."""
    for unit, size in (("days", 86400), ("hours", 3600), ("minutes", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:.1f}".removesuffix(".0") + f" {unit}"
    return f"{seconds:g} seconds"
