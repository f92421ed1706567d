"""torch.compile inside a ``try``: whether the handled error occurred there."""

from __future__ import annotations

import re
from collections.abc import Iterable

from ldlm_lint.evidence.model import Judgement, Verdict
from ldlm_lint.evidence.verdicts.grouping import judgement, parts, places
from ldlm_lint.evidence.watched import WatchedRun

RULE, CLAIM = "compile-guarded-by-try", "torch.compile returns, and the compiler fails when the model is called"
_COMPILER = re.compile(
    r"torch\._(dynamo|inductor)|BackendCompilerFailed|InductorError|InvalidCxxCompiler|TorchRuntimeError|\bUnsupported:"
)


def judge(run: WatchedRun) -> Iterable[Judgement]:
    """The judgements about each place that calls torch.compile, where a compiler failed."""
    crash = next((one.run.exception for one in run.ranks if _COMPILER.search(one.run.exception)), "")
    for place in places(parts(run, "compilation", "calls")):
        errors = [error for one in place.records for error in one["errors"]]
        if errors:
            reason = f"torch.compile itself raised here: {errors[0][:160]}"
            yield judgement(run, RULE, CLAIM, Verdict.REFUTED, reason, (place.site,))
        elif crash:
            reason = f"torch.compile returned here, and the run ended with {crash[:160]}"
            yield judgement(run, RULE, CLAIM, Verdict.VERIFIED, reason, (place.site,))
