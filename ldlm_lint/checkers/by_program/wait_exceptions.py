"""Waits that the author means, that cannot be avoided, or that do not happen in each step."""

from __future__ import annotations

from ldlm_lint.checkers.by_program.view import View
from ldlm_lint.checkers.by_program.wait_remarks import says_host, says_sync
from ldlm_lint.checkers.by_program.wait_texts import WaitTexts
from ldlm_lint.concepts.agreement import Agreement
from ldlm_lint.concepts.evaluation import Evaluation
from ldlm_lint.concepts.host_batches import HostBatches
from ldlm_lint.concepts.host_needs import is_needed
from ldlm_lint.concepts.reach import Reach
from ldlm_lint.concepts.rhythm import Rhythm
from ldlm_lint.concepts.sent import Sent
from ldlm_lint.concepts.switched_off import SwitchedOff
from ldlm_lint.concepts.type_tests import is_told_from_tensors, may_be_array
from ldlm_lint.concepts.waits import Wait
from ldlm_lint.model import Span
from ldlm_lint.program.atoms import MASK
from ldlm_lint.program.handles import Function, Guard
from ldlm_lint.program.spots import Spot
from ldlm_lint.rules.roles import remark_at
from ldlm_lint.vocabulary.reading import READS


class WaitExceptions:
    """The exceptions in the files of a project."""

    def __init__(self, view: View, texts: WaitTexts) -> None:
        self.view = view
        self.texts = texts
        self._evaluation = view[Evaluation]
        self._host_batches = view[HostBatches]
        self._switched_off = SwitchedOff(view)
        self._sent = view[Sent]

    def hold(self, wait: Wait, span: Span) -> bool:
        """Whether a wait is one of these."""
        remark = remark_at(self.view.source(wait.module), span.start, span.end)
        if says_sync(remark) or says_host(remark) or self.view[Agreement].decides(wait.module, wait.node, wait.function):
            return True
        function = Function(self.view, wait.function)
        if not self.view[Reach].is_certain(function) and self._evaluation.is_named_so(function):
            return True
        spot = spot_of(self.view, wait)
        if self._switched_off.is_one(spot) or self.view[Rhythm].is_rare(spot):
            return True
        return self._host_batches.trains_on(wait.function) or self._is_of_host(wait) or self._sent.is_only_sent(wait.module, wait.node)

    def _is_of_host(self, wait: Wait) -> bool:
        """Whether the read value comes from the host, or has to."""
        module, row = wait.module, wait.module.nodes[wait.node]
        site = module.table.sites.get(wait.node)
        if row[0] != "call" or site is None:
            return False
        function = module.nodes[row[1]]
        value = function[1] if function[0] == "attr" and not row[2] else next(iter(row[2]), 0)
        if function[0] == "attr" and function[2] in READS:
            value = function[1]
            if self._sent.is_sent(module, wait.node):
                return True
            if is_needed(module, self.texts.reading(wait), wait.node) or may_be_array(module, site.guard, wait.function & MASK, value):
                return True
        return bool(value) and is_told_from_tensors(module, site.guard, value)


def spot_of(view: View, wait: Wait) -> Spot:
    """Where a wait is."""
    return Spot(Function(view, wait.function), Guard(view, wait.module.base | wait.guard) if wait.guard >= 0 else None, None, wait.place)
