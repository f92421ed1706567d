"""What would decide an inconclusive verdict: another device, more ranks, more steps, a quiet machine; with the
command.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from ldlm_lint.evidence.model import Judgement, Scope, Verdict

DEVICE, RANKS, STEPS, QUIET = "device", "ranks", "steps", "quiet"
ORDER = (DEVICE, RANKS, STEPS, QUIET, "")
UNKNOWN = "<your launch command>"
_FEWEST_STEPS = 100


def hint(judgement: Judgement) -> str:
    """What to do about an inconclusive verdict, as a short text; empty if nothing is known to help.

    >>> hint(Judgement("", "", Verdict.INCONCLUSIVE, "", Scope("cpu"), settled_by=DEVICE))
    'run it on the GPU machine'
    """
    if judgement.verdict is not Verdict.INCONCLUSIVE:
        return ""
    scope = judgement.scope
    machine = "GPU machine" if scope.device == "cpu" else "training machine"
    return {
        DEVICE: f"run it on the {machine}",
        RANKS: "run it under torchrun" if scope.world_size < 2 else "gather the evidence of all ranks",
        STEPS: "watch more steps",
        QUIET: "run it again on an idle machine",
    }.get(judgement.settled_by, "")


def command(settled_by: str, launch: Sequence[str], scope: Scope) -> str:
    """The command that would decide it; ``launch`` is the program that was watched (empty: unknown).

    >>> command(RANKS, ("python", "train.py"), Scope("cpu"))
    'ldlm-lint probe run -- torchrun --nproc-per-node 2 train.py'
    >>> command(STEPS, (), Scope("cpu", steps=36))
    'ldlm-lint probe run --steps 180 -- <your launch command>'
    """
    words = list(launch)
    if settled_by == RANKS and scope.world_size < 2 and words and words[0].rpartition("/")[2].startswith("python"):
        words = ["torchrun", "--nproc-per-node", "2", *words[1:]]
    steps = f" --steps {max(_FEWEST_STEPS, 5 * scope.steps)}" if settled_by == STEPS else ""
    return f"ldlm-lint probe run{steps} -- {shlex.join(words) or UNKNOWN}"
