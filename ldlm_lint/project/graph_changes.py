"""Forward passes whose path through the layers changes between steps."""

from __future__ import annotations

from collections.abc import Iterator

from astroid import nodes

from ldlm_lint.patterns import lazily
from ldlm_lint.python.names import bindings, qualified
from ldlm_lint.python.walks import nodes_of

_FORWARD = lazily(r"^_*forward(_|$)")
_DRAWS = lazily(
    r"^(random|numpy\.random)\.\w+$|^torch\.(rand|randn|randint|randperm|bernoulli|multinomial|empty)$|\.uniform_$|\.bernoulli_$"
)


def changing_forward(part: nodes.NodeNG) -> nodes.NodeNG | None:
    """The place in the forward pass of a class that draws which layers run, or freezes parameters."""
    if not isinstance(part, nodes.ClassDef):
        return None
    for method in part.mymethods():
        if _FORWARD.search(method.name):
            found = next(_changes(method), None)
            if found is not None:
                return found
    return None


def _changes(method: nodes.FunctionDef) -> Iterator[nodes.NodeNG]:
    for branch in nodes_of(method, nodes.If):
        if _is_drawn(branch.test) and (_runs_layers(branch.body) or _runs_layers(branch.orelse)):
            yield branch
    for place in nodes_of(method, nodes.AssignAttr):
        if place.attrname == "requires_grad" and isinstance(place.expr, nodes.Name) and isinstance(place.statement().parent, nodes.For):
            yield place


def _is_drawn(test: nodes.NodeNG) -> bool:
    """Whether a test uses a random draw, directly or from earlier in the function."""
    if any(_draws(call) for call in nodes_of(test, nodes.Call)):
        return True
    for name in nodes_of(test, nodes.Name):
        values = (getattr(one.parent, "value", None) for one in bindings(name) if isinstance(one, nodes.AssignName))
        if name.scope() is test.scope() and any(_holds_draw(value) for value in values if value is not None):
            return True
    return False


def _holds_draw(value: nodes.NodeNG) -> bool:
    """A random number or choice; a tensor for the layers does not count."""
    calls = list(nodes_of(value, nodes.Call))
    if not any(map(_draws, calls)):
        return False
    texts = [one.as_string() for one in calls]
    return not any(text.startswith(("torch.rand", "torch.bernoulli")) and "(1" not in text and "([]" not in text for text in texts)


def _draws(call: nodes.Call) -> bool:
    return any(_DRAWS.search(name) for name in qualified(call.func) if not name.startswith("."))


def _runs_layers(block: list[nodes.NodeNG]) -> bool:
    """Whether a branch calls a layer, or leaves a loop or the function before others do."""
    for statement in block:
        if isinstance(statement, (nodes.Continue, nodes.Break)):
            return True
        for call in nodes_of(statement, nodes.Call):
            func = call.func.value if isinstance(call.func, nodes.Subscript) else call.func
            if isinstance(func, nodes.Attribute) and isinstance(func.expr, nodes.Name) and func.expr.name == "self":
                return True
            if isinstance(func, nodes.Name) and any(isinstance(one.parent, nodes.For) for one in bindings(func)):
                return True
    return False


__all__ = ["changing_forward"]
