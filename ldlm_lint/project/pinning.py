"""The training loops that get their batches from a pinning loader."""

from __future__ import annotations

from functools import cached_property

from ldlm_lint.patterns import lazily
from ldlm_lint.project.index import Project
from ldlm_lint.project.loaders import Tracer
from ldlm_lint.project.text import call_text
from ldlm_lint.python.slots import LOADERS

_PINS = lazily(rb"\bpin_memory\s*=\s*(?!False|None|0\b)")
_MAPPING = lazily(rb"\*\*\s*[\w.]+")
_PINS_IN_MAPPING = lazily(rb"[\"']pin_memory[\"']\s*(?::|\]\s*=)\s*True")
# Accelerate moves the batches itself.
_MOVES_ITSELF = lazily(rb"\bAccelerator\(|setup_dataloaders\(")

Place = tuple[str, int]
"""A file and a line of it."""


class Pinning:
    """Follows the pinned loaders of a project to the loops that train on them."""

    def __init__(self, project: Project, tracer: Tracer) -> None:
        self._project = project
        self._tracer = tracer

    @cached_property
    def loops(self) -> dict[Place, Place]:
        """The training loops over pinned batches, by file and line, each with the loader's place."""
        found: dict[Place, Place] = {}
        for path in sorted(self._project.files):
            data = self._project.data(path)
            if b"pin_memory" not in data or self._project.is_test(path):
                continue
            for call in self._project.flow(path).calls:
                if call.callee.name in LOADERS and self._pins(path, call.position):
                    for site in self._tracer.sites(path, call.position):
                        if not site.framework and self._tracer.trains(site) and not _MOVES_ITSELF.search(self._project.data(site.path)):
                            found.setdefault((site.path, site.line), (path, int(call.position.partition(":")[0])))
        return found

    def _pins(self, path: str, position: str) -> bool:
        data = self._project.data(path)
        text = call_text(data, position)
        if b"pin_memory" in text:
            return _PINS.search(text) is not None
        return _MAPPING.search(text) is not None and _PINS_IN_MAPPING.search(data) is not None
