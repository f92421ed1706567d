"""Waits that the author means, or that do not come in each step, as the checker of single files knows them.

What it knows by names and shapes (rare conditions, options that are off, sizes that Python needs) stands for facts that the program does
not show yet; until each has its owner among the concepts, both ways of finding waits ask here.
"""

from __future__ import annotations

from astroid import nodes

from ldlm_lint.checkers.by_program.view import View
from ldlm_lint.checkers.fitted_inputs import fits_inputs
from ldlm_lint.checkers.host_batches import trains_on_host
from ldlm_lint.checkers.host_time_calls import root_name
from ldlm_lint.checkers.host_time_known import is_said_to_sync
from ldlm_lint.checkers.host_time_needs import is_needed
from ldlm_lint.checkers.host_time_options import is_never_chosen
from ldlm_lint.code.table import column_of, line_of
from ldlm_lint.concepts.waits import Wait
from ldlm_lint.model import Span
from ldlm_lint.python.agreed import is_agreed
from ldlm_lint.python.host_names import READS
from ldlm_lint.python.off_by_default import is_off_by_default
from ldlm_lint.python.places import function_of
from ldlm_lint.python.rarity import in_evaluation, is_rare
from ldlm_lint.python.type_tests import is_told_from_tensors, may_be_array
from ldlm_lint.python.walks import nodes_of
from ldlm_lint.rules.roles import remark_at

_PLACES = (nodes.Call, nodes.Compare, nodes.Subscript, nodes.Name, nodes.Attribute, nodes.UnaryOp, nodes.BinOp, nodes.BoolOp)


class WaitExceptions:
    """The exceptions in the files of a project."""

    def __init__(self, view: View) -> None:
        self.view = view
        self._nodes: dict[str, dict[tuple[int, int], list[nodes.NodeNG]]] = {}

    def hold(self, wait: Wait, span: Span) -> bool:
        """Whether a wait is one of these."""
        remark = remark_at(self.view.source(wait.module), span.start, span.end)
        if is_said_to_sync(remark):
            return True
        node = self._node(wait)
        known = bool(self.view.program.ask(("edges", wait.function)))
        return node is not None and _is_excepted(node, known)

    def _node(self, wait: Wait) -> nodes.NodeNG | None:
        path = self.view.path(wait.module)
        if path not in self._nodes:
            tree = self.view.context.trees.of(path)
            found: dict[tuple[int, int], list[nodes.NodeNG]] = {}
            for node in nodes_of(tree, _PLACES) if tree is not None else ():
                found.setdefault((node.lineno or 0, node.col_offset or 0), []).append(node)
            self._nodes[path] = found
        begun = self._nodes[path].get((line_of(wait.place), column_of(wait.place)), [])
        ends = (line_of(wait.end), column_of(wait.end))
        # ``x.detach().cpu()`` and ``x.detach()`` begin at one place.
        same = [node for node in begun if (node.end_lineno, node.end_col_offset) == ends]
        return next(iter(same or begun), None)


def _is_excepted(node: nodes.NodeNG, known: bool) -> bool:
    """``known`` if the program knows who calls the function around: then it knows what its options are, too."""
    function = function_of(node)
    if is_rare(node) or in_evaluation(node) or is_told_from_tensors(node) or is_agreed(node):
        return True
    if not known and (is_off_by_default(node) or is_never_chosen(node)):
        return True
    if trains_on_host(function) or fits_inputs(function):
        return True
    if isinstance(node, nodes.Call) and isinstance(node.func, nodes.Attribute) and node.func.attrname in READS | {"to"}:
        return is_needed(node) or may_be_array(node, root_name(node.func.expr))
    return False
