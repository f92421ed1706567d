"""Finds copies between host and device that wait needlessly."""

from __future__ import annotations

from typing import TYPE_CHECKING

from astroid import nodes

from ldlm_lint.autofix.calls import add_keyword
from ldlm_lint.checkers.base import LdlmChecker, span_of
from ldlm_lint.checkers.batch_copies import batch_of_next, blocking_copies
from ldlm_lint.model import Applicability, Claim, Fix
from ldlm_lint.rules.copies import BLOCKING_COPY, RULES
from ldlm_lint.source import Source
from ldlm_lint.wording import quoted

if TYPE_CHECKING:
    from ldlm_lint.checkers.host import Host

_REASON = "code that writes into the pinned batch before the copy is done changes what arrives on the GPU"


class CopiesChecker(LdlmChecker):
    """Copies between host and device."""

    rules = RULES

    def __init__(self, linter: Host) -> None:
        super().__init__(linter)
        self._loops: set[int] = set()

    def visit_module(self, _node: nodes.Module) -> None:
        """Forget the loops of the last file."""
        self._loops = set()

    def visit_call(self, node: nodes.Call) -> None:
        """Look at loops that take their batches by ``next``."""
        if (taken := batch_of_next(node)) is not None:
            loop, targets = taken
            self._check_loop(loop, targets, loop.lineno or 0)

    def visit_for(self, node: nodes.For) -> None:
        """Look at loops over batches."""
        self._check_loop(node, [node.target], node.iter.lineno or 0)

    def _check_loop(self, loop: nodes.NodeNG, targets: list[nodes.NodeNG], line: int) -> None:
        if line in self._loops:
            return
        copies = blocking_copies(loop, targets)
        if not copies:
            return
        self._loops.add(line)
        self.report(
            BLOCKING_COPY,
            copies[0],
            args={"copies": quoted(f"{copies[0].func.as_string()}()"), "loader": "its place"},
            related=[(one, "this copy waits too") for one in copies[1:]],
            claims=(Claim("loop-takes-pinned-batches", str(line)), Claim("trains-on-cuda")),
            fix=lambda source: _asynchronous_fix(source, copies),
        )


def _asynchronous_fix(source: Source, copies: list[nodes.Call]) -> Fix | None:
    edits = [add_keyword(source, span_of(source, one), "non_blocking", "True") for one in copies]
    known = tuple(edit for edit in edits if edit is not None)
    return Fix("set non_blocking=True", known, Applicability.UNSAFE, _REASON) if len(known) == len(edits) else None
