"""The project pass: what one file's findings need to know of the others.

`Project` reads the files of a project as context, each at most once and only when a finding asks; `decide` answers
the claims of a finding through `ldlm_lint.project.questions`.
"""

from __future__ import annotations

from ldlm_lint.project.index import Project
from ldlm_lint.project.questions import QUESTIONS, Verdict, decide

__all__ = ["QUESTIONS", "Project", "Verdict", "decide"]
