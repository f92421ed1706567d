"""The calls of a model's stacked blocks: ``for block in self.blocks: x = block(x, …)`` and its relatives."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from astroid import nodes

from ldlm_lint.patterns import lazily
from ldlm_lint.python.block_stacks import Stack, enclosing_class
from ldlm_lint.python.names import last_name
from ldlm_lint.python.values import only_binding
from ldlm_lint.python.walks import nodes_of

_ENTRIES = ("forward", "training_step")
_LOOPS = (nodes.For, nodes.While)
_PLAIN = (nodes.Assign, nodes.AnnAssign, nodes.AugAssign, nodes.Expr, nodes.Return)
# Built-ins and methods that pass on the elements of their argument, or some of them.
_HANDS_ON = {"reversed", "list", "tuple", "iter", "values", "tqdm"}
_CACHE = lazily(r"(^|_)(past|presents?|caches?|kv|mems?|incremental)(_|s?$)|^layer_past|inference_params", re.I)
_NO_GRADIENT = {"no_grad", "inference_mode"}
_CONTAINERS = {"ModuleList", "Sequential", "ModuleDict"}
# Parameters of ``checkpoint`` itself, which a block cannot get by these names.
_TAKEN = {"function", "use_reentrant", "preserve_rng_state", "context_fn", "determinism_check", "debug", "early_stop"}
_UNREPEATABLE = (nodes.Await, nodes.Yield, nodes.YieldFrom, nodes.NamedExpr, nodes.Lambda)


class Site(NamedTuple):
    """A statement with one call of a block, or, with ``whole``, of the Sequential of all of them."""

    call: nodes.Call
    statement: nodes.NodeNG
    whole: bool = False


def sites_of(model: nodes.ClassDef, stacks: Sequence[Stack]) -> list[Site]:
    """The statements of a model's forward pass that run a block of these stacks and can checkpoint it, in order.

    Empty if the model keeps caches for its blocks: their contents must not be computed twice.
    """
    kept = stack_attributes(model, stacks)
    methods = list(_run_in_training(model))
    calls = [(call, whole) for method in methods for call, whole in _block_calls(method, kept)]
    if any(_names_a_cache(call) for call, _ in calls):
        return []
    found = [Site(call, call.statement(), whole) for call, whole in calls if _can_be_wrapped(call, whole)]
    statements = [site.statement for site in found]
    return [site for site in found if statements.count(site.statement) == 1]


def stack_attributes(model: nodes.ClassDef, stacks: Sequence[Stack]) -> dict[str, bool]:
    """The attributes with one of these stacks, and whether it is a Sequential."""
    found = {}
    for stack in stacks:
        call = stack.node
        for name in _holders(call, model):
            found[name] = last_name(call.func) == "Sequential" or _is_sequential(model, name)
    return found


def _holders(call: nodes.NodeNG, model: nodes.ClassDef) -> Iterator[str]:
    """The attribute names that a container ends up in, through dictionaries of modules and local names."""
    if isinstance(call, nodes.Call) and last_name(call.func) == "append":
        yield from _named(call.func.expr, model)
        return
    for one in (call, *call.node_ancestors()):
        parent = one.parent
        if isinstance(parent, nodes.Keyword) and parent.arg:
            yield parent.arg
            return
        if isinstance(parent, nodes.Dict):
            key = next((key for key, value in parent.items if value is one), None)
            if isinstance(key, nodes.Const):
                yield str(key.value)
            return
        if isinstance(parent, nodes.Assign):
            for target in parent.targets:
                yield from _named(target, model)
            return
        if one.is_statement:
            return


def _named(target: nodes.NodeNG, model: nodes.ClassDef) -> Iterator[str]:
    if isinstance(target, (nodes.AssignAttr, nodes.Attribute)):
        yield target.attrname
    elif isinstance(target, (nodes.AssignName, nodes.Name)):
        for assign in nodes_of(model, nodes.Assign):
            made = isinstance(assign.value, nodes.Call) and last_name(assign.value.func) in _CONTAINERS
            if made and any(name.name == target.name for name in nodes_of(assign.value, nodes.Name)):
                yield from (one.attrname for one in assign.targets if isinstance(one, nodes.AssignAttr))


def _is_sequential(model: nodes.ClassDef, attribute: str) -> bool:
    values = [
        one.parent.value
        for one in nodes_of(model, nodes.AssignAttr)
        if one.attrname == attribute and isinstance(one.parent, nodes.Assign)
    ]
    return bool(values) and all(
        isinstance(value, nodes.Call) and last_name(value.func) == "Sequential" for value in values
    )


def _run_in_training(model: nodes.ClassDef) -> Iterator[nodes.FunctionDef]:
    """The methods that the forward pass runs, by name."""
    methods = {method.name: method for method in model.mymethods()}
    waiting = [name for name in _ENTRIES if name in methods]
    reached = list(waiting)
    while waiting:
        named = {one.attrname for one in nodes_of(methods[waiting.pop()], nodes.Attribute) if _is_self(one.expr)}
        new = [name for name in methods if name in named and name not in reached]
        reached += new
        waiting += new
    for name in reached:
        decorated = methods[name].decorators
        if (
            decorated is None
            or not {last_name(one) or last_name(getattr(one, "func", one)) for one in decorated.nodes} & _NO_GRADIENT
        ):
            yield methods[name]


def _block_calls(method: nodes.FunctionDef, kept: dict[str, bool]) -> Iterator[tuple[nodes.Call, bool]]:
    for call in nodes_of(method, nodes.Call):
        if enclosing_class(call) is not method.parent or call.frame() is not method or _without_gradients(call):
            continue
        func = call.func
        if isinstance(func, nodes.Attribute) and kept.get(func.attrname) and _on_self(func):
            yield call, True
        elif any(isinstance(one, _LOOPS) for one in call.node_ancestors()) and _is_block(func, kept):
            yield call, False


def _without_gradients(call: nodes.Call) -> bool:
    scopes = (one for one in call.node_ancestors() if isinstance(one, nodes.With))
    return any(
        last_name(getattr(context, "func", context)) in _NO_GRADIENT for scope in scopes for context, _ in scope.items
    )


def _is_block(func: nodes.NodeNG, kept: dict[str, bool]) -> bool:
    if isinstance(func, nodes.Subscript):
        return _is_stack(func.value, kept) and not isinstance(func.slice, nodes.Slice)
    if not isinstance(func, nodes.Name):
        return False
    value = only_binding(func)
    if value is not None:
        return isinstance(value, nodes.Subscript) and _is_block(value, kept)
    loops = (one for one in func.node_ancestors() if isinstance(one, nodes.For))
    return any(func.name in _elements(loop.target, loop.iter, kept) for loop in loops)


def _elements(target: nodes.NodeNG, iterable: nodes.NodeNG, kept: dict[str, bool]) -> set[str]:
    """The names of a loop's target that are blocks, or parts of one if a block is a list itself."""
    parts = target.elts if isinstance(target, nodes.Tuple) else []
    if _is_stack(iterable, kept):
        return {one.name for one in (parts or [target]) if isinstance(one, nodes.AssignName)}
    if isinstance(iterable, nodes.Subscript):
        return _elements(target, iterable.value, kept) if isinstance(iterable.slice, nodes.Slice) else set()
    if not isinstance(iterable, nodes.Call):
        return set()
    name, given = last_name(iterable.func), iterable.args
    if name == "zip" and len(parts) == len(given):
        return set().union(*(_elements(one, source, kept) for one, source in zip(parts, given, strict=True)))
    if name == "enumerate" and len(parts) == 2 and given:
        return _elements(parts[1], given[0], kept)
    if name == "items" and len(parts) == 2:
        return _elements(parts[1], iterable.func.expr, kept)
    if name in _HANDS_ON:
        return (
            _elements(target, given[0] if given else getattr(iterable.func, "expr", iterable), kept)
            if given or isinstance(iterable.func, nodes.Attribute)
            else set()
        )
    return set()


def _is_stack(node: nodes.NodeNG, kept: dict[str, bool]) -> bool:
    """``self.blocks``, ``self.transformer.h`` and ``self.transformer["h"]``."""
    if isinstance(node, nodes.Subscript) and isinstance(node.slice, nodes.Const):
        return node.slice.value in kept and _on_self(node)
    return isinstance(node, nodes.Attribute) and node.attrname in kept and _on_self(node)


def _on_self(node: nodes.NodeNG) -> bool:
    while isinstance(node, (nodes.Attribute, nodes.Subscript)):
        node = node.expr if isinstance(node, nodes.Attribute) else node.value
    return _is_self(node)


def _is_self(node: nodes.NodeNG) -> bool:
    return isinstance(node, nodes.Name) and node.name == "self"


def _names_a_cache(call: nodes.Call) -> bool:
    """Whether a block receives or returns a cache."""
    statement = call.statement()
    targets = statement.targets if isinstance(statement, nodes.Assign) else []
    loops = [one.target for one in call.node_ancestors() if isinstance(one, nodes.For)]
    named = [
        one
        for part in (*call.args, *call.keywords, *targets, *loops)
        for one in nodes_of(part, (nodes.Name, nodes.AssignName, nodes.Attribute))
    ]
    names = [one.attrname if isinstance(one, nodes.Attribute) else one.name for one in named]
    return any(_CACHE.search(name) for name in (*names, *(keyword.arg or "" for keyword in call.keywords)))


def _can_be_wrapped(call: nodes.Call, whole: bool) -> bool:
    statement = call.statement()
    if not isinstance(statement, _PLAIN) or any(nodes_of(statement, _UNREPEATABLE)):
        return False
    if whole and (len(call.args) != 1 or call.keywords or isinstance(call.args[0], nodes.Starred)):
        return False
    if not (call.args or call.keywords) or any(keyword.arg in _TAKEN for keyword in call.keywords):
        return False
    return not _changes_inputs(call, statement)


def _changes_inputs(call: nodes.Call, statement: nodes.NodeNG) -> bool:
    """Whether the loop changes a tensor in place passed to a block: the second forward would see the change."""
    inputs = {name.name for part in (*call.args, *call.keywords) for name in nodes_of(part, nodes.Name)}
    around = next((one for one in call.node_ancestors() if isinstance(one, _LOOPS)), statement)
    made = (
        {name.name for name in nodes_of(statement, nodes.AssignName)} if isinstance(statement, nodes.Assign) else set()
    )
    return not inputs.isdisjoint(set(_changed_in_place(around)) - made)


def _changed_in_place(scope: nodes.NodeNG) -> Iterable[str]:
    for one in nodes_of(scope, nodes.AugAssign):
        base = one.target
        while isinstance(base, (nodes.Subscript, nodes.Attribute)):
            base = base.value if isinstance(base, nodes.Subscript) else base.expr
        if isinstance(base, (nodes.AssignName, nodes.Name)):
            yield base.name
    for call in nodes_of(scope, nodes.Call):
        func = call.func
        if (
            isinstance(func, nodes.Attribute)
            and re.search(r"[a-z]_$", func.attrname)
            and isinstance(func.expr, nodes.Name)
        ):
            yield func.expr.name


__all__ = ["Site", "sites_of", "stack_attributes"]
