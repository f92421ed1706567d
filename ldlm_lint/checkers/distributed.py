"""Finds process groups, DDP wrappers and environment variables that Python sets for NCCL."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, ClassVar

from astroid import nodes

from ldlm_lint.checkers.accelerate_sync import is_backward_of_accelerator, reduces_each_pass
from ldlm_lint.checkers.base import LdlmChecker, span_of
from ldlm_lint.checkers.collective_timeouts import check_assignment, check_timeout
from ldlm_lint.checkers.ddp import WRAPPER, check_broadcast_buffers
from ldlm_lint.checkers.environment import findings_of, options_of
from ldlm_lint.checkers.environment_order import allocator_settings_after_use, earlier, settings_after
from ldlm_lint.checkers.gradient_sync import accumulation_of, backward_names, called_slots, takes_guard
from ldlm_lint.checkers.gradient_sync_fix import no_sync_fix
from ldlm_lint.checkers.mm_configs import unused_parameters_of_wrapper, unused_parameters_switch
from ldlm_lint.model import Applicability, Claim, Edit, Fix
from ldlm_lint.python.calls import Argument, Arguments, State
from ldlm_lint.python.names import last_name, meant
from ldlm_lint.python.places import position_of
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
from ldlm_lint.rules.ddp import FIND_UNUSED_PARAMETERS
from ldlm_lint.rules.environment_order import ENVIRONMENT_SET_TOO_LATE
from ldlm_lint.source import Source
from ldlm_lint.wording import quoted

if TYPE_CHECKING:
    from ldlm_lint.checkers.host import Host

_UNUSED_PARAMETERS = {
    "torch.nn.parallel.DistributedDataParallel": "find_unused_parameters",
    "accelerate.DistributedDataParallelKwargs": "find_unused_parameters",
    "lightning.strategies.DDPStrategy": "find_unused_parameters",
}
_ROOMS = (
    *(accumulation, collectives, ddp, environment, environment_aliases, environment_allocator),
    *(environment_connections, environment_debugging, environment_error_handling, environment_order),
    *(environment_tuning, environment_values, launch),
)
_OF_CALLS = (*collectives.RULES, *ddp.RULES, *environment_order.RULES)
_OF_ENVIRONMENT = tuple(
    rule for room in _ROOMS if room not in (accumulation, ddp, environment_order) for rule in room.RULES
)
_OUTSIDE_TESTS = (Claim("stands-outside-tests"),)
# Under DeepSpeed and FSDP the engine decides when gradients are reduced.
_ACCELERATED = (Claim("belongs-to-training"), Claim("launches-do-not-shard"))
_OF_MM = (Claim("is-setting-of-mm"), Claim("some-child-keeps-setting", "find_unused_parameters"))
_STRATEGY_TAKERS = {"lightning.Trainer", "lightning.Fabric", "lightning.fabric.Fabric"}


class DistributedChecker(LdlmChecker):
    """Process groups, DDP and the environment; registers the rules of launch scripts too, which the shell front end finds."""

    rules = tuple(rule for room in _ROOMS for rule in room.RULES)
    finds: ClassVar = {
        "visit_assign": (*collectives.RULES, FIND_UNUSED_PARAMETERS),
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

    def visit_assign(self, node: nodes.Assign) -> None:
        """Look at timeouts that are set on what is handed to a process group, and at a flag that a runner reads."""
        check_assignment(self, node)
        flag = unused_parameters_switch(node)
        if flag is not None:
            self._report_unused_parameters(node, Argument(State.KNOWN, flag, (True,)), _OF_MM)

    def visit_call(self, node: nodes.Call) -> None:
        """Look at process groups, DDP wrappers and backward passes."""
        if self._accumulates and (last_name(node.func) in self._passing_back or takes_guard(node)):
            self._check_accumulation(node)
        names = meant(node.func) if self._looks_at_calls else ()
        flag = unused_parameters_of_wrapper(node) if self._looks_at_calls else None
        if flag is not None:
            self._report_unused_parameters(node, flag, _OF_MM)
        if len(names) != 1:
            return
        name = next(iter(names))
        check_timeout(self, node, name)
        if name == "torch.distributed.init_process_group":
            self._check_order(node)
        if name in _STRATEGY_TAKERS:
            self._check_strategy(node)
        if name in _UNUSED_PARAMETERS:
            self._check_unused_parameters(node, _UNUSED_PARAMETERS[name])
        if name == WRAPPER:
            check_broadcast_buffers(self, node)

    def _check_order(self, node: nodes.Call) -> None:
        """Look at the variables that are set behind a process group."""
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
                args={"name": write.name, "done": "the CUDA allocator was started", "doing": "anything is put on the GPU"},
                related=[(reader, "something is put on the GPU here")],
            )

    def _set_earlier(self, node: nodes.Call, place: nodes.NodeNG, name: str, source: Source) -> Fix | None:
        return earlier(source, node, place, name, options_of(self.option))

    def _check_accumulation(self, node: nodes.Call) -> None:
        """One loop is one defect, however many backward passes it has."""
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

    def _check_strategy(self, node: nodes.Call) -> None:
        """Lightning takes the flag inside the name of its strategy."""
        strategy = Arguments(node)["strategy"]
        if strategy.node is not None and strategy.is_only("ddp_find_unused_parameters_true"):
            self.report(FIND_UNUSED_PARAMETERS, strategy.node, claims=_OUTSIDE_TESTS, fix=lambda source: _unused_fix(source, strategy))

    def _check_unused_parameters(self, node: nodes.Call, parameter: str) -> None:
        arguments = Arguments(node)
        argument, static = arguments[parameter], arguments["static_graph"]
        if argument.state is not State.KNOWN or not argument.is_only(True):
            return
        # With a static graph DDP neither walks the graph nor keeps the first buckets: the flag does nothing.
        if (static.node is not None or static.state is State.KNOWN) and not static.is_only(False):
            return
        place = next((keyword for keyword in node.keywords if keyword.arg == parameter), node)
        # A dictionary that is handed on may be filled with more than its file's words tell.
        handed = any(keyword.arg is None for keyword in node.keywords)
        still = (Claim("graph-is-not-static", f"{position_of(node)}|static_graph"),) if handed else ()
        self._report_unused_parameters(place, argument, (*_OUTSIDE_TESTS, *still))

    def _report_unused_parameters(self, place: nodes.NodeNG, flag: Argument, claims: tuple[Claim, ...]) -> None:
        self.report(FIND_UNUSED_PARAMETERS, place, claims=claims, fix=lambda source: _unused_fix(source, flag))


def _unused_fix(source: Source, argument: Argument) -> Fix:
    """The other value, for the day on which every parameter was seen to get a gradient."""
    node = argument.node
    edits: tuple[Edit, ...] = ()
    if isinstance(node, nodes.Const):
        edits = (Edit(span_of(source, node), "False" if node.value is True else '"ddp"'),)
    reason = "if a parameter gets no gradient, the second step raises; check that first"
    return Fix("set find_unused_parameters=False once every parameter is known to get a gradient", edits, Applicability.DISPLAY, reason)
