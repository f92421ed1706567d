"""The counters in the name of a file: steps and epochs that an expression of a path formats into it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from astroid import nodes

from ldlm_lint.patterns import lazily
from ldlm_lint.python.calls import Arguments
from ldlm_lint.python.checkpoint_words import COUNTER, COUNTING
from ldlm_lint.python.names import bindings, last_name
from ldlm_lint.python.places import function_of as enclosing_function
from ldlm_lint.python.places import loops_around
from ldlm_lint.python.scopes import scope_of, visible
from ldlm_lint.python.values import constant
from ldlm_lint.python.walks import nodes_of

if TYPE_CHECKING:
    from typing import TypeGuard

_DEPTH = 6
_NAMED = 2
_OPTIMIZER = lazily(r"(^|_)optim(izer)?s?(_|$)", re.I)


def is_text(node: nodes.NodeNG | None) -> TypeGuard[nodes.Const]:
    """Whether an expression is a string written out."""
    return isinstance(node, nodes.Const) and isinstance(node.value, str)


def counters_in(node: nodes.NodeNG, depth: int = 0) -> Iterator[str]:
    """The step or epoch counters that a path expression formats into its name."""
    if depth > _DEPTH:
        return
    if isinstance(node, nodes.FormattedValue):
        yield from (name for name in (*identifiers(node.value), *_keys_of_state(node.value)) if COUNTER.search(name.lower()))
        if isinstance(node.value, nodes.Name):
            yield from _of_bindings(node.value, depth)
    elif isinstance(node, nodes.JoinedStr):
        for part in node.values:
            yield from counters_in(part, depth + 1)
    elif isinstance(node, nodes.BinOp):
        yield from counters_in(node.left, depth + 1)
        yield from _formatted_by_percent(node) if node.op == "%" and is_text(node.left) else counters_in(node.right, depth + 1)
    elif isinstance(node, nodes.Call):
        yield from _of_call(node, depth)
    elif isinstance(node, nodes.Name):
        yield from _of_bindings(node, depth)


def _keys_of_state(node: nodes.NodeNG) -> Iterator[str]:
    """``state["step"]``: a training's counters; the keys of a configuration are limits."""
    if isinstance(node, nodes.Subscript) and isinstance(node.value, nodes.Name) and node.value.name.endswith("state"):
        key = constant(node.slice)
        if isinstance(key, str):
            yield key


def loop_counters(call: nodes.Call, path: nodes.NodeNG) -> set[str]:
    """The variables of counting loops around a save, those that count their passes, or sums made of them, that its path formats."""
    loops = loops_around(call)
    loops = [loop for loop in loops if not _trains_another(loop)]
    counting = {name for loop in loops for name in (*_counted(loop), *_incremented(loop))}
    if not counting:
        return set()
    for loop in loops:
        for assign in nodes_of(loop, nodes.Assign):
            if isinstance(assign.value, nodes.BinOp) and counting.intersection(identifiers(assign.value)):
                counting.update(target.name for target in assign.targets if isinstance(target, nodes.AssignName))
    paths = [path, *_bound_in_loop(path, loops[-1])]
    return counting.intersection(name for one in paths for part in _formatted(one) for name in identifiers(part))


def _trains_another(loop: nodes.NodeNG) -> bool:
    """Whether each pass makes an optimizer: it trains the model of another fold, member or trial, and their number is
    limited."""
    return any(
        _makes_anew(one.value) and any(_OPTIMIZER.search(name) for target in one.targets for name in _targets(target))
        for one in nodes_of(loop, nodes.Assign)
    )


def _makes_anew(value: nodes.NodeNG) -> bool:
    """A call that takes no optimizer: ``optimizer.state_dict()`` and ``prepare(optimizer)`` create none."""
    if not isinstance(value, nodes.Call):
        return False
    taken = [*value.args, *(one.value for one in value.keywords)]
    if isinstance(value.func, nodes.Attribute) and value.func.attrname.islower():
        taken.append(value.func.expr)
    names = (one for part in taken for one in nodes_of(part, (nodes.Name, nodes.Attribute)))
    return not any(_OPTIMIZER.search(last_name(one)) for one in names if not _is_module(one))


def _is_module(node: nodes.NodeNG) -> bool:
    found = bindings(node) if isinstance(node, nodes.Name) else []
    return bool(found) and all(isinstance(one, (nodes.Import, nodes.ImportFrom)) for one in found)


def _targets(node: nodes.NodeNG) -> Iterator[str]:
    if isinstance(node, (nodes.Tuple, nodes.List)):
        for one in node.elts:
            yield from _targets(one)
    elif isinstance(node, (nodes.AssignName, nodes.AssignAttr)):
        yield node.name if isinstance(node, nodes.AssignName) else node.attrname


def _bound_in_loop(path: nodes.NodeNG, loop: nodes.NodeNG, depth: int = 0) -> Iterator[nodes.NodeNG]:
    """The values of names in a path that a loop rebinds: ``path = f"{i:06d}.pt"``."""
    for name in nodes_of(path, nodes.Name) if depth < _NAMED else ():
        for value in bound_values(name):
            if loop.parent_of(value):
                yield value
                yield from _bound_in_loop(value, loop, depth + 1)


def _counted(loop: nodes.NodeNG) -> Iterator[str]:
    """The variable of ``for i in range(…)`` or ``for i, x in enumerate(…)``, also where the iterable has a name."""
    target = getattr(loop, "target", None)
    iterables = list(bound_values(loop.iter)) if isinstance(getattr(loop, "iter", None), nodes.Name) else [getattr(loop, "iter", None)]
    if any(isinstance(one, nodes.Call) and last_name(one.func) in COUNTING for one in iterables):
        first = target.elts[0] if isinstance(target, nodes.Tuple) and target.elts else target
        if isinstance(first, nodes.AssignName):
            yield first.name


def _incremented(loop: nodes.NodeNG) -> Iterator[str]:
    """``iterate += 1``"""
    for one in nodes_of(loop, nodes.AugAssign):
        if one.op == "+=" and isinstance(one.target, nodes.AssignName) and type(constant(one.value)) is int:
            yield one.target.name


def _formatted(path: nodes.NodeNG) -> Iterator[nodes.NodeNG]:
    """The expressions that a path literal formats into its name."""
    for node in nodes_of(path, (nodes.FormattedValue, nodes.Call, nodes.BinOp)):
        if isinstance(node, nodes.FormattedValue):
            yield node.value
        elif isinstance(node, nodes.BinOp) and node.op == "%":
            yield node.right
        elif isinstance(node, nodes.Call) and last_name(node.func) in ("format", "str") and not _formats_nothing(node):
            yield from node.args


def _formats_nothing(call: nodes.Call) -> bool:
    """``"last.pt".format(epoch)`` is always the same name."""
    text = call.func.expr if isinstance(call.func, nodes.Attribute) and call.func.attrname == "format" else None
    return is_text(text) and "{" not in text.value


def _of_bindings(node: nodes.Name, depth: int) -> Iterator[str]:
    for value in bound_values(node):
        yield from counters_in(value, depth + 1)


def bound_values(node: nodes.Name) -> Iterator[nodes.NodeNG]:
    """The possible values of a name at its use: assigned, opened by a ``with``, or an element of the list it loops
    over."""
    # To look a builtin up astroid would have to paint all of them (0.1 s, 12 MB).
    for binding in _within(node, visible(node, node.name) if scope_of(node) is not None else []):
        parent = binding.parent
        if isinstance(parent, (nodes.Assign, nodes.AnnAssign)) and parent.value is not None:
            yield parent.value
        elif isinstance(parent, nodes.With):
            yield from (context.args[0] for context, target in parent.items if target is binding and _opens(context))
        elif isinstance(parent, nodes.For) and isinstance(parent.iter, nodes.Name):
            yield from _elements(parent.iter)


def _within(node: nodes.Name, binders: list[nodes.NodeNG]) -> list[nodes.NodeNG]:
    """Inside of a ``with`` that binds a name, earlier bindings no longer count."""
    openings = [one.parent for one in binders if isinstance(one.parent, nodes.With)]
    inside = (one for one in node.node_ancestors() if one in openings) if openings else ()
    statement = node.statement()
    innermost = next((one for one in inside if one is not statement), None)
    if innermost is None:
        return binders
    return [one for one in binders if one.parent is innermost or any(up is innermost for up in one.node_ancestors())]


def _opens(context: nodes.NodeNG) -> bool:
    return isinstance(context, nodes.Call) and bool(context.args)


def _elements(node: nodes.Name) -> Iterator[nodes.NodeNG]:
    """The elements of a list that a function builds from a literal and by appending."""
    for value in bound_values(node):
        if isinstance(value, (nodes.List, nodes.Tuple)):
            yield from value.elts
    for call in nodes_of(enclosing_function(node), nodes.Call):
        owner = call.func.expr if isinstance(call.func, nodes.Attribute) and call.func.attrname == "append" else None
        if isinstance(owner, nodes.Name) and owner.name == node.name and call.args:
            yield call.args[0]


def _formatted_by_percent(node: nodes.BinOp) -> Iterator[str]:
    yield from (name for name in identifiers(node.right) if COUNTER.search(name.lower()))


def _of_call(node: nodes.Call, depth: int) -> Iterator[str]:
    last = last_name(node.func)
    if _formats_nothing(node):
        return
    if last in ("format", "str", "zfill"):
        values = [*node.args, *(keyword.value for keyword in node.keywords)]
        for value in values:
            yield from (name for name in identifiers(value) if COUNTER.search(name.lower()))
    if last in ("join", "joinpath", "Path", "str", "abspath", "with_name", "format", "with_suffix"):
        for value in (*node.args, *(keyword.value for keyword in node.keywords if last == "format")):
            yield from counters_in(value, depth + 1)
    if isinstance(node.func, nodes.Attribute) and last in ("joinpath", "zfill", "with_suffix"):
        yield from counters_in(node.func.expr, depth + 1)
    if any(COUNTER.search(name.lower()) for name in _names_given(node)) or any(_texts_given(node)):
        yield from _of_function(node, depth)


def _names_given(call: nodes.Call) -> Iterator[str]:
    """The names in the arguments of a call."""
    for value in (*call.args, *(keyword.value for keyword in call.keywords)):
        yield from identifiers(value)


def _texts_given(call: nodes.Call) -> Iterator[nodes.NodeNG]:
    """The text values of variables in the arguments of a call: ``tag = str(step)``."""
    for value in (*call.args, *(keyword.value for keyword in call.keywords)):
        if isinstance(value, nodes.Name):
            yield from (one for one in bound_values(value) if isinstance(one, nodes.JoinedStr) or _is_number_as_text(one))


def _is_number_as_text(node: nodes.NodeNG) -> bool:
    return isinstance(node, nodes.Call) and isinstance(node.func, nodes.Name) and node.func.name == "str"


def _of_function(call: nodes.Call, depth: int) -> Iterator[str]:
    """``checkpoint_name(folder, step)``: the arguments that the function formats into the returned name."""
    function = _own_function(call.func)
    if function is None:
        return
    parameters = function.argnames()
    given = Arguments(call, parameters[isinstance(call.func, nodes.Attribute) :])
    returned = (one.value for one in nodes_of(function, nodes.Return) if enclosing_function(one) is function)
    for name in {name for value in returned if value is not None for name in counters_in(value, depth + 1)}:
        value = given[name].node if name in parameters else None
        if value is not None:
            yield from (one for one in identifiers(value) if COUNTER.search(one.lower()))
            yield from counters_in(value, depth + 1) if isinstance(value, nodes.Name) else ()


def _own_function(node: nodes.NodeNG) -> nodes.FunctionDef | None:
    """The function of this file that a name means, or ``self`` followed by the name of a method."""
    if isinstance(node, nodes.Name):
        found = bindings(node)
    elif isinstance(node, nodes.Attribute) and last_name(node.expr) == "self":
        owner = next((one for one in node.node_ancestors() if isinstance(one, nodes.ClassDef)), None)
        found = [one for one in owner.body if last_name(one) == node.attrname] if owner is not None else []
    else:
        return None
    function = found[0] if len(found) == 1 else None
    return function if isinstance(function, nodes.FunctionDef) and not function.decorators else None


def _is_one_text(node: nodes.Name) -> bool:
    """``epoch_name = "last"``, under any name."""
    values = [getattr(one.parent, "value", None) for one in bindings(node)]
    return bool(values) and all(one is not None and is_text(one) for one in values)


def identifiers(node: nodes.NodeNG) -> Iterator[str]:
    """The variable names of an expression that counts; a call in it (``strftime``) is not a counter."""
    if isinstance(node, nodes.Name):
        if not _is_one_text(node):
            yield node.name
    elif isinstance(node, nodes.Attribute):
        yield node.attrname
    elif isinstance(node, nodes.BinOp) and node.op != "%":
        yield from identifiers(node.left)
        yield from identifiers(node.right)
    elif isinstance(node, nodes.Tuple):
        for element in node.elts:
            yield from identifiers(element)
    elif isinstance(node, nodes.Call) and isinstance(node.func, nodes.Name) and node.func.name in ("int", "str") and node.args:
        yield from identifiers(node.args[0])
