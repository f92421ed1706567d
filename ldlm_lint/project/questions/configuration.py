"""What findings in configuration files ask: who reads a key, and what overrides it."""

from __future__ import annotations

from ldlm_lint.project.questions.base import Question

QUESTIONS: dict[str, Question] = {}
