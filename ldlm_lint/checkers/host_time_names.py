"""What names hold inside a function: the bindings that reach a use, results of calls, what runs backward."""

from __future__ import annotations

import bisect
from collections.abc import Iterator

from astroid import nodes

from ldlm_lint.patterns import lazily
from ldlm_lint.python.flow import is_backward
from ldlm_lint.python.memo import remembered
from ldlm_lint.python.names import bindings, qualified, scope_of
from ldlm_lint.python.places import function_of
from ldlm_lint.python.scopes import belongs_inside
from ldlm_lint.python.walks import nodes_of

# One arm of an ``if``: "body" or "orelse".
_Arm = tuple[nodes.NodeNG, str]
# ``engine.backward(loss)``, ``self.manual_backward(loss, optimizer)``.
_ARGUMENTS = 2
# ``loss.div(steps)``, ``loss.sum(0)``: what a tensor is divided by or reduced over is none.
_OF_TORCH = lazily(r"torch\.")
_SCALES = frozenset(
    {"div", "div_", "divide", "divide_", "true_divide", "mul", "mul_", "multiply", "multiply_", "sum", "mean", "to"}
)


def returns(function: nodes.FunctionDef | None) -> list[nodes.Return]:
    """The statements by which a function returns a value."""
    if function is None:
        return []
    return [
        one for one in nodes_of(function, nodes.Return) if one.value is not None and function_of(one) is function
    ]


def is_result(name: nodes.Name) -> bool:
    """Whether a name holds what some call returned."""
    return any(isinstance(getattr(one.parent, "value", None), nodes.Call) for one in bindings(name))


def trained(function: nodes.NodeNG) -> Iterator[str]:
    """The names and attributes, as written, that a function or a loop runs backward or adds up to what it does."""
    owner = function_of(function)
    for call in nodes_of(function, nodes.Call):
        if not isinstance(call.func, nodes.Attribute) or call.func.attrname not in ("backward", "manual_backward"):
            continue
        if len(call.args) > _ARGUMENTS or not is_backward(call):
            # ``kernels.backward(rows, columns, grad)`` in an autograd function is given sizes and gradients.
            continue
        for part in _terms(call.args[0] if call.args else call.func.expr):
            if not belongs_inside(part, owner):
                yield part.as_string()


def of_another_loop(found: list[nodes.NodeNG]) -> bool:
    """``for name, loss in logs.items()``: what one loop calls by a name is not what another one runs backward."""
    loops = [one.statement() for one in found]
    return bool(loops) and all(isinstance(one, nodes.For) and next(trained(one), None) is None for one in loops)


def _terms(node: nodes.NodeNG) -> Iterator[nodes.NodeNG]:
    if isinstance(node, nodes.BinOp):
        yield from _terms(node.left)
        if node.op in "+-":
            yield from _terms(node.right)
    elif isinstance(node, nodes.Call):
        method = isinstance(node.func, nodes.Attribute) and not any(map(_OF_TORCH.match, qualified(node.func)))
        scales = method and node.func.attrname in _SCALES
        parts = [
            *([] if scales else node.args[:1]),
            *([node.func.expr] if isinstance(node.func, nodes.Attribute) and (scales or not node.args) else []),
        ]
        for part in parts:
            yield from _terms(part)
    elif isinstance(node, nodes.Attribute) or (isinstance(node, nodes.Name) and node.name not in ("self", "cls")):
        yield node


def reaching(name: nodes.Name) -> Iterator[nodes.NodeNG]:
    """The bindings whose value a name may hold where it stands; all of them where none stands before it."""
    every = bindings(name)
    scope = scope_of(name)
    if len(every) < 2 or scope is None or scope is not name.scope():
        yield from every
        return
    here = name.statement()
    backwards = remembered(scope, ("latest first", name.name), lambda: _latest_first(every))
    found = False
    rebound: set[_Arm] = set()
    for binding in backwards[bisect.bisect_right(backwards, -name.lineno, key=lambda one: -one.lineno) :]:
        if binding.statement() is here or _is_rebound(binding, rebound):
            continue
        yield binding
        found = True
        if isinstance(binding.parent, nodes.AugAssign):
            continue
        if _dominates(binding, here) or _ends_in_every_arm(binding, rebound, here):
            return
    if not found:
        yield from every


def _is_rebound(binding: nodes.NodeNG, rebound: set[_Arm]) -> bool:
    """Whether what a name is bound to here never leaves the arm of an ``if``, which binds it anew further down."""
    child = binding
    for parent in binding.node_ancestors() if rebound else ():
        if isinstance(parent, nodes.If) and (parent, _arm(parent, child)) in rebound:
            return True
        child = parent
    return False


def _ends_in_every_arm(binding: nodes.NodeNG, rebound: set[_Arm], here: nodes.NodeNG) -> bool:
    """Note the arm of the ``if`` that a binding stands in; whether with it all ways to a statement bind the name."""
    statement = binding.statement()
    while isinstance(statement.parent, nodes.If):
        branch = statement.parent
        rebound.add((branch, _arm(branch, statement)))
        if not rebound.issuperset(((branch, "body"), (branch, "orelse"))):
            return False
        if _dominates(branch, here):
            return True
        statement = branch
    return False


def _latest_first(binders: list[nodes.NodeNG]) -> list[nodes.NodeNG]:
    return sorted(binders, key=lambda one: (one.lineno, one.col_offset), reverse=True)


def _dominates(binding: nodes.NodeNG, here: nodes.NodeNG) -> bool:
    """Whether every way to a statement passes a binding: it stands in a block around it."""
    statement = binding if isinstance(binding.parent, nodes.Arguments) else binding.statement()
    if isinstance(binding.parent, nodes.Arguments):
        return True
    block, child = statement.parent, here
    if isinstance(statement, nodes.For):
        return any(one is statement for one in here.node_ancestors())
    for parent in here.node_ancestors():
        if parent is block:
            return _arm(parent, statement) == _arm(parent, child)
        child = parent
    return False


def _arm(parent: nodes.NodeNG, child: nodes.NodeNG) -> str:
    return next(
        (name for name in ("body", "orelse", "handlers", "finalbody") if child in (getattr(parent, name, None) or ())),
        "",
    )


__all__ = ["is_result", "of_another_loop", "reaching", "returns", "trained"]
