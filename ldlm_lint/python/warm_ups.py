"""Runs of a model that only warm a device up: the input is made up, and the result is dropped at once.

    model(torch.zeros(1, 3, 640, 640, device=device))
    _ = model(image.half() if half else image) if device.type != "cpu" else None      # image = torch.zeros(…)

The graph of such a run is gone before the next statement: it keeps nothing.
"""

from __future__ import annotations

from astroid import nodes

from ldlm_lint.python.names import qualified
from ldlm_lint.python.scopes import bindings
from ldlm_lint.vocabulary.tensors import MADE_UP


def is_warm_up(call: nodes.Call) -> bool:
    """Whether a call of a model gets only tensors that are made up, and its result is not used."""
    given = [*call.args, *(one.value for one in call.keywords)]
    return _is_dropped(call) and any(map(_is_made_up, given)) and all(_is_made_up(one) or isinstance(one, nodes.Const) for one in given)


def _is_dropped(call: nodes.Call) -> bool:
    value: nodes.NodeNG = call
    while isinstance(value.parent, nodes.IfExp) and value is not value.parent.test:
        value = value.parent
    statement = value.parent
    if isinstance(statement, nodes.Assign):
        return all(isinstance(one, nodes.AssignName) and not one.name.strip("_") for one in statement.targets)
    return isinstance(statement, nodes.Expr)


def _is_made_up(node: nodes.NodeNG) -> bool:
    """Whether each way to an expression begins with a tensor of zeros, ones or random numbers."""
    todo, seen, found = [node], set[nodes.NodeNG](), False
    while todo:
        one = todo.pop()
        if one in seen:
            # ``image = image.half()``
            continue
        seen.add(one)
        if isinstance(one, nodes.IfExp):
            todo += [one.body, one.orelse]
        elif isinstance(one, (nodes.List, nodes.Tuple)):
            todo += one.elts
        elif isinstance(one, nodes.Name):
            values = [_bound_value(binder) for binder in bindings(one)]
            if not values or None in values:
                return False
            todo += values
        elif not isinstance(one, nodes.Call):
            return False
        elif not qualified(one.func).isdisjoint(MADE_UP):
            found = True
        elif isinstance(one.func, nodes.Attribute):
            # ``torch.zeros(1, 3).to(device)``
            todo.append(one.func.expr)
        else:
            return False
    return found


def _bound_value(binder: nodes.NodeNG) -> nodes.NodeNG | None:
    """The value that an assignment binds to a single name."""
    statement = binder.parent
    return statement.value if isinstance(statement, nodes.Assign) and isinstance(binder, nodes.AssignName) else None
