"""Finds process groups, DDP wrappers and environment variables that Python sets for NCCL."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, ClassVar

from astroid import nodes

from ldlm_lint.checkers.accelerate_sync import is_backward_of_accelerator, reduces_each_pass
from ldlm_lint.checkers.base import LdlmChecker
from ldlm_lint.checkers.ddp import WRAPPER, check_broadcast_buffers
from ldlm_lint.checkers.environment import findings_of, options_of
from ldlm_lint.checkers.environment_order import allocator_settings_after_use, earlier, settings_after
from ldlm_lint.checkers.gradient_sync import accumulation_of, backward_names, called_slots, takes_guard
from ldlm_lint.checkers.gradient_sync_fix import no_sync_fix
from ldlm_lint.model import Claim, Fix
from ldlm_lint.python.names import last_name, meant
from ldlm_lint.rules import (
    accumulation,
    collectives,
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
from ldlm_lint.rules.accumulation import ACCUMULATE, ACCUMULATION_WITHOUT_NO_SYNC, NO_SYNC
from ldlm_lint.rules.environment_order import ENVIRONMENT_SET_TOO_LATE
from ldlm_lint.source import Source
from ldlm_lint.wording import quoted

if TYPE_CHECKING:
    from ldlm_lint.checkers.host import Host

_ROOMS = (
    *(accumulation, collectives, ddp, environment, environment_aliases, environment_allocator),
    *(environment_connections, environment_debugging, environment_error_handling, environment_order),
    *(environment_tuning, environment_values, launch),
)
_OF_CALLS = (ddp.BROADCAST_BUFFERS, *environment_order.RULES)
_OF_ENVIRONMENT = tuple(
    rule for room in _ROOMS if room not in (accumulation, ddp, environment_order) for rule in room.RULES
)
# Under DeepSpeed and FSDP the engine decides when gradients are reduced.
_ACCELERATED = (Claim("belongs-to-training"), Claim("launches-do-not-shard"), Claim("prepared-model-is-reduced"))


class DistributedChecker(LdlmChecker):
    """Process groups, DDP and the environment; registers the rules of launch scripts too, which the shell front end finds."""

    rules = tuple(rule for room in _ROOMS for rule in room.RULES)
    finds: ClassVar = {
        "visit_call": (*accumulation.RULES, *_OF_CALLS),
    }

    def __init__(self, linter: Host) -> None:
        super().__init__(linter)
        self._accumulating: set[nodes.NodeNG] = set()
        self._passing_back: frozenset[str] = frozenset()
        self._late: set[nodes.NodeNG] = set()
        self._accumulates, self._looks_at_calls = self.may_break(*accumulation.RULES), self.may_break(*_OF_CALLS)

    def visit_module(self, node: nodes.Module) -> None:
        """Look at the environment variables that the file sets."""
        self._passing_back = backward_names(node) if self._accumulates else frozenset()
        if self.may_break(ENVIRONMENT_SET_TOO_LATE) and b"ALLOC_CONF" in self.source.data:
            self._check_allocator(node)
        if self.may_break(*_OF_ENVIRONMENT):
            for finding in findings_of(node, self.source, self.option):
                self.record(finding)

    def visit_call(self, node: nodes.Call) -> None:
        """Look at process groups, DDP wrappers and backward passes."""
        if self._accumulates and (last_name(node.func) in self._passing_back or takes_guard(node)):
            self._check_accumulation(node)
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

    def _check_accumulation(self, node: nodes.Call) -> None:
        """One loop is one defect, with any number of backward passes."""
        found = accumulation_of(node)
        slots = called_slots(found) if found is not None and found.loop not in self._accumulating else []
        if found is None or not slots:
            return
        self._accumulating.add(found.loop)
        by_engine = is_backward_of_accelerator(node)
        if by_engine and not reduces_each_pass(node):
            return
        subject = ";".join(":".join((one.kind, one.scope, one.name, one.index)) for one in slots)
        self.report(
            ACCUMULATION_WITHOUT_NO_SYNC,
            node,
            args={"steps": quoted(found.count.as_string()), "advice": ACCUMULATE if by_engine else NO_SYNC},
            related=[(found.guard, "the optimizer steps only here")] if found.guard is not found.loop else (),
            claims=(*(_ACCELERATED if by_engine else (Claim("ddp-model-is-called", subject),)), Claim("launches-accumulate", last_name(found.count))),
            fix=None if by_engine else lambda source: no_sync_fix(source, found, WRAPPER),
        )
