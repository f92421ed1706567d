"""Finds torch.optim optimizers that leave their implementation to the default."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator

from astroid import nodes

from ldlm_lint import tables
from ldlm_lint.autofix.calls import add_keyword
from ldlm_lint.autofix.imports import ensure_import
from ldlm_lint.checkers.base import LdlmChecker, span_of
from ldlm_lint.model import Applicability, Claim, Fix, Interface
from ldlm_lint.patterns import lazily
from ldlm_lint.python.assigned_uses import taker_of, uses_behind
from ldlm_lint.python.calls import Arguments
from ldlm_lint.python.memo import remembered
from ldlm_lint.python.names import bindings, is_named, last_name, meant, qualified
from ldlm_lint.python.places import position_of
from ldlm_lint.python.scopes import visible
from ldlm_lint.python.walks import nodes_of
from ldlm_lint.requirements import NEWEST_TORCH, OLDEST_TORCH
from ldlm_lint.rules.optimizer import FUSED_REASON, OPTIMIZER_NOT_FUSED, RULES, pass_fused
from ldlm_lint.source import Source

_FUSABLE = frozenset({"torch.optim.Adam", "torch.optim.AdamW", "torch.optim.SGD"})
_IMPLEMENTATIONS = ("fused", "foreach", "capturable", "differentiable")
# The oldest torch that is supported, and the first one whose fused kernels take parameters on a CPU.
_SUPPORTED, _ON_CPU = (2, 0), (2, 4)
_RIGHT_UNDER_SCALERS = (2, 1)
_BASES = 3
_PARAMETERS = {"parameters", "named_parameters"}
# What fills a model and its optimizer from a file; what resumes a training is called so, too.
_LOADS = lazily(r"^(?!.*train)(?:.*_)?(?:load|restore|resume)\w*(?:checkpoint|ckpt|state|weights|snapshot)", re.I)
# What the fused kernels do not take, where the file itself makes it.
_UNSUPPORTED = (b"sparse=True", b"torch.cfloat", b"torch.complex64", b"torch.complex128", b"torch.cdouble")


class OptimizerChecker(LdlmChecker):
    """How optimizers are made."""

    rules = RULES

    def visit_call(self, node: nodes.Call) -> None:
        """Look at every call of an optimizer class that has a fused implementation."""
        if not is_named(node.func, _FUSABLE):
            return
        arguments = Arguments(node, _positional(node))
        if _chooses(arguments) or _few_tensors(arguments["params"].node):
            return
        if _is_one_of_a_choice(node) or _steps_rarely(node) or _is_tested(node) or _is_only_loaded(node):
            return
        classes = sorted(name.rpartition(".")[2] for name in meant(node.func))
        if not all(map(self._has_fused, classes)):
            return
        name = " or ".join(classes)
        self.report(
            OPTIMIZER_NOT_FUSED,
            node,
            args={"optimizer": name, "advice": pass_fused(classes, self.option(OLDEST_TORCH))},
            claims=(Claim("optimizer-trains-on-cuda", f"{name} {position_of(node)}"), *_of_lightning(node)),
            fix=lambda source: _fused_fix(source, node, self.option(OLDEST_TORCH)),
        )

    def _has_fused(self, optimizer: str) -> bool:
        """Whether some torch that the project runs on has the fused implementation."""
        since, newest = tables.fused_since(optimizer), self.option(NEWEST_TORCH)
        return since is not None and (newest is None or newest >= since)


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


def _of_lightning(node: nodes.NodeNG) -> tuple[Claim, ...]:
    """Lightning raises for a fused optimizer with mixed precision and clipping, both set elsewhere (facts O11)."""
    scope = node.scope()
    named = isinstance(scope, nodes.FunctionDef) and scope.name == "configure_optimizers"
    return (Claim("lightning-clips-nowhere"),) if named and _is_lightning_class(scope.parent) else ()


def _steps_rarely(node: nodes.Call) -> bool:
    """The outer optimizer of local SGD (DiLoCo) steps once in hundreds of inner steps: its kernels do not matter."""
    parent = node.parent
    targets = parent.targets if isinstance(parent, nodes.Assign) else []
    return any(isinstance(target, nodes.AssignName) and "outer" in target.name for target in targets)


def _is_tested(node: nodes.Call) -> bool:
    """The optimizer of ``def test_probe():``, which stands in many a file that is no test."""
    return any(isinstance(one, nodes.FunctionDef) and one.name.startswith("test_") for one in node.node_ancestors())


def _is_only_loaded(node: nodes.Call) -> bool:
    """``load_checkpoint(model, optimizer, path)`` and nothing else: an evaluation makes it for a function that asks for one."""
    uses = uses_behind(node)
    return bool(uses) and all(map(_is_loaded, uses))


def _is_loaded(use: nodes.Name) -> bool:
    taker = taker_of(use)
    return taker is not None and not isinstance(use.statement(), nodes.Return) and _LOADS.search(last_name(taker.func)) is not None


def _is_one_of_a_choice(node: nodes.Call) -> bool:
    """The same function builds one with an implementation chosen: this, which chooses none, is its other arm, for what cannot be fused."""
    scope = node.scope()
    return remembered(scope, ("chooses an implementation",), lambda: _makes_chosen(scope))


def _makes_chosen(scope: nodes.NodeNG) -> bool:
    calls = (one for one in nodes_of(scope, nodes.Call) if is_named(one.func, _FUSABLE))
    return any(_chooses(Arguments(one, _positional(one))) for one in calls)


def _chooses(arguments: Arguments) -> bool:
    """Whether an optimizer is given an implementation."""
    return any(arguments[name].may_be_passed() for name in _IMPLEMENTATIONS)


def _is_lightning_class(node: nodes.NodeNG, depth: int = 0) -> bool:
    """A class of Lightning's, itself or by a base that stands in the same file."""
    if not isinstance(node, nodes.ClassDef) or depth > _BASES:
        return False
    if any(name.startswith("lightning.") or name.endswith("LightningModule") for base in node.bases for name in qualified(base)):
        return True
    local = (one for base in node.bases if isinstance(base, nodes.Name) for one in bindings(base))
    return any(one is not node and _is_lightning_class(one, depth + 1) for one in local)


def _fused_fix(source: Source, call: nodes.Call, oldest: tuple[int, ...] | None) -> Fix | None:
    if any(word in source.data for word in _UNSUPPORTED):
        return None
    needed, torch = None, _name_of_torch(call)
    if torch is None:
        needed, cuda = ensure_import(source, "torch", "cuda")
    value = f"{torch}.cuda.is_available()" if torch is not None else f"{cuda}.is_available()"
    edit = add_keyword(source, span_of(source, call), "fused", value)
    if edit is None:
        return None
    obstacle = _obstacle(call, oldest)
    level = Applicability.DISPLAY if obstacle else Applicability.UNSAFE
    edits = tuple(sorted(filter(None, (needed, edit))))
    return Fix(f"set fused={value}", edits, level, obstacle or FUSED_REASON, needs=tuple(_needs(call)))


def _needs(call: nodes.Call) -> Iterator[Interface]:
    """The versions that make the constructor work: also where only a part of the project's requirements allows older ones."""
    for name in sorted(meant(call.func)):
        fused = tables.fused(name.rpartition(".")[2])
        yield fused
        # torch 2.0.0 took wrong steps (pytorch#95781).
        yield Interface(f"{fused.name} with right steps under a GradScaler", max(fused.since, _RIGHT_UNDER_SCALERS))
        if _is_moved_later(call):
            yield Interface(f"{fused.name} of parameters that are moved to the GPU later", max(fused.since, _ON_CPU))


def _obstacle(call: nodes.Call, oldest: tuple[int, ...] | None) -> str:
    """Why the constructor may raise where the project says nothing of torch; what it says is held against the needs of the fix."""
    if oldest is not None:
        return ""
    for name in sorted(meant(call.func)):
        since = tables.fused_since(name.rpartition(".")[2])
        if since is None or since > _SUPPORTED:
            return f"torch before {'.'.join(map(str, since or ()))} has no fused {name.rpartition('.')[2]}: set target-torch"
    if _is_moved_later(call):
        return "torch before 2.4 raises for parameters that are not on the GPU yet: move the model first, or set target-torch"
    return ""


def _is_moved_later(call: nodes.Call) -> bool:
    """Whether the function that makes an optimizer brings the model to its device only afterwards, or is its own constructor."""
    model = next((one.func.expr.as_string() for one in nodes_of(call, nodes.Call) if last_name(one.func) in _PARAMETERS), None)
    if model == "self":
        return isinstance(call.scope(), nodes.FunctionDef) and call.scope().name == "__init__"
    moves = [one for one in nodes_of(call.scope(), nodes.Call) if model is not None and _moves(one, model)]
    lines = [one.lineno or 0 for one in moves]
    return bool(lines) and min(lines) > (call.end_lineno or 0)


def _moves(call: nodes.Call, model: str) -> bool:
    if not isinstance(call.func, nodes.Attribute):
        return False
    name = call.func.attrname
    if name == "prepare":
        return any(one.as_string() == model for one in call.args)
    return name in ("to", "cuda") and call.func.expr.as_string() == model


def _name_of_torch(call: nodes.Call) -> str | None:
    """The name under which the file has torch itself at this place, None where it has not."""
    for name in ("torch", "th"):
        found = visible(call.scope(), name)
        if any(isinstance(binding, nodes.Import) for binding in found):
            return name
    return None
