"""The names of folders beside a library that show how to use it.

No flow tells an example from a training that users start by hand: both are programs that nothing imports and no script
starts. So the name decides, and only for a folder beside a package that the repository builds
(`ldlm_lint.project.examples`). Dated November 2026; ``scripts``, ``tools``, ``recipes`` and
``projects`` are not among the names, since many repositories keep their trainings there.
"""

from __future__ import annotations

ASIDES = frozenset(
    {
        *("example", "examples", "tutorial", "tutorials", "notebook", "notebooks", "demo", "demos", "doc", "docs"),
        *("cookbook", "cookbooks", "colab", "playground"),
    }
)
"""The words of which the name of such a folder has one: ``examples``, ``web-demos``, ``example_scripts``."""
