"""How findings about loaders name the pass that makes them matter."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ldlm_lint.concepts.loader_passes import Pass
from ldlm_lint.concepts.loaders import Loader
from ldlm_lint.model import Related

if TYPE_CHECKING:
    from ldlm_lint.checkers.project_code import ProjectCode

TRAINS = "this trains on its batches"
AGAIN = "this iterates the DataLoader repeatedly"


def described(view: ProjectCode, loader: Loader, found: Pass) -> str:
    """A pass in the message about a loader: "the loop at line 12"."""
    return view.described(found.function.module, found.spot.place, loader.call.module)


def related_to(loader: Loader, found: Pass, note: str) -> tuple[Related, ...]:
    """A pass as a place beside the finding at a loader, unless it is on the same line."""
    is_same = found.function.module is loader.call.module and found.spot.line == loader.call.line
    return () if is_same else (Related(found.spot.line_span, note),)
