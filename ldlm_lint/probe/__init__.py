"""The runtime probe: experiments on this machine, and the watcher of the user's own training.

It is the only part of ldlm-lint that imports torch or runs the user's code, and only on request: ``import
ldlm_lint.probe`` alone imports neither torch nor the watcher. In a program: ``with ldlm_lint.probe.watch(steps=20) as
watched: ...``
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ldlm_lint.probe.library import Watched, watch

__all__ = ["Watched", "watch"]


def __getattr__(name: str) -> Any:
    if name in __all__:
        from ldlm_lint.probe import library

        return getattr(library, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
