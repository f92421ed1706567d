"""The switches of pylint for our rules, distinguished from rules that the user did not mention.

pylint keeps one state for each message, which its own switches write: ``--enable``, ``--disable``, ``--fail-on`` and
``--errors-only``, on the command line and in its configuration. The stored value shows who decided: pylint writes True
and False; we write 0, which pylint reads as False, and nothing, which it reads as True.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from ldlm_lint.config import Config
from ldlm_lint.linting import selected_rules
from ldlm_lint.pylint_host.messages import message_definitions
from ldlm_lint.rules import ALL
from ldlm_lint.rules.linter import HOST_RULES, INTERNAL_ERROR
from ldlm_lint.tomlfile import ConfigError

if TYPE_CHECKING:
    from pylint.lint import PyLinter
    from pylint.utils import FileState

_OFF: Any = 0


def are_known(linter: PyLinter) -> bool:
    """Whether the rules are messages of pylint already, so that we must not set their states."""
    return any(message.symbol == INTERNAL_ERROR.symbol for message in linter.msgs_store.messages)


def preset(linter: PyLinter) -> None:
    """Set for all rules whether they are on until pylint's switches change that, from the configuration of this
    directory.

    Errors that prevent checking stay on with ``--disable=all``, as pylint's own failures do; its name switches it off.
    """
    enabled, states = _selected_here(), linter._msgs_state
    for rule in ALL:
        # pylint has already written the rules that are off by default.
        states.pop(rule.code, None)
        if rule.symbol not in enabled:
            states[rule.code] = _OFF
    linter.default_enabled_messages.update(message_definitions(HOST_RULES))


def _selected_here() -> frozenset[str]:
    try:
        return selected_rules(Config.load(Path.cwd()))
    except ConfigError:
        # Reported where a file is checked.
        return selected_rules(Config())


def admit(linter: PyLinter) -> None:
    """Switch on the rules that the user did not mention: from here on the configuration of each file decides."""
    states = linter._msgs_state
    for rule in ALL:
        if not isinstance(states.get(rule.code, True), bool):
            del states[rule.code]


def told(linter: PyLinter) -> dict[str, bool]:
    """The rules that the user enabled or disabled in pylint, by their symbols."""
    states = linter._msgs_state
    return {rule.symbol: states[rule.code] for rule in ALL if isinstance(states.get(rule.code), bool)}


def take_over(state: FileState) -> bool:
    """Take the comments of the file that pylint is at out of its hands; returns whether one of them switches on a rule.

    Whether a comment silences a finding is known after all files, and pylint does not wait for that to call it useless.
    """
    said = [state._raw_module_msgs_state.pop(rule.code, {}) for rule in ALL]
    return any(True in lines.values() for lines in said)
