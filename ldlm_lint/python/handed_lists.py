"""List literals in a call: ``train([loader, None])`` unpacks its argument by position."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from astroid import nodes

from ldlm_lint.python.places import position_of
from ldlm_lint.python.slots import Slot, slots_of

if TYPE_CHECKING:
    from ldlm_lint.python.flow import Callee

# Libraries whose functions take lists of arrays, which are irrelevant for the questions.
_FOREIGN = ("torch.", "numpy.", "math.", "os.")


def handed_list(node: nodes.NodeNG, callee: Callee) -> list[Slot]:
    """The position of a list argument with variables or attributes; empty if the callee is not a function of the
    project."""
    ours = callee.kind in ("def", "self") or (callee.kind == "import" and not callee.name.startswith(_FOREIGN))
    if not ours or not isinstance(node, (nodes.List, nodes.Tuple)):
        return []
    held = any(isinstance(one, (nodes.Name, nodes.Attribute)) for one in node.elts)
    return [Slot("out", "", position_of(node))] if held else []


def moved_into_list(node: nodes.NodeNG, callee: Callee) -> Iterator[tuple[Slot, Slot]]:
    """The moves of variables and attributes into the list passed as this argument."""
    for place in handed_list(node, callee):
        for index, part in enumerate(node.elts):
            held = slots_of(part) if isinstance(part, (nodes.Name, nodes.Attribute)) else []
            yield from ((source, place.at(str(index))) for source in held)
