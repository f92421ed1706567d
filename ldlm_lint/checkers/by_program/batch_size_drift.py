"""batch-size-drift where the quotient, the ranks and the optimizer step are in different attributes, functions or
files."""

from __future__ import annotations

from collections.abc import Iterator

from astroid import nodes

from ldlm_lint.checkers.base import span_of
from ldlm_lint.checkers.batch_size import drift_of
from ldlm_lint.checkers.by_program.view import View
from ldlm_lint.code.table import COLUMNS
from ldlm_lint.concepts.micro_batches import MicroBatches
from ldlm_lint.model import Confidence, Finding
from ldlm_lint.python.walks import nodes_of
from ldlm_lint.rules.batch_size import BATCH_SIZE_DRIFT

RULE = BATCH_SIZE_DRIFT
WORDS = (b"get_world_size", b"device_count")


def find(view: View) -> Iterator[Finding]:
    """The quotients that decide when an optimizer steps, and have the number of ranks in their divisor."""
    micro = view[MicroBatches]
    for quotient in micro.quotients():
        if not micro.counts_ranks(quotient.operands[1]):
            continue
        module = quotient.module
        tree = view.context.trees.of(view.path(module))
        node = None if tree is None else _assignment_at(tree, quotient.place)
        drift = None if node is None else drift_of(node, _target(node), node.value)
        if node is not None and drift is not None:
            yield view.finding(RULE, span_of(view.source(module), node), drift.args, confidence=Confidence.MEDIUM)


def _assignment_at(tree: nodes.Module, place: int) -> nodes.NodeNG | None:
    """The assignment with the floor division at a place."""
    for node in nodes_of(tree, nodes.BinOp):
        if node.op == "//" and ((node.lineno or 0) << COLUMNS | (node.col_offset or 0)) == place:
            statement = node.statement()
            return statement if isinstance(statement, (nodes.Assign, nodes.AnnAssign)) else None
    return None


def _target(node: nodes.NodeNG) -> nodes.NodeNG:
    return node.targets[0] if isinstance(node, nodes.Assign) else node.target
