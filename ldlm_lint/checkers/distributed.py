"""Finds process groups, DDP wrappers and environment variables that Python sets for NCCL."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from astroid import nodes

from ldlm_lint.checkers.base import LdlmChecker, span_of
from ldlm_lint.checkers.ddp import WRAPPER, check_broadcast_buffers, check_gradient_copy
from ldlm_lint.checkers.environment import findings_of
from ldlm_lint.checkers.environment_order import settings_after
from ldlm_lint.checkers.gradient_sync import accumulation_of, called_slots
from ldlm_lint.checkers.gradient_sync_fix import no_sync_fix
from ldlm_lint.model import Applicability, Claim, Edit, Fix
from ldlm_lint.python.calls import Argument, Arguments, State
from ldlm_lint.python.names import qualified
from ldlm_lint.python.values import seconds, timedelta_call
from ldlm_lint.rules.accumulation import ACCUMULATION_WITHOUT_NO_SYNC
from ldlm_lint.rules.collectives import EXCESSIVE_COLLECTIVE_TIMEOUT, length_of
from ldlm_lint.rules.ddp import FIND_UNUSED_PARAMETERS
from ldlm_lint.rules.environment_order import ENVIRONMENT_SET_TOO_LATE
from ldlm_lint.source import Source

if TYPE_CHECKING:
    from pylint.lint import PyLinter

# Where a collective timeout is passed: parameter and position of it in the signature.
_TIMEDELTA_PARAMETERS = {
    "torch.distributed.init_process_group": ("backend", "init_method", "timeout"),
    "torch.distributed.new_group": ("ranks", "timeout"),
    "accelerate.InitProcessGroupKwargs": ("backend", "init_method", "timeout"),
    "deepspeed.init_distributed": (),
    "lightning.strategies.DDPStrategy": (),
    "lightning.strategies.FSDPStrategy": (),
}
_SECONDS_PARAMETERS = {
    "transformers.TrainingArguments": "ddp_timeout",
    "transformers.Seq2SeqTrainingArguments": "ddp_timeout",
}
_UNUSED_PARAMETERS = {
    "torch.nn.parallel.DistributedDataParallel": "find_unused_parameters",
    "accelerate.DistributedDataParallelKwargs": "find_unused_parameters",
    "lightning.strategies.DDPStrategy": "find_unused_parameters",
    "transformers.TrainingArguments": "ddp_find_unused_parameters",
    "transformers.Seq2SeqTrainingArguments": "ddp_find_unused_parameters",
}
_STRATEGY_TAKERS = {"lightning.Trainer", "lightning.Fabric", "lightning.fabric.Fabric"}


class DistributedChecker(LdlmChecker):
    """Rules of family 72 that Python decides; those of launch scripts come from the shell front end."""

    family = "72"

    def __init__(self, linter: PyLinter) -> None:
        super().__init__(linter)
        self._accumulating: set[nodes.NodeNG] = set()

    def visit_module(self, node: nodes.Module) -> None:
        """Look at the environment variables that the file sets."""
        self._accumulating = set()
        for finding in findings_of(node, self.source, self.option):
            self.record(finding)

    def visit_call(self, node: nodes.Call) -> None:
        """Look at process groups, DDP wrappers and backward passes."""
        self._check_accumulation(node)
        names = qualified(node.func)
        if len(names) != 1:
            return
        name = next(iter(names))
        if name in _TIMEDELTA_PARAMETERS or name in _SECONDS_PARAMETERS:
            self._check_timeout(node, name)
        if name == "torch.distributed.init_process_group":
            for place, variable in settings_after(node):
                self.report(ENVIRONMENT_SET_TOO_LATE, place, args={"name": variable}, related=[(node, "made here")])
        if name in _STRATEGY_TAKERS:
            self._check_strategy(node)
        if name in _UNUSED_PARAMETERS:
            self._check_unused_parameters(node, _UNUSED_PARAMETERS[name])
        if name == WRAPPER:
            check_gradient_copy(self, node)
            check_broadcast_buffers(self, node)

    def _check_accumulation(self, node: nodes.Call) -> None:
        """One loop is one defect, however many backward passes it has."""
        found = accumulation_of(node)
        slots = called_slots(found) if found is not None and found.loop not in self._accumulating else []
        if found is None or not slots:
            return
        self._accumulating.add(found.loop)
        self.report(
            ACCUMULATION_WITHOUT_NO_SYNC,
            node,
            args={"steps": found.count.as_string()},
            related=[(found.guard, "the optimizer steps only here")] if found.guard is not found.loop else (),
            claims=(Claim("ddp-model-is-called", ";".join(f"{slot.kind}:{slot.scope}:{slot.name}" for slot in slots)),),
            fix=lambda source: no_sync_fix(source, found, WRAPPER),
        )

    def _check_timeout(self, node: nodes.Call, name: str) -> None:
        # A group of its own on gloo is where a long wait belongs; it holds no GPU collective.
        if name == "torch.distributed.new_group" and Arguments(node)["backend"].is_only("gloo"):
            return
        limit = self.option("collective-limit")
        if name in _SECONDS_PARAMETERS:
            argument = Arguments(node)[_SECONDS_PARAMETERS[name]]
            lengths = [value for value in argument.values if isinstance(value, (int, float))]
        else:
            argument = Arguments(node, _TIMEDELTA_PARAMETERS[name])["timeout"]
            lengths = list(seconds(argument.node) or ()) if argument.node is not None else []
        if argument.node is None or not lengths or not limit < min(lengths) < float("inf"):
            return
        place = timedelta_call(argument.node) or argument.node
        target = self.option("collective-timeout")
        self.report(
            EXCESSIVE_COLLECTIVE_TIMEOUT,
            place,
            args={"length": length_of(min(lengths)), "limit": length_of(limit)},
            related=[(node.func, "the process group that takes it")] if place.lineno != node.lineno else (),
            fix=lambda source: _timeout_fix(source, place, target),
        )

    def _check_strategy(self, node: nodes.Call) -> None:
        """Lightning takes the flag inside the name of its strategy."""
        strategy = Arguments(node)["strategy"]
        if strategy.node is not None and strategy.is_only("ddp_find_unused_parameters_true"):
            self.report(FIND_UNUSED_PARAMETERS, strategy.node)

    def _check_unused_parameters(self, node: nodes.Call, parameter: str) -> None:
        argument = Arguments(node)[parameter]
        if argument.state is not State.KNOWN or not argument.is_only(True):
            return
        place = next((keyword for keyword in node.keywords if keyword.arg == parameter), node)
        self.report(FIND_UNUSED_PARAMETERS, place, fix=lambda source: _unused_fix(source, argument))


def _timeout_fix(source: Source, place: nodes.NodeNG, target: int) -> Fix | None:
    """Write the length in the unit that the place is in: minutes inside ``timedelta(...)``, seconds elsewhere."""
    if isinstance(place, nodes.Call):
        spans = [span_of(source, part) for part in _arguments_of(place)]
        text = f"minutes={target // 60}" if target % 60 == 0 else f"seconds={target}"
        whole = source.span(min(span.start for span in spans), max(span.end for span in spans))
    elif isinstance(place, nodes.Const):
        whole, text = span_of(source, place), str(target)
    else:
        return None
    reason = "a phase in which one rank works alone for longer would now end the job"
    return Fix(f"set the timeout to {length_of(target)}", (Edit(whole, text),), Applicability.UNSAFE, reason)


def _arguments_of(call: nodes.Call) -> Iterator[nodes.NodeNG]:
    yield from call.args
    yield from call.keywords


def _unused_fix(source: Source, argument: Argument) -> Fix | None:
    if not isinstance(argument.node, nodes.Const):
        return None
    edit = Edit(span_of(source, argument.node), "False")
    reason = "a model with a parameter that gets no gradient crashes on its second step; verify first"
    return Fix("find_unused_parameters=False, once no parameter was seen unused", (edit,), Applicability.DISPLAY, reason)
