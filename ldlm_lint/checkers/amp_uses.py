"""The uses in a file of names from torch.cuda.amp and torch.cpu.amp that moved to torch.amp."""

from __future__ import annotations

import enum
from collections.abc import Iterator
from typing import NamedTuple

from astroid import nodes

from ldlm_lint import tables
from ldlm_lint.checkers.version_switches import first_choice, switched_by_version, tells_apart_torch_2
from ldlm_lint.model import Interface
from ldlm_lint.python.memo import remembered
from ldlm_lint.python.names import bindings, qualified
from ldlm_lint.python.walks import nodes_of

MOVED = ("autocast", "GradScaler", "custom_fwd", "custom_bwd")
_PRIVATE = {
    "autocast": "autocast_mode",
    "GradScaler": "grad_scaler",
    "custom_fwd": "autocast_mode",
    "custom_bwd": "autocast_mode",
}


class Moved(NamedTuple):
    """A name that moved to ``torch.amp``, and the device type of its old module."""

    name: str
    device: str

    @property
    def old(self) -> str:
        """The old name in full."""
        return f"torch.{self.device}.amp.{self.name}"

    @property
    def new(self) -> Interface:
        """Its replacement, with the first torch that has it."""
        return tables.interface(f"torch.amp.{self.name}")


OLD = {
    f"torch.{device}.amp.{module}{name}": Moved(name, device)
    for device in ("cuda", "cpu")
    for name in MOVED
    for module in ("", f"{_PRIVATE[name]}.")
}


def advice(moved: Moved) -> str:
    """The new call as text."""
    if moved.name.startswith("custom_"):
        return f'`torch.amp.{moved.name}(device_type="{moved.device}")`'
    return f'`torch.amp.{moved.name}("{moved.device}", ...)`'


def advice_for_value(moved: Moved) -> str:
    """What replaces the old name where it is not called but handed on: something that is called like it."""
    device = f'device_type="{moved.device}"' if moved.name.startswith("custom_") else f'"{moved.device}"'
    return f"`functools.partial(torch.amp.{moved.name}, {device})`"


class Role(enum.Enum):
    """The kind of use of the name: call it, decorate with it, or anything else."""

    CALL = "call"
    DECORATOR = "decorator"
    OTHER = "other"


_NEW_TEXTS = {"amp", "torch.amp", "autocast", "GradScaler"}


class Use(NamedTuple):
    """A use of a moved name; ``node`` is the name as the file writes it.

    It is ``guarded`` if the file tests whether torch has the name: all supported versions have it.
    """

    node: nodes.NodeNG
    moved: Moved
    role: Role
    guarded: bool = False

    @property
    def place(self) -> nodes.NodeNG:
        """The call that the name belongs to, or the name itself."""
        return self.node.parent if self.role is Role.CALL else self.node


def deprecated_uses(module: nodes.Module) -> Iterator[Use]:
    """Every place that runs a moved name on all versions of torch; naming a type in an annotation does not."""
    for node in nodes_of(module, (nodes.Name, nodes.Attribute)):
        if isinstance(node.parent, nodes.Attribute) or (moved := moved_name(node)) is None:
            continue
        if is_only_named(node) or _is_alias(node) or _is_bound_to_partial(node):
            continue
        guarded = switched_by_version(node)
        if not guarded or not (_knows_new_names(module) or tells_apart_torch_2(node)):
            yield Use(node, moved, role_of(node), guarded)


def moved_name(node: nodes.NodeNG) -> Moved | None:
    """The moved name that an expression means for certain."""
    names = qualified(node)
    if len(names) > 1 and isinstance(node, nodes.Name) and node.name in MOVED:
        # ``except ImportError: class GradScaler: …`` is for versions before the old name.
        names = first_choice(node)
    if len(names) == 1:
        return OLD.get(next(iter(names)))
    return None


def _knows_new_names(module: nodes.Module) -> bool:
    """Whether a file mentions ``torch.amp`` or ``torch.autocast``: its test may choose between both."""
    return remembered(module, ("new amp",), lambda: any(map(_is_new_name, nodes_of(module, _NAMING))))


_NAMING = (nodes.Attribute, nodes.ImportFrom, nodes.Import, nodes.Const)


def _is_new_name(node: nodes.NodeNG) -> bool:
    if isinstance(node, nodes.Const):
        return isinstance(node.value, str) and node.value in _NEW_TEXTS
    if isinstance(node, nodes.Attribute):
        return node.attrname in ("amp", "autocast") and qualified(node) <= {"torch.amp", "torch.autocast"}
    if isinstance(node, nodes.Import):
        return any(name.startswith("torch.amp") for name, _ in node.names)
    if node.modname == "torch":
        return any(name in ("amp", "autocast", "*") for name, _ in node.names)
    return node.modname.startswith("torch.amp")


def role_of(node: nodes.NodeNG) -> Role:
    """What is around a name."""
    if isinstance(node.parent, nodes.Call) and node.parent.func is node:
        return Role.CALL
    return Role.DECORATOR if isinstance(node.parent, nodes.Decorators) else Role.OTHER


def is_only_named(node: nodes.NodeNG) -> bool:
    """Whether a name is in an annotation, a type or a comparison of types, which execute nothing."""
    child, parent = node, node.parent
    while parent is not None and not isinstance(parent, nodes.Module):
        if isinstance(parent, nodes.Compare) or (isinstance(parent, nodes.Subscript) and child is parent.slice):
            return True
        if isinstance(parent, nodes.Arguments):
            return child not in (parent.defaults or []) and child not in (parent.kw_defaults or [])
        if isinstance(parent, nodes.AnnAssign):
            return child is parent.annotation
        if isinstance(parent, nodes.FunctionDef):
            return child is parent.returns
        if isinstance(parent, nodes.Call) and getattr(parent.func, "name", "") in ("isinstance", "issubclass"):
            return child in parent.args[1:]
        if isinstance(parent, nodes.Call) and child is parent.func:
            return False
        child, parent = parent, parent.parent
    return False


def _is_alias(node: nodes.NodeNG) -> bool:
    """``autocast = torch.cuda.amp.autocast`` at the top of a file: the calls through the alias are reported."""
    parent = node.parent
    return isinstance(parent, nodes.Assign) and all(isinstance(one, nodes.AssignName) for one in parent.targets)


def _is_bound_to_partial(node: nodes.NodeNG) -> bool:
    """Whether a name is bound to a call that gets the old name, such as ``partial(autocast, ...)``, where it is reported."""
    found = bindings(node) if isinstance(node, nodes.Name) else []
    calls = [one.parent.value for one in found if isinstance(one, nodes.AssignName) and isinstance(one.parent, nodes.Assign)]
    return any(isinstance(one, nodes.Call) and any(moved_name(argument) is not None for argument in one.args) for one in calls)


def aliased(node: nodes.NodeNG) -> list[nodes.NodeNG]:
    """The old names that the file assigns to the alias in a use, as written."""
    while isinstance(node, nodes.Attribute):
        node = node.expr
    found = bindings(node) if isinstance(node, nodes.Name) else []
    values = [one.parent.value for one in found if isinstance(one, nodes.AssignName) and isinstance(one.parent, nodes.Assign)]
    return [one for one in values if isinstance(one, (nodes.Name, nodes.Attribute)) and moved_name(one) is not None]
