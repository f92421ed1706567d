"""Finds promises to DDP about the graph that other code breaks, and parameters that are frozen after the wrap."""

from __future__ import annotations

from typing import ClassVar

from astroid import nodes

from ldlm_lint.checkers.base import LdlmChecker
from ldlm_lint.checkers.ddp_freezing import late_changes
from ldlm_lint.model import Claim
from ldlm_lint.python.calls import Arguments
from ldlm_lint.python.model_slots import model_slots
from ldlm_lint.python.names import qualified
from ldlm_lint.python.slots import Slot, subject_of
from ldlm_lint.python.walks import nodes_of
from ldlm_lint.rules.ddp_graph import (
    PARAMETERS_FROZEN_AFTER_WRAP,
    RULES,
    STATIC_GRAPH_WITH_DYNAMIC_MODEL,
)

_DDP = "torch.nn.parallel.DistributedDataParallel"
_ENGINES = {"accelerate.DistributedDataParallelKwargs": "accelerate", "lightning.strategies.DDPStrategy": "lightning"}
# Calls that pass a model to the engine.
_TAKES_MODEL = {"accelerate": "prepare", "lightning": "fit"}


class DdpGraphChecker(LdlmChecker):
    """The constraints of DDP on a model and its parameters."""

    rules = RULES
    finds: ClassVar = {
        "visit_module": (PARAMETERS_FROZEN_AFTER_WRAP,),
        "visit_call": (
            STATIC_GRAPH_WITH_DYNAMIC_MODEL,
        ),
    }

    def visit_module(self, node: nodes.Module) -> None:
        """Look at the places that freeze or unfreeze parts of wrapped models."""
        for change in late_changes(node):
            self.report(
                PARAMETERS_FROZEN_AFTER_WRAP,
                change.node,
                args={"target": change.target, "change": change.change, "effect": change.effect},
                related=change.related,
                claims=change.claims,
            )

    def visit_call(self, node: nodes.Call) -> None:
        """Check every call that promises something about the graph to DDP."""
        names = qualified(node.func)
        if len(names) != 1:
            return
        name = next(iter(names))
        if name == _DDP or name in _ENGINES:
            self._check_wrap(node, _ENGINES.get(name, ""))

    def _check_wrap(self, node: nodes.Call, engine: str) -> None:
        arguments = Arguments(node, ("module",)) if not engine else Arguments(node)
        static = arguments["static_graph"]
        model = arguments["module"].node
        slots = model_slots(model) if model is not None else _models_of_engine(node, engine) if engine else []
        if static.is_only(True):
            self._check_static(node, slots)

    def _check_static(self, node: nodes.Call, slots: list[Slot]) -> None:
        if slots:
            claims = (Claim("model-changes-its-graph", subject_of(slots)),)
            self.report(STATIC_GRAPH_WITH_DYNAMIC_MODEL, _keyword(node, "static_graph"), args={"model": ""}, claims=claims)


def _models_of_engine(node: nodes.Call, engine: str) -> list[Slot]:
    """The models that the file passes to the engine for training."""
    wanted = _TAKES_MODEL.get(engine, "")
    calls = [
        call
        for call in nodes_of(node.root(), nodes.Call)
        if isinstance(call.func, nodes.Attribute) and call.func.attrname == wanted
    ]
    return list(dict.fromkeys(slot for call in calls for argument in call.args for slot in model_slots(argument)))


def _keyword(call: nodes.Call, name: str) -> nodes.NodeNG:
    return next((keyword for keyword in call.keywords if keyword.arg == name), call)
