"""Functions that fit a sample, an image or an embedding that they are given to a model: they train nothing."""

from __future__ import annotations

from astroid import nodes

from ldlm_lint.python.memo import remembered
from ldlm_lint.python.names import bindings, qualified
from ldlm_lint.python.walks import nodes_of

_WRAPS = {"torch.nn.Parameter", "torch.nn.parameter.Parameter", "torch.autograd.Variable"}
_OPTIMIZERS = "torch.optim."


def fits_inputs(function: nodes.NodeNG) -> bool:
    """Whether all optimizers that a function makes step nothing but what it is given: ``Adam([nn.Parameter(sample)])``."""
    if not isinstance(function, nodes.FunctionDef):
        return False
    return remembered(function, ("fits inputs",), lambda: _steps_only_inputs(function))


def _steps_only_inputs(function: nodes.FunctionDef) -> bool:
    made = [call for call in nodes_of(function, nodes.Call) if call.args and _makes_an_optimizer(call)]
    return bool(made) and all(_is_list_of_inputs(call.args[0]) for call in made)


def _makes_an_optimizer(call: nodes.Call) -> bool:
    names = qualified(call.func)
    return bool(names) and all(one.startswith(_OPTIMIZERS) and one.count(".") == _OPTIMIZERS.count(".") for one in names)


def _is_list_of_inputs(node: nodes.NodeNG) -> bool:
    return isinstance(node, (nodes.List, nodes.Tuple)) and bool(node.elts) and all(map(_is_input, node.elts))


def _is_input(node: nodes.NodeNG) -> bool:
    """A parameter of the function, or a variable that begins as one: ``x = nn.Parameter(sample)``."""
    if not isinstance(node, nodes.Name):
        return False
    first = min(bindings(node), key=lambda one: one.lineno or 0, default=None)
    if first is None or isinstance(first.parent, nodes.Arguments):
        return first is not None
    origin = _origin(first.parent.value) if isinstance(first.parent, nodes.Assign) else None
    return origin is not None and any(isinstance(one.parent, nodes.Arguments) for one in bindings(origin))


def _origin(value: nodes.NodeNG) -> nodes.Name | None:
    """The variable that ``nn.Parameter(sample.detach().clone())`` is made of."""
    while not isinstance(value, nodes.Name):
        if isinstance(value, nodes.Call) and value.args and qualified(value.func) <= _WRAPS:
            value = value.args[0]
        elif isinstance(value, nodes.Call) and isinstance(value.func, nodes.Attribute):
            value = value.func.expr
        elif isinstance(value, nodes.Attribute):
            value = value.expr
        else:
            return None
    return value


__all__ = ["fits_inputs"]
