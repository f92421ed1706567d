"""ldlm-lint: finds the expensive lines of a training repository, explains them and fixes what can be fixed safely.

``pylint --load-plugins ldlm_lint`` calls `register`; the command of the same name is `ldlm_lint.cli`.
"""

from __future__ import annotations

TYPE_CHECKING = False  # as `typing` has it, which costs a warm run as much as everything else that it imports
if TYPE_CHECKING:
    from pylint.lint import PyLinter

__version__ = "0.1.0"


def register(linter: PyLinter) -> None:
    """Register every rule with pylint; called when the plugin is loaded."""
    from ldlm_lint.checkers import switches
    from ldlm_lint.checkers.project import FamilyChecker, ProjectChecker
    from ldlm_lint.families import UMBRELLAS

    # The workers of `pylint -j` register a plugin again; before 4.1, in addition to the rules that the parent process
    # sent them.
    registered = {checker.name for checker in linter.get_checkers()}
    is_new = not switches.are_known(linter)
    # A rule belongs to the checker that declares it last.
    for checker in (ProjectChecker(linter), *(FamilyChecker(linter, family) for family in UMBRELLAS)):
        if checker.name not in registered:
            linter.register_checker(checker)
    if is_new:
        switches.preset(linter)


def load_configuration(linter: PyLinter) -> None:
    """Take each setting that pylint's options leave unset from the configuration of the file; called once pylint's
    options are read.
    """
    from ldlm_lint.checkers.switches import admit

    admit(linter)
