"""Code that runs only occasionally: under an interval, once, for an evaluation, or after a problem."""

from __future__ import annotations

import re

from astroid import nodes

from ldlm_lint.python.gradients import decorators_of, stops
from ldlm_lint.python.memo import remembered
from ldlm_lint.python.names import last_name, qualified
from ldlm_lint.python.rare_conditions import EVALUATION_WORD, holds_rarely
from ldlm_lint.python.set_once import is_set_once
from ldlm_lint.python.torch_branches import is_of_the_past
from ldlm_lint.python.walks import nodes_of
from ldlm_lint.vocabulary.evaluation import EVALUATION, EVALUATOR, RUNTIME_CALLS, RUNTIMES

_STEPS = {"step", "backward", "manual_backward", "zero_grad"}
_EXITS = {"exit", "_exit", "abort", "quit"}
_CACHE = "_ldlm_rare"
_OWNERS = {nodes.FunctionDef, nodes.AsyncFunctionDef, nodes.ClassDef, nodes.Module}
_EVALUATES = "_ldlm_evaluates"
_LEFT, _SEEN = "_ldlm_left", "_ldlm_not_left"
_CHOOSING = {
    *(nodes.ExceptHandler, nodes.Raise, nodes.Assert, nodes.If, nodes.IfExp, nodes.BoolOp, nodes.For, nodes.AsyncFor),
}
_ENDS = (nodes.FunctionDef, nodes.Lambda, nodes.Module, nodes.ClassDef)


def is_rare(node: nodes.NodeNG) -> bool:
    """Whether a node runs, inside its function, far less often than the code around it."""
    child = node
    while not child.is_statement:
        if isinstance(child, _ENDS):
            return False
        if _guards(child.parent, child):
            return True
        child = child.parent
    return _is_rare_statement(child)


def _is_rare_statement(statement: nodes.NodeNG) -> bool:
    """Whether a statement runs rarely; needed for every call in it, so the result is cached on it and the enclosing
    ones."""
    chain = []
    known: bool | None = False
    while not isinstance(statement, _ENDS) and (known := statement.__dict__.get(_CACHE)) is None:
        chain.append(statement)
        if known := _guards(statement.parent, statement) or _after_early_exit(statement.parent, statement):
            break
        statement = statement.parent
    for one in chain:
        one.__dict__[_CACHE] = bool(known)
    return bool(known)


def in_evaluation(node: nodes.NodeNG) -> bool:
    """Whether a node is in a function or class named for evaluating, predicting, plotting or saving.

    A class that is derived from a pipeline of transformers or diffusers, or that opens a runtime which only predicts,
    does so, too, and a ``forward`` with a decorator against recording gradients: no step is known to call it.
    """
    while node.__class__ not in _OWNERS:
        node = node.parent
    if isinstance(node, nodes.Module):
        return False
    known: bool | None = node.__dict__.get(_EVALUATES)
    if known is None:
        is_class = isinstance(node, nodes.ClassDef)
        named = (EVALUATOR if is_class else EVALUATION).search(node.name) is not None
        known = named or ((_is_pipeline(node) or _opens_a_runtime(node)) if is_class else _only_predicts(node)) or in_evaluation(node.parent)
        node.__dict__[_EVALUATES] = known
    return known


def _only_predicts(function: nodes.FunctionDef) -> bool:
    return function.name == "forward" and any(map(stops, decorators_of(function)))


def _is_pipeline(owner: nodes.ClassDef) -> bool:
    """Whether a class is derived from a pipeline of transformers or diffusers, and has no training of its own."""
    if any(one.attrname == "backward" for one in nodes_of(owner, nodes.Attribute)):
        return False
    names = (name for base in owner.bases for name in qualified(base))
    return any(name.endswith("Pipeline") and name.partition(".")[0] in ("transformers", "diffusers") for name in names)


def _opens_a_runtime(owner: nodes.ClassDef) -> bool:
    return any(
        one.attrname in RUNTIME_CALLS if isinstance(one, nodes.Attribute) else _imports_a_runtime(one)
        for one in nodes_of(owner, (nodes.Attribute, nodes.Import, nodes.ImportFrom))
    )


def _imports_a_runtime(node: nodes.Import | nodes.ImportFrom) -> bool:
    modules = [node.modname] if isinstance(node, nodes.ImportFrom) else [name for name, _ in node.names]
    return any(one.partition(".")[0] in RUNTIMES and "training" not in one for one in modules)


def _guards(parent: nodes.NodeNG, child: nodes.NodeNG) -> bool:
    """Whether a parent runs this child of it rarely."""
    if parent.__class__ not in _CHOOSING:
        return False
    if isinstance(parent, (nodes.ExceptHandler, nodes.Raise)) or (
        isinstance(parent, nodes.Assert) and child is parent.fail
    ):
        return True
    if isinstance(parent, nodes.If):
        if child is parent.test:
            return False
        inside = child in parent.body
        return _is_exceptional(parent.body if inside else parent.orelse) or _decides(parent, inside)
    if isinstance(parent, nodes.IfExp):
        return child is not parent.test and holds_rarely(parent.test, child is parent.body)
    if isinstance(parent, nodes.BoolOp):
        before = parent.values[: parent.values.index(child)]
        return any(holds_rarely(one, parent.op == "and") for one in before)
    return isinstance(parent, nodes.For) and child in parent.body and _runs_over_evaluation_data(parent)


def _decides(branch: nodes.If, truth: bool) -> bool:
    key = f"{_CACHE}_{truth}"
    known: bool | None = branch.__dict__.get(key)
    if known is None:
        body = branch.body if truth else branch.orelse
        rare = holds_rarely(branch.test, truth) or is_of_the_past(branch.test, truth) or (truth and is_set_once(branch))
        known = rare and not _takes_a_step(body)
        branch.__dict__[key] = known
    return known


def _takes_a_step(body: list[nodes.NodeNG]) -> bool:
    """Whether a branch computes gradients or steps an optimizer: then it is the training step itself."""
    calls = (call for one in body for call in nodes_of(one, nodes.Call))
    return any(
        isinstance(call.func, nodes.Attribute) and call.func.attrname in _STEPS and _trains(call) for call in calls
    )


def _trains(call: nodes.Call) -> bool:
    name = call.func.attrname
    owner = last_name(call.func.expr).lower()
    return name in ("backward", "manual_backward") or (
        name == "step" and re.search(r"opt|scaler|engine", owner) is not None
    )


def _after_early_exit(parent: nodes.NodeNG, child: nodes.NodeNG) -> bool:
    """Whether a sibling before this statement leaves the block unless rare conditions hold."""
    if _LEFT in child.__dict__ or _SEEN in child.__dict__:
        return _LEFT in child.__dict__
    for name in ("body", "orelse"):
        block = getattr(parent, name, None)
        if isinstance(block, list) and child in block:
            return _is_left_before(block, child)
    return False


def _is_left_before(block: list[nodes.NodeNG], child: nodes.NodeNG) -> bool:
    """The same for all statements of a block, computed together."""
    left = False
    for one in block:
        one.__dict__[_LEFT if left else _SEEN] = True
        left = left or (isinstance(one, nodes.If) and _is_passed_rarely(one))
    return _LEFT in child.__dict__


def _is_passed_rarely(branch: nodes.If) -> bool:
    """Whether code after an ``if`` rarely runs: each branch leaves, is rarely chosen, or rarely passes through.

    ``if step == 0: … else: if step % every != 0: return``; one of the branches must leave for it.
    """
    leaving = [_is_left(block) for block in (branch.body, branch.orelse)]
    return any(leaving) and all(
        left or holds_rarely(branch.test, truth) for left, truth in zip(leaving, (True, False), strict=True)
    )


def _is_left(block: list[nodes.NodeNG]) -> bool:
    """Whether a block is left before its end, always or except in rare iterations."""
    return bool(block) and (
        isinstance(block[-1], (nodes.Continue, nodes.Return))
        or any(isinstance(one, nodes.If) and _is_passed_rarely(one) for one in block)
    )


def _is_exceptional(block: list[nodes.NodeNG]) -> bool:
    """A branch that raises, exits, breaks or ends a training runs once, and one that begins with a warning should not run at all."""
    first = block[0].value if isinstance(block[0], nodes.Expr) else None
    if isinstance(first, nodes.Call) and last_name(first.func) in ("warn", "warning"):
        return True
    last = block[-1]
    if isinstance(last, (nodes.Raise, nodes.Break)) or (isinstance(last, nodes.Return) and _ends_training(last)):
        return True
    call = last.value if isinstance(last, nodes.Expr) else None
    return isinstance(call, nodes.Call) and last_name(call.func) in _EXITS


def _ends_training(leaving: nodes.Return) -> bool:
    """Whether a ``return`` leaves a loop of its function that computes gradients: ``if step >= limit: save(); return``."""
    for parent in leaving.node_ancestors():
        if isinstance(parent, _ENDS):
            return False
        if isinstance(parent, (nodes.For, nodes.While)) and _computes_gradients(parent):
            return True
    return False


def _computes_gradients(loop: nodes.For | nodes.While) -> bool:
    return remembered(loop, ("gradients",), lambda: any(_trains(call) for call in nodes_of(loop, nodes.Call) if isinstance(call.func, nodes.Attribute)))


def _runs_over_evaluation_data(loop: nodes.For) -> bool:
    return remembered(loop, ("evaluation data",), lambda: _is_evaluation_data(loop.iter))


def _is_evaluation_data(iterable: nodes.NodeNG) -> bool:
    names = [last_name(one) for one in nodes_of(iterable, (nodes.Name, nodes.Attribute))]
    loaders = [name for name in names if re.search(r"load|dl($|_)|data|iter|batches|set($|_)", name, re.I)]
    return any(EVALUATION_WORD.search(re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name)) for name in loaders) or any(
        re.match(r"(val|valid|test|eval|dev)_?(loader|dl|data)", name, re.I) for name in loaders
    )


__all__ = ["in_evaluation", "is_rare"]
