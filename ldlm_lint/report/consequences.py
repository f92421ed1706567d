"""What a consequence means for a reader of a report: a sentence, how bad it is, and what comes first.

The order is that of `Consequence`: what stops a run or spoils its result, then what is unsafe, then what costs time,
memory or disk. Findings at level info come after all others, whatever their rule is about: most of them are about a file
that the program wrote itself, or a wait that adds nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ldlm_lint.model import Consequence, Severity

if TYPE_CHECKING:
    from ldlm_lint.model import Finding, Rule

LEADS_TO = {
    Consequence.HANG: "the job waits for hours or forever, on paid GPUs",
    Consequence.CRASH: "the run ends with an error",
    Consequence.WRONG_RESULT: "the training runs, but with other data, gradients or steps than intended",
    Consequence.DATA_LOSS: "a checkpoint or result is lost or damaged",
    Consequence.SECURITY: "loading a file can run code",
    Consequence.SLOW: "steps, epochs or start-up take longer",
    Consequence.MEMORY: "GPU or host memory is used without need",
    Consequence.DISK: "the disk fills up",
    Consequence.DEPRECATED: "an interface that still works, but warns and will be removed",
    Consequence.CONFIG: "a setting that has no effect, or a file that cannot be checked",
}
"""What happens, as docs/formats.md says it."""
GRAVE, COSTLY, MINOR = "grave", "costly", "minor"
_TONES = {
    GRAVE: (Consequence.HANG, Consequence.CRASH, Consequence.WRONG_RESULT, Consequence.DATA_LOSS, Consequence.SECURITY),
    COSTLY: (Consequence.SLOW, Consequence.MEMORY, Consequence.DISK),
    MINOR: (Consequence.DEPRECATED, Consequence.CONFIG),
}
_BY_CONSEQUENCE = {consequence: name for name, consequences in _TONES.items() for consequence in consequences}


INFO = Severity.INFO.label
LESS_AT_RISK = "less is at risk here, and no check fails"
"""What level info means, as the others are said."""


def is_minor(finding: Finding) -> bool:
    """Whether a finding is at level info, for whatever reason."""
    return finding.severity is Severity.INFO


def counted_as(finding: Finding, rule: Rule) -> str:
    """The word under which a summary counts a finding: its consequence, at level info ``info``."""
    return INFO if is_minor(finding) else rule.consequence.value


def gravity(finding: Finding, rule: Rule) -> tuple[bool, int]:
    """The sort key of a finding among others: the worst first."""
    return is_minor(finding), rule.consequence.rank


def tone(consequence: Consequence) -> str:
    """How bad a consequence is: ``grave``, ``costly`` or ``minor``; each report has a colour for it."""
    return _BY_CONSEQUENCE[consequence]
