"""ldlm-lint: finds the expensive lines of a training repository, explains them and fixes what can be fixed safely.

``pylint --load-plugins ldlm_lint`` calls `register`; the command of the same name is `ldlm_lint.cli`.
"""

from __future__ import annotations

TYPE_CHECKING = False  # as `typing` has it, which costs a warm run as much as everything else that it imports
if TYPE_CHECKING:
    from pylint.lint import PyLinter

__version__ = "0.1.0"


def register(linter: PyLinter) -> None:
    """Register every checker with pylint; called when the plugin is loaded."""
    from ldlm_lint.checkers import ROOMS
    from ldlm_lint.checkers.project import DeclaredChecker, ProjectChecker

    # Before 4.1 the workers of `pylint -j` register a plugin once more on top of what they were sent.
    registered = {checker.name for checker in linter.get_checkers()}
    for checker in (*(DeclaredChecker(linter, room) for room in ROOMS), ProjectChecker(linter)):
        if checker.name not in registered:
            linter.register_checker(checker)


def load_configuration(linter: PyLinter) -> None:
    """Keep our own failures in sight as long as any rule is on; pylint calls this once its options are read.

    pylint leaves out a checker none of whose messages is enabled, so that ``--disable=all --enable=NAME`` would also
    silence what the project pass finds for NAME: scripts, and facts of other files.
    """
    from ldlm_lint.rules import ALL
    from ldlm_lint.rules.linter import INTERNAL_ERROR

    if any(linter.is_message_enabled(rule.symbol) for rule in ALL):
        linter.enable(INTERNAL_ERROR.symbol)
