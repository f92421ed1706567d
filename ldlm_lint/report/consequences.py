"""What a consequence means for a reader of a report: a sentence, and how bad it is."""

from __future__ import annotations

from ldlm_lint.model import Consequence

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


def tone(consequence: Consequence) -> str:
    """How bad a consequence is: ``grave``, ``costly`` or ``minor``; each report has a colour for it."""
    return _BY_CONSEQUENCE[consequence]
