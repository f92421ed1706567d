"""The families of rules, by the names that pylint accepts for them in ``--enable``, ``--disable`` and comments."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

UMBRELLAS: Mapping[str, str] = MappingProxyType(
    {
        "68": "ldlm-linter",
        "71": "ldlm-data",
        "72": "ldlm-distributed",
        "73": "ldlm-optimizer",
        "75": "ldlm-memory",
        "76": "ldlm-checkpoints",
        "78": "ldlm-precision",
    }
)
"""The name of each family, by its two digits."""

ALL_FAMILIES = "ldlm-lint"
"""The name of all families together."""
