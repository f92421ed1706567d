"""Finds torch.optim optimizers that leave their implementation to the default."""

from __future__ import annotations

import itertools

from astroid import nodes

from ldlm_lint import tables
from ldlm_lint.autofix.calls import add_keyword
from ldlm_lint.checkers.base import LdlmChecker, span_of
from ldlm_lint.model import Applicability, Claim, Fix
from ldlm_lint.python.calls import Arguments
from ldlm_lint.python.names import is_named, meant, qualified
from ldlm_lint.python.places import position_of
from ldlm_lint.python.walks import nodes_of
from ldlm_lint.requirements import OLDEST_TORCH
from ldlm_lint.rules.optimizer import OPTIMIZER_NOT_FUSED, RULES
from ldlm_lint.source import Source

_FUSABLE = frozenset({"torch.optim.Adam", "torch.optim.AdamW", "torch.optim.SGD"})
_IMPLEMENTATIONS = ("fused", "foreach", "capturable", "differentiable")


class OptimizerChecker(LdlmChecker):
    """How optimizers are made."""

    rules = RULES

    def visit_call(self, node: nodes.Call) -> None:
        """Look at every call of an optimizer class that has a fused implementation."""
        if not is_named(node.func, _FUSABLE):
            return
        arguments = Arguments(node, _positional(node))
        if any(arguments[name].may_be_passed() for name in _IMPLEMENTATIONS) or _few_tensors(arguments["params"].node):
            return
        if _belongs_to_lightning(node) or _is_one_of_a_choice(node) or _steps_rarely(node):
            return
        classes = sorted(name.rpartition(".")[2] for name in meant(node.func))
        if not all(map(self._has_fused, classes)):
            return
        name = " or ".join(classes)
        self.report(
            OPTIMIZER_NOT_FUSED,
            node,
            args={"optimizer": name},
            claims=(Claim("optimizer-trains-on-cuda", f"{name} {position_of(node)}"),),
            fix=lambda source: _fused_fix(source, node),
        )

    def _has_fused(self, optimizer: str) -> bool:
        """Whether every torch that the project runs on has the fused implementation."""
        since, oldest = tables.fused_since(optimizer), self.option(OLDEST_TORCH)
        return since is not None and (oldest is None or oldest >= since)


def _positional(call: nodes.Call) -> tuple[str, ...]:
    """The positional parameters that all the classes share which a call may be of."""
    orders = [tables.positional(name) for name in sorted(meant(call.func))]
    shared = zip(*orders, strict=False)
    return tuple(names[0] for names in itertools.takewhile(lambda names: len(set(names)) == 1, shared))


def _few_tensors(params: nodes.NodeNG | None) -> bool:
    """A literal list of tensors: a handful of kernels, nothing to fuse."""
    if isinstance(params, nodes.BinOp) and params.op == "+":
        return _few_tensors(params.left) or _few_tensors(params.right)
    if not isinstance(params, (nodes.List, nodes.Tuple)):
        return params is None
    return not any(isinstance(element, (nodes.Dict, nodes.Starred, nodes.Call)) for element in params.elts)


def _belongs_to_lightning(node: nodes.NodeNG) -> bool:
    """Lightning raises for a fused optimizer with mixed precision and clipping, both set elsewhere (facts O11)."""
    scope = node.scope()
    return isinstance(scope, nodes.FunctionDef) and scope.name == "configure_optimizers" and _is_lightning_class(scope.parent)


def _steps_rarely(node: nodes.Call) -> bool:
    """The outer optimizer of local SGD (DiLoCo) steps once in hundreds of inner steps: its kernels do not matter."""
    parent = node.parent
    targets = parent.targets if isinstance(parent, nodes.Assign) else []
    return any(isinstance(target, nodes.AssignName) and "outer" in target.name for target in targets)


def _is_one_of_a_choice(node: nodes.Call) -> bool:
    """The same function builds one with an implementation chosen: this is its other arm, for what cannot be fused."""
    others = nodes_of(node.scope(), nodes.Call)
    return any(
        other is not node
        and is_named(other.func, _FUSABLE)
        and any(Arguments(other, _positional(other))[name].may_be_passed() for name in _IMPLEMENTATIONS)
        for other in others
    )


def _is_lightning_class(node: nodes.NodeNG) -> bool:
    return isinstance(node, nodes.ClassDef) and any(
        name.startswith("lightning.") or name.endswith("LightningModule") for base in node.bases for name in qualified(base)
    )


def _fused_fix(source: Source, call: nodes.Call) -> Fix | None:
    torch = _name_of_torch(call)
    if torch is None:
        return None
    value = f"{torch}.cuda.is_available()"
    edit = add_keyword(source, span_of(source, call), "fused", value)
    reason = "last-bit numerics, Lightning's clipping and resuming from older checkpoints are affected"
    return Fix(f"set fused={value}", (edit,), Applicability.UNSAFE, reason) if edit else None


def _name_of_torch(call: nodes.Call) -> str | None:
    """The name under which the file has torch itself at this place, None where it has not."""
    for name in ("torch", "th"):
        found = call.scope().lookup(name)[1]
        if any(isinstance(binding, nodes.Import) for binding in found):
            return name
    return None
