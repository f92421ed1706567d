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
    from ldlm_lint.pylint_host import checkers

    checkers.register(linter)


def load_configuration(linter: PyLinter) -> None:
    """Take each setting that pylint's options leave unset from the configuration of the file; called once pylint's
    options are read.
    """
    from ldlm_lint.pylint_host.switches import admit

    admit(linter)
