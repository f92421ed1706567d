"""Models whose own constructor freezes them: a distance measure is never trained."""

from __future__ import annotations

from collections.abc import Iterator

from astroid import nodes

from ldlm_lint.project.makers import Makers
from ldlm_lint.project.models import Models, Part
from ldlm_lint.python.slots import Slot
from ldlm_lint.python.walks import nodes_of
from ldlm_lint.vocabulary.modules import RETURN_THEMSELVES

SAME = RETURN_THEMSELVES
"""What gives the same module back."""
_LISTING = ("self.parameters()", "self.named_parameters()")


def is_made_frozen(makers: Makers, models: Models, path: str, slot: Slot) -> bool:
    """Whether every possible creator of a slot's value creates an object of a class that freezes itself."""
    found = False
    for where, call in makers.calls_behind(path, slot):
        kind, name = call.callee
        if kind == "method" and name in SAME:
            continue
        resolved = (where, name) if kind == "def" else models.resolve(where, name) if kind == "import" else None
        made = models.definition(Part(*resolved)) if resolved is not None and resolved[1] else None
        if not isinstance(made, nodes.ClassDef) or not freezes_itself(made):
            return False
        found = True
    return found


def freezes_itself(node: nodes.ClassDef) -> bool:
    """Whether a constructor switches off the gradients of all its parts, as the final setting."""
    constructor = next(iter(node.locals.get("__init__", ())), None)
    if not isinstance(constructor, nodes.FunctionDef) or any(_switches_on(one) for one in nodes_of(node, nodes.Call)):
        return False
    frozen = False
    for statement in constructor.body:
        if _freezes_all(statement):
            frozen = True
        elif frozen and any(True for _ in _parts_made(statement)):
            return False
    return frozen and not any(_sets(one, value=True) for one in nodes_of(node, nodes.Assign))


def _freezes_all(statement: nodes.NodeNG) -> bool:
    """``self.requires_grad_(False)``, or a loop over all parameters that freezes each."""
    if isinstance(statement, nodes.Expr):
        return statement.as_string() in ("self.requires_grad_(False)", "self.eval().requires_grad_(False)")
    if not isinstance(statement, nodes.For) or statement.iter.as_string() not in _LISTING:
        return False
    return any(
        _sets(one, value=False) or (isinstance(one, nodes.Expr) and one.as_string().endswith(".requires_grad_(False)"))
        for one in statement.body
    )


def _sets(statement: nodes.NodeNG, *, value: bool) -> bool:
    """Whether a statement is ``….requires_grad = value``."""
    if not isinstance(statement, nodes.Assign) or not isinstance(statement.value, nodes.Const) or statement.value.value is not value:
        return False
    return any(isinstance(one, nodes.AssignAttr) and one.attrname == "requires_grad" for one in statement.targets)


def _switches_on(call: nodes.Call) -> bool:
    if not isinstance(call.func, nodes.Attribute) or call.func.attrname != "requires_grad_":
        return False
    return not call.args or not isinstance(call.args[0], nodes.Const) or call.args[0].value is not False


def _parts_made(statement: nodes.NodeNG) -> Iterator[nodes.AssignAttr]:
    """The attributes of the object that a statement creates by a call, each a possible trained part."""
    for target in nodes_of(statement, nodes.AssignAttr):
        made = getattr(target.parent, "value", None)
        if isinstance(made, nodes.Call) and target.expr.as_string() == "self":
            yield target


__all__ = ["SAME", "freezes_itself", "is_made_frozen"]
