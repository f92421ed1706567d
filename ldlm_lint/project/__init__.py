"""The project pass: facts about other files for the findings of one file.

`Project` reads the files of a project as context, each at most once and only when a finding asks; `decide` checks the
claims of a finding through `ldlm_lint.project.questions`.
"""

from __future__ import annotations

from ldlm_lint.project.index import Project
from ldlm_lint.project.questions import QUESTIONS, Verdict, decide

__all__ = ["QUESTIONS", "Project", "Verdict", "decide"]
