"""Where autograd records: contexts and decorators that stop it, code that computes gradients, runs of models.

The project pass uses `GradientFacts`, a part of a file's flow.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from astroid import nodes

from ldlm_lint.patterns import lazily
from ldlm_lint.python.names import bindings, last_name
from ldlm_lint.python.places import by_function, position_of, scope_name
from ldlm_lint.python.values import constant
from ldlm_lint.python.walks import nodes_of
from ldlm_lint.python.warm_ups import is_warm_up
from ldlm_lint.vocabulary.models import SPEAKS_OF_GRADIENTS, STOPPERS, looks_like_model

# Context managers that leave autograd as it is; all others are unknown.
_HARMLESS = lazily(
    r"autocast|(^|_)amp(_|$)|fp16|bf16|precision|^open|file$|tqdm|progress|pbar|profil|record_function|nvtx|time"
    r"|nullcontext|suppress|(^|_)ema|average_parameters|device|stream|warnings|(^|_)lock|join|pool|executor|writer"
    r"|temporary|tempdir|patch|redirect|seed|(^|_)rng|sdp|mesh|hook|save_on_cpu|offload|swap|summon_full_params"
    r"|logging|(^|_)tape|(^|_)span|distribute|^dist|strategy|session|memmap",
    re.I,
)
# fmt: off
_COMPUTES = frozenset({
    "backward", "manual_backward", "zero_grad", "train_batch", "enable_grad", "retain_grad", "vjp", "jvp", "vhp", "hvp",
    "jacrev", "jacfwd", "jacobian", "hessian", "grad", "grad_and_value", "value_and_grad", "scale_loss",
    "register_full_backward_hook", "register_backward_hook",
})
# fmt: on
_OPTIMIZER = lazily(r"optim|(^|_)opt(_|\d|$)|sgd|adam|solver", re.I)
_TRAINS = lazily(r"train(ing)?_(step|batch|iter|iteration|epoch|one_epoch|one_step)(_fn)?$|optimize_parameters$")
# Attacks, attributions and energy-based samplers differentiate with respect to the input.
_BY_INPUT = lazily(
    r"attack|adversar|perturb|saliency|grad_?cam|attribution|captum|langevin|(^|_)(pgd|fgsm|mcmc|hmc)(_|$)", re.I
)
_PARTS = {"get_encoder", "get_decoder", "get_base_model"}


class FunctionGradients(NamedTuple):
    """The gradient facts of a function (or the module, with an empty scope).

    ``held``: a decorator or a statement of it turns them off, or may; ``differentiates``: it computes some; ``runs``:
    the parameters and attributes of ``self`` that it calls while they are recorded; ``evaluates``: the lines of its
    ``.eval()`` calls.
    """

    scope: str
    held: bool
    differentiates: bool
    runs: tuple[str, ...]
    evaluates: tuple[int, ...]


class GradientFacts(NamedTuple):
    """The gradient facts of the functions of a file, and the positions of unrecorded calls."""

    functions: tuple[FunctionGradients, ...] = ()
    unrecorded: frozenset[str] = frozenset()

    def of(self, scope: str) -> FunctionGradients | None:
        """The facts of one function."""
        return next((one for one in self.functions if one.scope == scope), None)


NO_FACTS = GradientFacts()
_ATTRIBUTES = {nodes.Attribute, nodes.AssignAttr}
_OWNED = (
    *(nodes.FunctionDef, nodes.Call, nodes.Yield, nodes.YieldFrom),
    *(nodes.AugAssign, nodes.AssignAttr, nodes.Attribute),
)


def owned(module: nodes.Module) -> dict[nodes.NodeNG, list[nodes.NodeNG]]:
    """The calls, the ``yield`` expressions and the places of gradients in a file, by the functions that they run in."""
    return by_function(module, filter(_may_matter, nodes_of(module, _OWNED)))


def _may_matter(node: nodes.NodeNG) -> bool:
    return node.__class__ not in _ATTRIBUTES or node.attrname in ("requires_grad", "grad")


def gradient_facts(
    module: nodes.Module, owners: Mapping[nodes.NodeNG, list[nodes.NodeNG]] | None = None
) -> GradientFacts:
    """The facts of a parsed file; ``owners`` are the nodes `owned` by its functions, if known."""
    owners = owned(module) if owners is None else owners
    quiet = [call for one in nodes_of(module, nodes.With) if is_quiet(one) for call in nodes_of(one, nodes.Call)]
    unrecorded = frozenset(position_of(call) for call in quiet)
    functions = tuple(_facts_of(owner, inner, unrecorded) for owner, inner in owners.items())
    return GradientFacts(functions, unrecorded)


def _facts_of(owner: nodes.NodeNG, inner: list[nodes.NodeNG], unrecorded: frozenset[str]) -> FunctionGradients:
    calls = [one for one in inner if one.__class__ is nodes.Call]
    parameters = {one.name for one in owner.args.arguments} if isinstance(owner, nodes.FunctionDef) else set()
    return FunctionGradients(
        scope=scope_name(owner),
        held=is_held(owner) or any(switches_off(call) for call in calls),
        differentiates=any(computes_gradients(one) for one in inner),
        runs=tuple(sorted(set(_run(calls, parameters, unrecorded)))),
        evaluates=tuple(call.lineno or 0 for call in calls if mode_of(call) is False),
    )


def stops(node: nodes.NodeNG) -> bool:
    """Whether a context manager or decorator turns gradients off, on some path at least."""
    for part in nodes_of(node, (nodes.Name, nodes.Attribute)):
        name = last_name(part)
        if name in STOPPERS:
            return not _turns_on(part)
        if isinstance(part, nodes.Name) and any(_definition_stops(one) for one in bindings(part)):
            return True
    return False


def _turns_on(name: nodes.NodeNG) -> bool:
    """``set_grad_enabled(True)`` and ``inference_mode(False)``."""
    call = name.parent
    if not isinstance(call, nodes.Call) or call.func is not name:
        return False
    values = [*call.args, *(one.value for one in call.keywords if one.arg == "mode")]
    return any(constant(one) is (last_name(name) == "set_grad_enabled") for one in values)


def _definition_stops(binding: nodes.NodeNG) -> bool:
    if isinstance(binding, (nodes.FunctionDef, nodes.ClassDef)):
        inside: nodes.NodeNG | None = binding
    else:
        inside = getattr(binding.parent, "value", None) if isinstance(binding, nodes.AssignName) else None
    if inside is None:
        return False
    return any(last_name(one) in STOPPERS for one in nodes_of(inside, (nodes.Name, nodes.Attribute)))


def is_quiet(node: nodes.With) -> bool:
    """Whether nothing is recorded inside a ``with`` statement, as far as known."""
    return any(stops(context) or not _is_harmless(context) for context, _ in node.items)


def _is_harmless(context: nodes.NodeNG, depth: int = 0) -> bool:
    if isinstance(context, nodes.IfExp):
        return _is_harmless(context.body, depth) and _is_harmless(context.orelse, depth)
    if isinstance(context, nodes.Name) and depth < 3:
        values = [getattr(one.parent, "value", None) for one in bindings(context)]
        if values and all(value is not None and _is_harmless(value, depth + 1) for value in values):
            return True
    name = last_name(context.func if isinstance(context, nodes.Call) else context)
    if name in STOPPERS:
        # Code that turns gradients off was handled before: this one turns them on.
        return True
    if isinstance(context, nodes.Call) and isinstance(context.func, nodes.Name):
        local = [one for one in bindings(context.func) if isinstance(one, (nodes.FunctionDef, nodes.ClassDef))]
        if local:
            return True
    owner = context.func.expr if isinstance(context, nodes.Call) and isinstance(context.func, nodes.Attribute) else None
    return bool(_HARMLESS.search(name) or (owner is not None and _HARMLESS.search(last_name(owner))))


def is_held(function: nodes.NodeNG) -> bool:
    """Whether decorators, or the functions, classes and contexts around its definition, turn its gradients off."""
    for node in (function, *function.node_ancestors()):
        if isinstance(node, (nodes.FunctionDef, nodes.ClassDef)) and any(map(_decorates, decorators_of(node))):
            return True
        if isinstance(node, nodes.With) and is_quiet(node):
            return True
    return False


def decorators_of(node: nodes.FunctionDef | nodes.ClassDef) -> list[nodes.NodeNG]:
    """The decorators of a function or class."""
    return node.decorators.nodes if node.decorators else []


def _decorates(decorator: nodes.NodeNG) -> bool:
    """Whether a decorator turns gradients off; one of another module may, if its name suggests it."""
    name = last_name(decorator.func if isinstance(decorator, nodes.Call) else decorator)
    return stops(decorator) or SPEAKS_OF_GRADIENTS.search(name) is not None


def switches_off(call: nodes.Call) -> bool:
    """A statement ``torch.set_grad_enabled(False)``, or ``no_grad()`` entered manually: it applies until it is
    undone.
    """
    name = last_name(call.func)
    if name not in STOPPERS or _turns_on(call.func):
        return False
    context = call.parent
    in_with = isinstance(context, nodes.With) and any(call is one for one, _ in context.items)
    return not in_with and not isinstance(context, nodes.Decorators)


def computes_gradients(node: nodes.NodeNG) -> bool:
    """Whether a node computes, requests or reads gradients."""
    kind = node.__class__
    if kind is nodes.Call:
        return _call_computes(node)
    if kind is nodes.Attribute:
        return node.attrname == "grad" and not isinstance(node.parent, (nodes.Call, nodes.Attribute))
    if kind is not nodes.AssignAttr or node.attrname != "requires_grad":
        return False
    return constant(getattr(node.parent, "value", None)) is not False


@functools.lru_cache(1 << 14)
def _names_gradients(name: str) -> bool:
    return name in _COMPUTES or _TRAINS.search(name) is not None or _BY_INPUT.search(name) is not None


def _call_computes(call: nodes.Call) -> bool:
    name = last_name(call.func)
    if _names_gradients(name):
        return True
    if name == "requires_grad_":
        return not (call.args and constant(call.args[0]) is False)
    if name == "step" and isinstance(call.func, nodes.Attribute):
        return _OPTIMIZER.search(last_name(call.func.expr)) is not None
    return any(one.arg in ("requires_grad", "create_graph") and constant(one.value) is True for one in call.keywords)


def mode_of(call: nodes.Call) -> bool | None:
    """True for ``model.train()``, False for ``model.eval()`` and ``model.train(False)``; None for other calls."""
    if not isinstance(call.func, nodes.Attribute) or len(call.args) + len(call.keywords) > 1:
        return None
    if call.func.attrname == "eval" and not call.args and not call.keywords:
        return False
    if call.func.attrname != "train":
        return None
    values = [*call.args, *(one.value for one in call.keywords if one.arg == "mode")]
    if not values:
        return None if call.keywords else True
    mode = constant(values[0])
    return mode if isinstance(mode, bool) else None


def _run(calls: list[nodes.Call], parameters: set[str], unrecorded: frozenset[str]) -> Iterator[str]:
    for call in calls:
        if not (call.args or call.keywords) or not _may_run(call, parameters):
            continue
        root = root_of(call.func)
        if not root or position_of(call) in unrecorded or is_warm_up(call):
            continue
        if root in parameters or (root.startswith("self.") and looks_like_model(last_name(call.func))):
            yield root


def _may_run(call: nodes.Call, parameters: set[str]) -> bool:
    """A cheap test before names are built: most calls are of functions of modules."""
    owner = _without_wrapper(call.func)
    return owner.name in parameters if isinstance(owner, nodes.Name) else looks_like_model(last_name(call.func))


def root_of(function: nodes.NodeNG) -> str:
    """The dotted name of the model that a call runs: ``model`` for ``model.forward(x)`` and ``model.module(x)``."""
    return dotted(_without_wrapper(function))


def part_of(function: nodes.NodeNG) -> nodes.NodeNG:
    """The model of which a part is run: ``model`` of ``model.get_encoder()(…)``; the called object if it is not such a
    part."""
    if not isinstance(function, nodes.Call) or function.args or function.keywords or not isinstance(function.func, nodes.Attribute):
        return function
    return function.func.expr if function.func.attrname in _PARTS else function


def _without_wrapper(function: nodes.NodeNG) -> nodes.NodeNG:
    while isinstance(function := part_of(function), nodes.Attribute) and function.attrname in ("forward", "module", "__call__"):
        function = function.expr
    return function


def dotted(node: nodes.NodeNG) -> str:
    """``a.b.c`` as text, also for targets of assignments; empty for other expressions."""
    parts = []
    while isinstance(node, (nodes.Attribute, nodes.AssignAttr)):
        parts.append(node.attrname)
        node = node.expr
    if not isinstance(node, (nodes.Name, nodes.AssignName)):
        return ""
    return ".".join([node.name, *reversed(parts)])


def text_of(node: nodes.NodeNG) -> str:
    """The code of a variable, an attribute or an element, which identifies its uses."""
    return dotted(node) or node.as_string()
