"""Necessary conditions of claims on the project, by kind, independent of the file with the claim.

They follow the questions of the same kinds in `ldlm_lint.project.questions`.
"""

from __future__ import annotations

from collections.abc import Callable

from ldlm_lint.project.questions.base import Context
from ldlm_lint.project.questions.evaluation import is_unit_test


def _may_evaluate(context: Context, path: str) -> bool:
    return path in context.project.files and not is_unit_test(context.project, path)


CONDITIONS: dict[str, Callable[[Context, str], bool]] = {
    "evaluation-records-gradients": _may_evaluate,
}
