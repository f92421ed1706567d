"""Finds DDP wrappers and environment variables that Python sets for NCCL."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from astroid import nodes

from ldlm_lint import rules
from ldlm_lint.checkers.base import LdlmChecker
from ldlm_lint.checkers.ddp import WRAPPER, check_broadcast_buffers
from ldlm_lint.checkers.environment import findings_of
from ldlm_lint.python.names import meant
from ldlm_lint.rules import (
    ddp,
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
    from ldlm_lint.checkers.host import Host

_ROOMS = (
    *(ddp, environment, environment_aliases, environment_allocator),
    *(environment_connections, environment_debugging, environment_error_handling),
    *(environment_tuning, environment_values, launch),
)
_OF_CALLS = (ddp.BROADCAST_BUFFERS,)
_OF_ENVIRONMENT = tuple(
    rule for room in _ROOMS if room is not ddp for rule in room.RULES
)


class DistributedEnvironmentChecker(LdlmChecker):
    """DDP and the environment; registers the rules of launch scripts too, which the shell front end finds."""

    rules = tuple(rule for room in _ROOMS for rule in room.RULES)
    finds: ClassVar = {
        "visit_call": _OF_CALLS,
    }

    def __init__(self, linter: Host) -> None:
        super().__init__(linter)
        self._looks_at_calls = self.may_break(*_OF_CALLS)

    def visit_module(self, node: nodes.Module) -> None:
        """Look at the environment variables that the file sets."""
        if self.may_break(*_OF_ENVIRONMENT, rules.by_symbol["excessive-collective-timeout"]):
            for finding in findings_of(node, self.source, self.option):
                self.record(finding)

    def visit_call(self, node: nodes.Call) -> None:
        """Look at DDP wrappers."""
        names = meant(node.func) if self._looks_at_calls else ()
        if len(names) != 1:
            return
        name = next(iter(names))
        if name == WRAPPER:
            check_broadcast_buffers(self, node)
