"""Finds process groups, DDP wrappers and environment variables that Python sets for NCCL."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, ClassVar

from astroid import nodes

from ldlm_lint import rules
from ldlm_lint.checkers.base import LdlmChecker
from ldlm_lint.checkers.ddp import WRAPPER, check_broadcast_buffers
from ldlm_lint.checkers.environment import findings_of, options_of
from ldlm_lint.checkers.environment_order import allocator_settings_after_use, earlier, settings_after
from ldlm_lint.model import Fix
from ldlm_lint.python.names import meant
from ldlm_lint.rules import (
    ddp,
    environment,
    environment_aliases,
    environment_allocator,
    environment_connections,
    environment_debugging,
    environment_error_handling,
    environment_order,
    environment_tuning,
    environment_values,
    launch,
)
from ldlm_lint.rules.environment_order import ENVIRONMENT_SET_TOO_LATE
from ldlm_lint.source import Source

if TYPE_CHECKING:
    from ldlm_lint.checkers.host import Host

_ROOMS = (
    *(ddp, environment, environment_aliases, environment_allocator),
    *(environment_connections, environment_debugging, environment_error_handling, environment_order),
    *(environment_tuning, environment_values, launch),
)
_OF_CALLS = (ddp.BROADCAST_BUFFERS, *environment_order.RULES)
_OF_ENVIRONMENT = tuple(
    rule for room in _ROOMS if room not in (ddp, environment_order) for rule in room.RULES
)


class DistributedEnvironmentChecker(LdlmChecker):
    """Process groups, DDP and the environment; registers the rules of launch scripts too, which the shell front end finds."""

    rules = tuple(rule for room in _ROOMS for rule in room.RULES)
    finds: ClassVar = {
        "visit_call": _OF_CALLS,
    }

    def __init__(self, linter: Host) -> None:
        super().__init__(linter)
        self._late: set[nodes.NodeNG] = set()
        self._looks_at_calls = self.may_break(*_OF_CALLS)

    def visit_module(self, node: nodes.Module) -> None:
        """Look at the environment variables that the file sets."""
        if self.may_break(ENVIRONMENT_SET_TOO_LATE) and b"ALLOC_CONF" in self.source.data:
            self._check_allocator(node)
        if self.may_break(*_OF_ENVIRONMENT, rules.by_symbol["excessive-collective-timeout"]):
            for finding in findings_of(node, self.source, self.option):
                self.record(finding)

    def visit_call(self, node: nodes.Call) -> None:
        """Look at process groups and DDP wrappers."""
        names = meant(node.func) if self._looks_at_calls else ()
        if len(names) != 1:
            return
        name = next(iter(names))
        if name == "torch.distributed.init_process_group":
            self._check_order(node)
        if name == WRAPPER:
            check_broadcast_buffers(self, node)

    def _check_order(self, node: nodes.Call) -> None:
        """Look at the variables that are set after a process group."""
        for write in settings_after(node):
            if write.value in self._late:
                continue
            self._late.add(write.value)
            self.report(
                ENVIRONMENT_SET_TOO_LATE,
                write.statement,
                args={"name": write.name, "done": "the process group was created", "doing": "the process group is created"},
                related=[(node, "the process group is created here")],
                fix=functools.partial(self._set_earlier, node, write.statement, write.name),
            )

    def _check_allocator(self, module: nodes.Module) -> None:
        """Look at options of the allocator that are set when it runs already."""
        for write, reader in allocator_settings_after_use(module):
            self.report(
                ENVIRONMENT_SET_TOO_LATE,
                write.statement,
                args={"name": write.name, "done": "the CUDA allocator was started", "doing": "the GPU is used"},
                related=[(reader, "the GPU is used here")],
            )

    def _set_earlier(self, node: nodes.Call, place: nodes.NodeNG, name: str, source: Source) -> Fix | None:
        return earlier(source, node, place, name, options_of(self.option))
