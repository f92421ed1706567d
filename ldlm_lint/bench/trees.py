"""The two compared trees, as copies: the project unchanged and with its fixes applied, or two given ones.

Each run gets a fresh copy at the same place, so that none sees files of an earlier one (checkpoints to resume from,
caches next to the code), and all have the same path.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ldlm_lint.config import Overrides
from ldlm_lint.configurations import Configurations
from ldlm_lint.fixing import apply_fixes
from ldlm_lint.model import Applicability
from ldlm_lint.probe import copies
from ldlm_lint.select import Layer

BEFORE, AGAIN, AFTER = "before", "before again", "after"


class BenchError(Exception):
    """A comparison that is impossible; the text says why."""


@dataclass(frozen=True, slots=True)
class Trees:
    """The trees by arm, and the place of runs; ``fixes`` counts the applied fixes by rule (empty for two given
    trees).
    """

    arms: Mapping[str, Path]
    place: Path
    fixes: Mapping[str, int] = field(default_factory=dict)
    left_out: tuple[str, ...] = ()

    def fresh(self, arm: str) -> Path:
        """A fresh copy of an arm's tree, at the same place for all of them."""
        if self.place.exists():
            shutil.rmtree(self.place)
        shutil.copytree(self.arms[arm], self.place, symlinks=True)
        return self.place


def given(before: Path, after: Path, scratch: Path, links: Sequence[str]) -> Trees:
    """Two trees of the user; raises BenchError if copying fails."""
    made = [_copied(one, scratch / name, links) for one, name in ((before, "before"), (after, "after"))]
    return Trees(_arms(made[0].root, made[1].root), scratch / before.name, left_out=made[0].left_out)


def fixed(
    project: Path, scratch: Path, links: Sequence[str], *, select: Sequence[str] = (), unsafe: bool = False
) -> Trees:
    """The project and its copy with all fixes of a level; raises BenchError if nothing is fixed."""
    before = _copied(project, scratch / "before", links)
    after = _copied(project, scratch / "after", links)
    configured = Configurations(after.root, overrides=Overrides(Layer(tuple(select) if select else None)))
    limit = Applicability.UNSAFE if unsafe else Applicability.SAFE
    outcome = apply_fixes([after.root], configured, after.root, limit, write=True)
    if not outcome.applied:
        more = "" if unsafe else "; --unsafe-fixes also applies those that can change behaviour"
        raise BenchError(f"no fix to apply in {project}, so there is nothing to compare{more}")
    shutil.rmtree(after.root / ".ldlm-lint", ignore_errors=True)
    return Trees(_arms(before.root, after.root), scratch / project.name, outcome.by_rule, before.left_out)


def _arms(before: Path, after: Path) -> dict[str, Path]:
    return {BEFORE: before, AGAIN: before, AFTER: after}


def _copied(tree: Path, into: Path, links: Sequence[str]) -> copies.Copy:
    try:
        return copies.make(tree, into, links)
    except (copies.CopyError, OSError) as error:
        raise BenchError(f"cannot make the copy: {error}") from error
