"""Gradient accumulation fixed in a file although the launches that read it get their number of GPUs from outside."""

from __future__ import annotations

from collections.abc import Iterator

from ldlm_lint.frameworks.sections import Section
from ldlm_lint.model import Claim, Finding
from ldlm_lint.rules.batch_size import GRADIENT_ACCUMULATION_FIXED, is_global_batch_size
from ldlm_lint.wording import quoted

_STEPS = "gradient_accumulation_steps"
# DeepSpeed's name of the batch over all GPUs, from which it computes the steps or checks them.
_WHOLE_BATCH = "train_batch_size"


def fixed_accumulation(section: Section) -> Iterator[Finding]:
    """The finding about accumulation steps above 1; in a command the launch rules handle it."""
    steps = section.number(_STEPS)
    if section.from_command or steps is None or steps <= 1:
        return
    if any(map(is_global_batch_size, section.settings)) or section.number(_WHOLE_BATCH) is not None:
        return
    setting = section.settings[_STEPS]
    yield section.report(
        GRADIENT_ACCUMULATION_FIXED,
        setting,
        {"name": quoted(setting.name), "value": f"always {steps:g}" if setting.certain else f"{steps:g} by default"},
        claims=(Claim("launch-varies-processes", setting.name),),
    )
