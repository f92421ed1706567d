"""ldlm-lint: finds the expensive lines of a training repository, explains them and fixes what can be fixed safely.

``pylint --load-plugins ldlm_lint`` calls `register`; the command of the same name is `ldlm_lint.cli`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pylint.lint import PyLinter

__version__ = "0.1.0"


def register(linter: PyLinter) -> None:
    """Register every checker with pylint; called when the plugin is loaded."""
    from ldlm_lint.checkers import CHECKERS
    from ldlm_lint.checkers.project import ProjectChecker

    # Before 4.1 the workers of `pylint -j` register a plugin once more on top of what they were sent.
    registered = {checker.name for checker in linter.get_checkers()}
    for checker in (*CHECKERS, ProjectChecker):
        if checker.name not in registered:
            linter.register_checker(checker(linter))
