"""Finds mixed precision under its old names, and gradient scalers that bfloat16 does not need."""

from __future__ import annotations

import functools

from astroid import nodes

from ldlm_lint.autofix.calls import add_keyword
from ldlm_lint.checkers.amp_fixes import Rewriting
from ldlm_lint.checkers.amp_uses import Use, advice, aliased, deprecated_uses
from ldlm_lint.checkers.autocasts import Precision, always_scales, autocasts, enabled_argument
from ldlm_lint.checkers.base import LdlmChecker, span_of
from ldlm_lint.model import Applicability, Claim, Edit, Fix
from ldlm_lint.python.walks import nodes_of
from ldlm_lint.requirements import NEWEST_TORCH, OLDEST_TORCH
from ldlm_lint.rules.amp import DEPRECATED_AMP_API, GRAD_SCALER_WITH_BFLOAT16, RULES
from ldlm_lint.source import Source

SCALER_REASON = (
    "steps with an infinite gradient are no longer skipped, and the state of the scaler in checkpoints becomes empty"
)


class AmpChecker(LdlmChecker):
    """Mixed precision."""

    rules = RULES

    def visit_module(self, node: nodes.Module) -> None:
        """Look at all uses of autocast and gradient scalers, which hang together by their imports."""
        data = self.source.data
        if any(trigger in data for trigger in DEPRECATED_AMP_API.triggers):
            self._check_names(node)
        if any(trigger in data for trigger in GRAD_SCALER_WITH_BFLOAT16.triggers):
            self._check_scalers(node)

    def _check_names(self, module: nodes.Module) -> None:
        newest = self.option(NEWEST_TORCH)
        uses = [use for use in deprecated_uses(module) if newest is None or newest >= use.moved.new.since]
        rewriting = Rewriting(self.source, module, uses, self.option(OLDEST_TORCH))
        for use in uses:
            self.report(
                DEPRECATED_AMP_API,
                use.place,
                args={"old": use.moved.old, "new": advice(use.moved)},
                related=[(bound, "the old name is given another one here") for bound in aliased(use.node)],
                claims=(Claim("stands-outside-tests"),),
                # What stands beside a guarded name is made for the arguments of the old one.
                fix=None if use.guarded else functools.partial(_rewritten, rewriting, use),
            )

    def _check_scalers(self, module: nodes.Module) -> None:
        scalers = [call for call in nodes_of(module, nodes.Call) if always_scales(call)]
        if not scalers:
            return
        seen = list(autocasts(module))
        if any(precision is Precision.OTHER for _, precision in seen):
            return
        beside = [call for call, precision in seen if precision is Precision.BFLOAT16]
        for call in scalers:
            self.report(
                GRAD_SCALER_WITH_BFLOAT16,
                call,
                args={"where": f"the autocast at line {beside[0].lineno}" if beside else ""},
                related=[(beside[0], "the forward pass computes in bfloat16")] if beside else (),
                claims=(Claim("autocasts-need-no-scaling", "beside" if beside else ""),),
                fix=functools.partial(_disabled, call=call),
            )


def _rewritten(rewriting: Rewriting, use: Use, _source: Source) -> Fix | None:
    return rewriting.fix(use)


def _disabled(source: Source, call: nodes.Call) -> Fix | None:
    enabled = enabled_argument(call)
    if enabled.absent:
        edit = add_keyword(source, span_of(source, call), "enabled", "False")
    else:
        edit = Edit(span_of(source, enabled.node), "False") if isinstance(enabled.node, nodes.Const) else None
    return Fix("set enabled=False", (edit,), Applicability.UNSAFE, SCALER_REASON) if edit else None
