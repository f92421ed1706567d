"""The condition of findings about a training step on a text: a file that trains."""

from __future__ import annotations

from ldlm_lint.python.skim import Skim


def trains(data: bytes) -> bool:
    """Whether the project would count the file among those that train."""
    return Skim(data).trains
