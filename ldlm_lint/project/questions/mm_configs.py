"""Questions about settings in OpenMMLab configurations: whether they are such settings, and whether another file
decides."""

from __future__ import annotations

from ldlm_lint.model import Finding
from ldlm_lint.project.questions.base import Context, Question, Verdict


def _is_setting_of_mm(context: Context, finding: Finding, name: str) -> Verdict:
    """The file is a configuration for mmcv or mmengine that runs may use, and no other file decides the named setting,
    if one is given.
    """
    configs, path = context.mm_configs, finding.span.path
    if not configs.is_config(path) or configs.is_unused(path):
        return Verdict(False)
    if not name:
        return Verdict(True)
    return Verdict(not configs.is_settled_elsewhere(path, name.encode()))


def _some_child_keeps_setting(context: Context, finding: Finding, name: str) -> Verdict:
    """Not every configuration derived from the file overrides the variable."""
    return Verdict(not context.mm_configs.is_overridden(finding.span.path, name.encode()))


QUESTIONS: dict[str, Question] = {
    "some-child-keeps-setting": _some_child_keeps_setting,
    "is-setting-of-mm": _is_setting_of_mm,
}
