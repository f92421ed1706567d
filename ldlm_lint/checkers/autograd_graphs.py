"""Losses that are collected over the steps of a training together with their graphs."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import NamedTuple

from astroid import nodes

from ldlm_lint.python.gradients import dotted, is_quiet, kept, kept_names, text_of
from ldlm_lint.python.memo import remembered
from ldlm_lint.python.names import bindings, last_name, qualified
from ldlm_lint.python.optimizer_loops import runs_over_optimizers
from ldlm_lint.python.places import function_of, loops_around
from ldlm_lint.python.plain_numbers import is_plain_number
from ldlm_lint.python.scopes import belongs_inside
from ldlm_lint.python.values import constant
from ldlm_lint.python.walks import nodes_of
from ldlm_lint.vocabulary.losses import is_loss_name

_LOOPS = (nodes.For, nodes.While)
_BACKWARD = ("backward", "manual_backward")
_METERS = ("update", "add", "push", "record", "log")
_DIFFERENTIATED = "_ldlm_differentiated"
_LISTS = ("list", "defaultdict")


class Kept(NamedTuple):
    """A loss that is added to or put into something that outlives the step.

    ``parts`` are the expressions of the value whose graph is kept; ``into`` is the code of its container; ``backward``
    the call that differentiates it, or the return value that a framework differentiates; ``meter`` a method of the
    project that decides, as its class and argument; ``by_callers`` is set if no loop that repeats it is visible.
    """

    node: nodes.NodeNG
    parts: tuple[nodes.NodeNG, ...]
    into: str
    backward: nodes.NodeNG
    meter: str = ""
    by_callers: bool = False


class _Candidate(NamedTuple):
    node: nodes.NodeNG
    value: nodes.NodeNG
    into: nodes.NodeNG
    meter: str = ""


def kept_graphs(module: nodes.Module) -> Iterator[Kept]:
    """Every place of a file that collects a loss with its graph in the loop that differentiates it."""
    for node in nodes_of(module, (nodes.AugAssign, nodes.Assign, nodes.Call)):
        for candidate in _candidates(node):
            found = _kept(candidate)
            if found is not None:
                yield found


def _candidates(node: nodes.NodeNG) -> Iterator[_Candidate]:
    if isinstance(node, nodes.AugAssign):
        several = isinstance(node.value, (nodes.List, nodes.Tuple, nodes.Dict))
        if node.op == "+=" and (not several or _is_list(node.target)):
            yield _Candidate(node, node.value, node.target)
    elif isinstance(node, nodes.Assign):
        yield from _added(node)
    elif isinstance(node.func, nodes.Attribute) and isinstance(node.parent, nodes.Expr) and node.args:
        if node.func.attrname in ("append", "extend") and len(node.args) == 1 and (into := _list_of(node.func.expr)) is not None:
            yield _Candidate(node, node.args[0], into)
        elif node.func.attrname in _METERS and (owner := _class_of(node.func.expr)):
            for position, argument in enumerate(node.args):
                yield _Candidate(node, argument, node.func.expr, f"{owner}.{node.func.attrname}|{position}")


def _added(node: nodes.Assign) -> Iterator[_Candidate]:
    """``total = total + loss``, ``total, count = total + loss, count + 1``, and ``curve[step] = loss``."""
    for target, value in assigned_pairs(node):
        if isinstance(target, nodes.Subscript) and _grows(target):
            yield _Candidate(node, value, target.value)
        if not isinstance(value, nodes.BinOp) or value.op != "+":
            continue
        if text_of(target) == text_of(value.left):
            yield _Candidate(node, value.right, target)
        elif text_of(target) == text_of(value.right):
            yield _Candidate(node, value.left, target)


def assigned_pairs(node: nodes.Assign) -> Iterator[tuple[nodes.NodeNG, nodes.NodeNG]]:
    """The one target of an assignment and its value, or those of an unpacking side by side."""
    target, value = node.targets[0], node.value
    if len(node.targets) != 1:
        return
    if not isinstance(target, nodes.Tuple):
        yield target, value
    elif isinstance(value, nodes.Tuple) and len(value.elts) == len(target.elts):
        yield from zip(target.elts, value.elts, strict=True)


def _grows(target: nodes.Subscript) -> bool:
    """Whether an item of a dictionary is another one in each step: its key has the count of the loop, or of the framework."""
    values = _values_of(target.value)
    if not values or not all(_makes_dictionary(value) for value in values):
        return False
    loop = next(iter(loops_around(target)), None)
    owner = function_of(target)
    counted: set[str] = set()
    if isinstance(loop, nodes.For):
        counted |= {one.name for one in nodes_of(loop.target, nodes.AssignName)}
    elif loop is None and text_of(target.value).startswith("self.") and isinstance(owner, nodes.FunctionDef):
        counted |= {one.name for one in owner.args.arguments}
    if loop is not None:
        counted |= {text_of(one.target) for one in nodes_of(loop, nodes.AugAssign) if isinstance(one.target, nodes.AssignName)}
    return any(one.name in counted for one in nodes_of(target.slice, nodes.Name))


def _makes_dictionary(value: nodes.NodeNG) -> bool:
    called = last_name(value.func) if isinstance(value, nodes.Call) else ""
    return isinstance(value, nodes.Dict) or called in ("dict", "OrderedDict", "defaultdict")


def _list_of(node: nodes.NodeNG) -> nodes.NodeNG | None:
    """The list that a value is put into, or the dictionary that has it: ``sums.setdefault(name, [])``."""
    if isinstance(node, nodes.Call) and last_name(node.func) == "setdefault" and isinstance(node.func, nodes.Attribute):
        return node.func.expr if len(node.args) == 2 and _makes_lists(node.args[1]) else None
    return node if _is_list(node) else None


def _is_list(node: nodes.NodeNG) -> bool:
    """Whether an expression is a list of the file: bound to one, or an element of a dictionary of lists."""
    base = node
    while isinstance(base, nodes.Subscript):
        base = base.value
    values = _values_of(base)
    return bool(values) and all(_makes_lists(value) for value in values)


def _values_of(node: nodes.NodeNG) -> list[nodes.NodeNG]:
    """What is assigned to a variable, or to an attribute of ``self`` anywhere in its class."""
    if isinstance(node, (nodes.Name, nodes.AssignName)):
        return [value for one in bindings(node) if (value := _given_to(one)) is not None]
    owner = next((one for one in node.node_ancestors() if isinstance(one, nodes.ClassDef)), None)
    if isinstance(node, (nodes.Attribute, nodes.AssignAttr)) and owner is not None and dotted(node.expr) == "self":
        found = (one for one in nodes_of(owner, nodes.AssignAttr) if dotted(one) == dotted(node))
        return [value for one in found if (value := _given_to(one)) is not None]
    return []


def _given_to(target: nodes.NodeNG) -> nodes.NodeNG | None:
    """The value that an assignment gives to a target, also with several targets."""
    if isinstance(target.parent, nodes.Tuple) and isinstance(target.parent.parent, nodes.Assign):
        return next((value for one, value in assigned_pairs(target.parent.parent) if one is target), None)
    return getattr(target.parent, "value", None)


def _makes_lists(value: nodes.NodeNG) -> bool:
    if isinstance(value, nodes.Dict):
        return all(isinstance(one, (nodes.List, nodes.ListComp, nodes.Dict)) for _, one in value.items)
    if isinstance(value, nodes.DictComp):
        return isinstance(value.value, nodes.List)
    called = last_name(value.func) if isinstance(value, nodes.Call) else ""
    return isinstance(value, (nodes.List, nodes.ListComp)) or called in _LISTS


def _class_of(node: nodes.NodeNG) -> str:
    """The qualified name of the one class whose instance a variable or attribute holds; empty if it is unknown."""
    values = _values_of(node)
    names = {name for value in values if isinstance(value, nodes.Call) for name in qualified(value.func)}
    known = len(names) == 1 and all(isinstance(value, nodes.Call) for value in values)
    return next(iter(names)) if known and "?" not in min(names) else ""


def _kept(candidate: _Candidate) -> Kept | None:
    node, owner = candidate.node, function_of(candidate.node)
    value = candidate.value
    direct = isinstance(value, nodes.Call) and _differentiated_results(value) == {""}
    parts = [value] if direct else kept(value)
    if not parts or _is_unrecorded(node):
        return None
    into = text_of(candidate.into)
    for step in _steps(node, owner, into):
        found = {text_of(value): value} if direct else _differentiated(step)
        losses = [part for part in parts if text_of(part) in found and not is_plain_number(part)]
        if losses:
            backward = found[text_of(losses[0])]
            anew = remembered(step, ("made anew", into), functools.partial(_is_made_anew, into, step))
            if anew or remembered(owner, ("differentiated", into), lambda: is_differentiated(into, owner)):
                return None
            lasts = direct or _lasts(losses, backward, node, step)
            return Kept(node, tuple(losses), into, backward, candidate.meter, step is owner and not is_step_hook(step)) if lasts else None
    return None


def _steps(node: nodes.NodeNG, owner: nodes.NodeNG, into: str) -> Iterator[nodes.NodeNG]:
    """The repeated code around a node: its loops, and the method itself if an attribute outlives it."""
    for loop in loops_around(node):
        if not isinstance(loop, _LOOPS):
            return
        if not runs_over_optimizers(loop):
            yield loop
    if into.startswith("self.") and isinstance(owner.parent, nodes.ClassDef):
        yield owner


def _is_unrecorded(node: nodes.NodeNG) -> bool:
    return any(isinstance(parent, nodes.With) and is_quiet(parent) for parent in node.node_ancestors())


def _differentiated(loop: nodes.NodeNG) -> dict[str, nodes.NodeNG]:
    """The losses that a loop differentiates, as a whole or as a part of a sum, with the call that does so."""
    known: dict[str, nodes.NodeNG] | None = loop.__dict__.get(_DIFFERENTIATED)
    if known is None:
        known = loop.__dict__[_DIFFERENTIATED] = _find_differentiated(loop)
    return known


def _find_differentiated(loop: nodes.NodeNG) -> dict[str, nodes.NodeNG]:
    found: dict[str, nodes.NodeNG] = {}
    owner = function_of(loop)
    if is_step_hook(loop):
        # The framework runs backward on the result of the hook.
        returns = [one for one in nodes_of(loop, nodes.Return) if one.value is not None and function_of(one) is loop]
        found |= {text_of(part): one for one in returns for part in _returned_loss(one.value)}
    for call, value in backward_passes(loop):
        if any(
            one.arg in ("retain_graph", "create_graph") and constant(one.value) is not False for one in call.keywords
        ):
            return {}
        # A step function that is defined in the loop has its own ``loss``, and may return a number.
        seen = (text_of(one) for one in _losses_in(value) if not belongs_inside(one, owner))
        found |= {name: call for name in seen if name not in found}
    statements = [one for one in nodes_of(loop, (nodes.Assign, nodes.AugAssign)) if function_of(one) is owner]
    for statement in reversed(statements):
        for target in statement.targets if isinstance(statement, nodes.Assign) else [statement.target]:
            if (call := found.get(text_of(target))) is not None:
                parts = kept_names(statement.value)
                found |= {name: call for name in parts if _names_loss(name) and name not in found}
    for statement in statements:
        if isinstance(statement, nodes.Assign) and isinstance(statement.value, nodes.Call):
            found |= dict.fromkeys(_received(statement), statement.value)
    return found


def is_step_hook(function: nodes.NodeNG) -> bool:
    """The ``training_step`` of a Lightning module."""
    owner = function.parent
    if not isinstance(function, nodes.FunctionDef) or function.name != "training_step" or not isinstance(owner, nodes.ClassDef):
        return False
    return any(name.rpartition(".")[2] == "LightningModule" for base in owner.bases for name in qualified(base))


def _returned_loss(value: nodes.NodeNG) -> list[nodes.NodeNG]:
    """The loss that a hook returns, directly or under ``loss``."""
    if isinstance(value, nodes.Dict):
        return [part for key, one in value.items if constant(key) == "loss" for part in kept(one)]
    return _losses_in(value)


def _names_loss(name: str) -> bool:
    """Whether a dotted name, or the container of an item, is named like a loss."""
    return is_loss_name(name.partition("[")[0].rpartition(".")[2])


def _losses_in(value: nodes.NodeNG) -> list[nodes.NodeNG]:
    """The losses in a differentiated value: in a product the factor that is named like a loss, if the other is not."""
    if not isinstance(value, nodes.BinOp) or value.op not in ("+", "-", "*"):
        return kept(value)
    sides = [_losses_in(value.left), _losses_in(value.right)]
    named = [side for side in sides if any(map(_is_loss_like, side))]
    return named[0] if value.op == "*" and len(named) == 1 else [*sides[0], *sides[1]]


def _received(statement: nodes.Assign) -> Iterator[str]:
    """The variables that get a loss which a function of the file has differentiated and returns."""
    for index in _differentiated_results(statement.value):
        for target in statement.targets:
            parts = target.elts if isinstance(target, nodes.Tuple) else [target]
            if (index == "" and not isinstance(target, nodes.Tuple)) or (index != "" and int(index) < len(parts)):
                yield text_of(parts[int(index or 0)])


def _differentiated_results(call: nodes.Call) -> set[str]:
    """The results of a call that its function has differentiated: indices of a tuple, empty for the whole."""
    function = _local_function(call)
    if function is None:
        return set()
    losses = {name for _, value in backward_passes(function) for name in kept_names(value)}
    found: set[str] = set()
    for one in nodes_of(function, nodes.Return) if losses else ():
        parts = (
            [(str(at), part) for at, part in enumerate(one.value.elts)] if isinstance(one.value, nodes.Tuple) else []
        )
        found |= {at for at, part in parts or [("", one.value)] if part is not None and losses & set(kept_names(part))}
    return found


def _local_function(call: nodes.Call) -> nodes.FunctionDef | None:
    """The function of this file, or the method of the same class, whose result a call returns."""
    if isinstance(call.func, nodes.Name):
        found = bindings(call.func)
    elif isinstance(call.func, nodes.Attribute) and dotted(call.func.expr) == "self":
        owner = next((one for one in call.node_ancestors() if isinstance(one, nodes.ClassDef)), None)
        found = owner.locals.get(call.func.attrname, []) if owner is not None else []
    elif last_name(call.func) == "step" and len(call.args) == 1 and isinstance(call.args[0], nodes.Name):
        # torch's optimizers return the result of the closure.
        found = bindings(call.args[0])
    else:
        return None
    return found[0] if len(found) == 1 and isinstance(found[0], nodes.FunctionDef) else None


def backward_passes(tree: nodes.NodeNG) -> Iterator[tuple[nodes.Call, nodes.NodeNG]]:
    """The backward passes of a tree and what they differentiate, such as ``scaler.scale(loss).backward()``."""
    for call in nodes_of(tree, nodes.Call):
        if not isinstance(call.func, nodes.Attribute) or call.func.attrname not in _BACKWARD:
            continue
        value = call.func.expr
        if call.args and not _is_loss_like(value) and not _is_gradient(call.args[0]):
            value = call.args[0]
        elif isinstance(value, nodes.Call) and last_name(value.func) in ("scale", "scale_loss") and value.args:
            value = value.args[0]
        yield call, value
    for statement in nodes_of(tree, nodes.With):
        for context, _ in statement.items:
            if isinstance(context, nodes.Call) and last_name(context.func) == "scale_loss" and context.args:
                yield context, context.args[0]


def _is_gradient(node: nodes.NodeNG) -> bool:
    """Whether ``output.backward(weight * copy.grad)`` gets a factor, while an engine gets the loss."""
    return any(isinstance(one, nodes.Attribute) and one.attrname == "grad" for one in [node, *nodes_of(node, nodes.Attribute)])


def _is_loss_like(node: nodes.NodeNG) -> bool:
    return is_loss_name(last_name(node))


def _is_made_anew(into: str, loop: nodes.NodeNG) -> bool:
    """Whether each pass of a loop begins with a new sum or list, under no condition except that of an optimizer's
    step.
    """
    base = into.partition("[")[0]
    for target in nodes_of(loop, (nodes.AssignName, nodes.AssignAttr)):
        statement = target.statement()
        if dotted(target) not in (into, base) or not isinstance(statement, (nodes.Assign, nodes.AnnAssign)):
            continue
        added = any(text_of(one) == into for one in nodes_of(statement.value, (nodes.Name, nodes.Attribute)))
        if not added and (statement.parent is loop or _ends_step(statement.parent)):
            return True
    return any(dotted(one) == base for one in nodes_of(loop, nodes.AssignName) if one.parent is loop)


def _ends_step(block: nodes.NodeNG) -> bool:
    """Whether a condition is that of the last micro-batch: the optimizer steps under it, too."""
    calls = nodes_of(block, nodes.Call) if isinstance(block, nodes.If) else ()
    return any(last_name(call.func) == "step" and "opt" in dotted(call.func).lower() for call in calls)


def is_differentiated(into: str, owner: nodes.NodeNG) -> bool:
    """Whether the sum is differentiated itself, or is used in a value that is."""
    asked = [one.args[0] for one in nodes_of(owner, nodes.Call) if last_name(one.func) == "grad" and one.args]
    values = [*(value for _, value in backward_passes(owner)), *asked]
    if not values:
        return False
    reached, before = {into.partition("[")[0]}, 0
    while len(reached) > before:
        before = len(reached)
        for statement in nodes_of(owner, (nodes.Assign, nodes.AugAssign)):
            if _mentions(statement.value, reached):
                targets = statement.targets if isinstance(statement, nodes.Assign) else [statement.target]
                reached |= {text_of(one).partition("[")[0] for one in targets}
    return any(_mentions(value, reached) for value in values)


def _mentions(node: nodes.NodeNG, names: set[str]) -> bool:
    # The text of an attribute ends with its name: so most need no text.
    ends = {name.rpartition(".")[2] for name in names}
    for one in nodes_of(node, (nodes.Name, nodes.Attribute)):
        if one.name in names if isinstance(one, nodes.Name) else one.attrname in ends and text_of(one) in names:
            return True
    return False


def _lasts(losses: list[nodes.NodeNG], backward: nodes.NodeNG, node: nodes.NodeNG, loop: nodes.NodeNG) -> bool:
    """Whether the loss is the tensor that is differentiated: created in the loop, not rebound in between."""
    for loss in losses:
        name = text_of(loss)
        first, last = sorted((backward.lineno, node.lineno))
        every = remembered(loop, ("bindings", name), functools.partial(_bindings_in, loop, name))
        made = [one for one in every if one.lineno <= last]
        if not made:
            return False
        for one in made:
            between = first <= one.lineno <= last and one is not node and not _is_part(one, backward)
            if between and not isinstance(one, nodes.AugAssign) and name not in kept_names(one.value):
                return False
    return True


def _is_part(statement: nodes.NodeNG, backward: nodes.NodeNG) -> bool:
    return statement.lineno == backward.lineno


def _bindings_in(loop: nodes.NodeNG, name: str) -> list[nodes.NodeNG]:
    base = name.partition("[")[0]
    found = []
    for statement in nodes_of(loop, (nodes.Assign, nodes.AugAssign)):
        targets = statement.targets if isinstance(statement, nodes.Assign) else [statement.target]
        parts = [one for target in targets for one in (target.elts if isinstance(target, nodes.Tuple) else [target])]
        if any(text_of(one) in (name, base) for one in parts):
            found.append(statement)
    return found
