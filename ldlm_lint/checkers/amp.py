"""Finds mixed precision under its old names, and gradient scalers that bfloat16 does not need."""

from __future__ import annotations

import functools

from astroid import nodes

from ldlm_lint.checkers.amp_fixes import Rewriting
from ldlm_lint.checkers.amp_uses import Use, advice, aliased, deprecated_uses
from ldlm_lint.checkers.base import LdlmChecker
from ldlm_lint.model import Claim, Fix
from ldlm_lint.requirements import NEWEST_TORCH, OLDEST_TORCH
from ldlm_lint.rules.amp import DEPRECATED_AMP_API, RULES
from ldlm_lint.source import Source


class AmpChecker(LdlmChecker):
    """Mixed precision."""

    rules = RULES

    def visit_module(self, node: nodes.Module) -> None:
        """Look at all uses of autocast and gradient scalers, which hang together by their imports."""
        data = self.source.data
        if any(trigger in data for trigger in DEPRECATED_AMP_API.triggers):
            self._check_names(node)

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


def _rewritten(rewriting: Rewriting, use: Use, _source: Source) -> Fix | None:
    return rewriting.fix(use)
