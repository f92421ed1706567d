"""What findings about a framework's settings ask: whether the framework is used, and what else decides."""

from __future__ import annotations

from ldlm_lint.project.questions.base import Question

QUESTIONS: dict[str, Question] = {}
