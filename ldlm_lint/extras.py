"""The optional parts of the package: which packages each needs, and how to install it."""

from __future__ import annotations

NEEDS = {"server": "pygls", "plot": "matplotlib", "monitor": "tensorboard", "probe": "torch"}
"""The package that each extra is there for, by the extra's name."""


def install(extra: str) -> str:
    """The command that installs an extra. The package is on no registry, so it begins from a clone.

    >>> install("server")
    'python -m pip install ".[server]" (in a clone of ldlm-lint)'
    """
    return f'python -m pip install ".[{extra}]" (in a clone of ldlm-lint)'
