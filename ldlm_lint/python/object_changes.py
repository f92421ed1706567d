"""Where an object is changed: stores into it or a part of it, and methods that do so."""

from __future__ import annotations

from typing import NamedTuple

from astroid import nodes

from ldlm_lint.python.names import last_name
from ldlm_lint.python.walks import nodes_of

_DEPTH = 3


class Change(NamedTuple):
    """A place that changes an object; ``method`` is its called method that may do it.

    ``discarded``: the result of the method is unused, so it is called for its effect.
    """

    node: nodes.NodeNG
    method: str = ""
    discarded: bool = False


def change_by(use: nodes.NodeNG) -> Change | None:
    """The use of the object in an expression, if it changes the object or calls a method of it.

    ``data.epoch = 3``, ``data.order[0] = 1``, ``data.order.reverse()``, ``random.shuffle(data.order)``,
    ``data.set_epoch(3)``.
    """
    part, parent = use, use.parent
    while isinstance(parent, nodes.Attribute) or (isinstance(parent, nodes.Subscript) and parent.value is part):
        part, parent = parent, parent.parent
    if isinstance(parent, (nodes.AssignAttr, nodes.DelAttr)) or (part is not use and _is_stored(part)):
        return Change(part)
    if not isinstance(parent, nodes.Call):
        return None
    if parent.func is not part:
        named = last_name(parent.func)
        changed = named == "setattr" or (named == "shuffle" and part is not use)
        return Change(part) if changed and part in parent.args[:1] else None
    if part is use or not isinstance(part, nodes.Attribute):
        return None
    discarded = isinstance(parent.parent, nodes.Expr)
    if part.expr is use:
        return Change(part, part.attrname, discarded)
    return Change(part) if discarded else None


def _is_stored(part: nodes.NodeNG) -> bool:
    """Whether an element is assigned: ``data.order[0] = 1``."""
    parent = part.parent
    if isinstance(parent, nodes.Assign):
        return part in parent.targets
    return isinstance(parent, (nodes.AugAssign, nodes.Delete)) and part is not getattr(parent, "value", None)


def changes_itself(owner: nodes.ClassDef, method: str, depth: int = 0) -> bool:
    """Whether a method of a class changes the object that it belongs to, itself or through others of the class."""
    definition = next((one for one in owner.locals.get(method, ()) if isinstance(one, nodes.FunctionDef)), None)
    if definition is None or depth > _DEPTH:
        return False
    uses = (one for one in nodes_of(definition, nodes.Name) if one.name == "self")
    changes = [change for one in uses if (change := change_by(one)) is not None]
    return any(not one.method or changes_itself(owner, one.method, depth + 1) for one in changes)


__all__ = ["Change", "change_by", "changes_itself"]
