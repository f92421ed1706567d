"""What pylint was told about our rules, apart from what nobody said anything about.

pylint keeps one state for each message, which its own switches write: ``--enable``, ``--disable``, ``--fail-on`` and
``--errors-only``, on the command line and in its configuration. What is written tells who decided: pylint writes True
and False; we write 0, which pylint reads as False, and nothing, which it reads as True.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from ldlm_lint.checkers.messages import message_definitions
from ldlm_lint.config import Config
from ldlm_lint.linting import selected_rules
from ldlm_lint.rules import ALL
from ldlm_lint.rules.linter import HOST_RULES, INTERNAL_ERROR
from ldlm_lint.tomlfile import ConfigError

if TYPE_CHECKING:
    from pylint.lint import PyLinter

_OFF: Any = 0


def are_known(linter: PyLinter) -> bool:
    """Whether the rules are messages of pylint already, so that their states are not ours to set."""
    return any(message.symbol == INTERNAL_ERROR.symbol for message in linter.msgs_store.messages)


def preset(linter: PyLinter) -> None:
    """Say for all rules whether they are on until pylint is told otherwise: as the configuration of this directory has it.

    What kept us from checking stays on with ``--disable=all``, as pylint's own failures do; its name switches it off.
    """
    enabled, states = _selected_here(), linter._msgs_state
    for rule in ALL:
        # What is off by default pylint has written already.
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
    """Switch on what pylint was told nothing about: from here on the configuration of each file decides."""
    states = linter._msgs_state
    for rule in ALL:
        if not isinstance(states.get(rule.code, True), bool):
            del states[rule.code]


def told(linter: PyLinter) -> dict[str, bool]:
    """The rules that pylint was told to enable or to disable, by their symbols."""
    states = linter._msgs_state
    return {rule.symbol: states[rule.code] for rule in ALL if isinstance(states.get(rule.code), bool)}
