"""Conditions of findings about optimizer implementations: a call that may create one of torch's."""

from __future__ import annotations

from ldlm_lint.patterns import lazily
from ldlm_lint.rules.fused import FUSED_SINCE, WITHOUT_FUSED
from ldlm_lint.shapes.meaning import calls_of
from ldlm_lint.shapes.outline import Outline

_FUSED = lazily(rb"fused(?<!\wfused)(?!\w)")
_CLASSES = frozenset(name.rpartition(".")[2] for name in WITHOUT_FUSED | FUSED_SINCE.keys())


def may_fuse(outline: Outline) -> bool:
    """Whether an argument or a key may be named exactly ``fused``, and an optimizer may be created."""
    return _FUSED.search(outline.data) is not None and _may_make(outline, _CLASSES)


def _may_make(outline: Outline, names: frozenset[str]) -> bool:
    """Whether a class of one of these names may be called: torch's, or one re-exported by any module."""
    packages = {one.partition(".")[0] for meant in outline.imported.values() for one in meant}
    return any(True for _ in calls_of(outline, names, tuple(packages)))
