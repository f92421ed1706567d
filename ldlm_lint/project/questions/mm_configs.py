"""What settings in the configurations of OpenMMLab ask: whether they are ones, and whether another file decides."""

from __future__ import annotations

from ldlm_lint.model import Finding
from ldlm_lint.project.questions.base import Context, Question, Verdict


def _is_setting_of_mm(context: Context, finding: Finding, name: str) -> Verdict:
    """The file is a configuration for mmcv or mmengine; where a name is given, none that it is made with speaks of it."""
    configs, path = context.mm_configs, finding.span.path
    if not configs.is_config(path):
        return Verdict(False)
    if not name:
        return Verdict(True)
    near, word = configs.near(path), name.encode()
    return Verdict(near is not None and not any(word in context.project.data(one) for one in near if one in context.project.files))


QUESTIONS: dict[str, Question] = {
    "is-setting-of-mm": _is_setting_of_mm,
}
