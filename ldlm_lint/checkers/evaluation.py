"""Finds evaluations that record gradients; the project knows whether their callers turn gradients off."""

from __future__ import annotations

from collections.abc import Iterable

from astroid import nodes

from ldlm_lint.checkers.base import LdlmChecker
from ldlm_lint.checkers.evaluation_fixes import no_grad_fix
from ldlm_lint.checkers.evaluation_results import result_is_differentiated
from ldlm_lint.checkers.evaluation_runs import Run, runs_of
from ldlm_lint.checkers.memory.evaluation_with_gradients import RULE
from ldlm_lint.model import Claim, Confidence


class EvaluationChecker(LdlmChecker):
    """How models are evaluated."""

    rules = (RULE,)

    def visit_module(self, node: nodes.Module) -> None:
        """Look at every place of a file that runs a model for its results."""
        data = self.source.data
        # A file that receives its model may move values to a GPU without importing torch.
        if (b"torch" in data or b".cuda(" in data) and any(trigger in data for trigger in RULE.triggers):
            for runs in _by_place(runs_of(node, self.source.text)):
                if not result_is_differentiated(runs[0].owner):
                    self._report(runs)

    def _report(self, runs: list[Run]) -> None:
        run = runs[0]
        related = [(one.call, "this call too") for one in runs[1:]]
        if run.shown is not None:
            related.insert(0, (run.shown, "the model is switched to evaluation mode here"))
        self.report(
            RULE,
            run.call,
            args={"model": run.root},
            confidence=Confidence.MEDIUM if run.needs else Confidence.HIGH,
            related=related,
            claims=(Claim("evaluation-records-gradients", ";".join(one.subject for one in runs)),),
            fix=lambda source: no_grad_fix(source, run) if len({one.place for one in runs}) == 1 else None,
        )


def _by_place(runs: Iterable[Run]) -> list[list[Run]]:
    """The runs that one edit would fix: those of a function without a backward pass, or of one loop."""
    places: dict[nodes.NodeNG, list[Run]] = {}
    for run in runs:
        places.setdefault(run.group, []).append(run)
    # What calls the model itself is certain; possible ones are checked by the project only if none is certain.
    return [[one for one in found if one.direct and (one.loops or one.learns)] or found for found in places.values()]
