"""What findings ask of the launches of a project: which programs they start, with what."""

from __future__ import annotations

from ldlm_lint.project.questions.base import Question

QUESTIONS: dict[str, Question] = {}
