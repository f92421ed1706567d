"""Finds environment variables that Python sets for NCCL."""

from __future__ import annotations

from typing import TYPE_CHECKING

from astroid import nodes

from ldlm_lint import rules
from ldlm_lint.checkers.base import LdlmChecker
from ldlm_lint.checkers.environment import findings_of
from ldlm_lint.rules import (
    environment,
    environment_aliases,
    environment_allocator,
    environment_connections,
    environment_debugging,
    environment_error_handling,
    environment_tuning,
    environment_values,
    launch,
)

if TYPE_CHECKING:
    pass

_ROOMS = (
    *(environment, environment_aliases, environment_allocator),
    *(environment_connections, environment_debugging, environment_error_handling),
    *(environment_tuning, environment_values, launch),
)
_RULES = tuple(rule for room in _ROOMS for rule in room.RULES)


class DistributedEnvironmentChecker(LdlmChecker):
    """The environment; registers the rules of launch scripts too, which the shell front end finds."""

    rules = _RULES

    def visit_module(self, node: nodes.Module) -> None:
        """Look at the environment variables that the file sets."""
        if self.may_break(*_RULES, rules.by_symbol["excessive-collective-timeout"]):
            for finding in findings_of(node, self.source, self.option):
                self.record(finding)
