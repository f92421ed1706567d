"""The keys by which a configuration file names others that it is based on, as the loaders of frameworks and projects read
them.

Only the name is left to tell such a key from others that hold a path: each project merges files in its own code. The list
was written from memory, of detectron2, PaddleDetection, OpenMMLab and common habits; no documentation was read for it.
"""

from __future__ import annotations

BASE_KEYS = frozenset(
    {
        *("_base_", "_BASE_", "BASE", "_base", "base", "bases", "base_config", "base_configs"),
        *("extends", "inherit", "inherits", "inherit_from", "include", "includes", "parent"),
    }
)

__all__ = ["BASE_KEYS"]
