"""Classifies the objects of a training step: optimizers, schedulers of the learning rate, gradient scalers."""

from __future__ import annotations

import enum
from collections.abc import Iterator

from astroid import nodes

from ldlm_lint.patterns import lazily
from ldlm_lint.python.names import UNKNOWN, bindings, qualified
from ldlm_lint.python.names import last_name as plain_name
from ldlm_lint.python.walks import nodes_of
from ldlm_lint.vocabulary.step_names import NO_OPTIMIZER, NO_SCHEDULE, OPTIMIZER, SCHEDULE

_TORCH_SCHEDULERS = lazily(
    r"^torch\.optim\.lr_scheduler\.|^transformers\.(\w+\.)*(get_\w*schedule\w*)$|^diffusers\.(\w+\.)*get_\w*schedule\w*$|\.lr_schedulers$"
    r"|^pl_bolts\..*LR$|^lightning\..*LR$"
)
_PLATEAU = "torch.optim.lr_scheduler.ReduceLROnPlateau"
_BASE = lazily(r"^_?LRScheduler$|LR$|^ReduceLROnPlateau$")
PREPARED = "accelerate.prepare"
_ENGINE = "deepspeed.initialize"
_DEPTH = 3


class Schedule(enum.Enum):
    """The facts about an object that is stepped like a scheduler."""

    TORCH = "torch"
    NAMED = "named"
    PREPARED = "prepared"
    OTHER = "other"


def last_name(node: nodes.NodeNG | None) -> str:
    """The last part of a dotted name, through subscripts; empty for other expressions."""
    while node.__class__ is nodes.Subscript:
        node = node.value  # type: ignore[union-attr]  # only a node is of that class
    return plain_name(node)


def is_optimizer(node: nodes.NodeNG) -> bool:
    """Whether an expression is an optimizer of torch's kind: by its construction in the file, else by its name."""
    made = origins(node)
    if any(name.startswith("torch.optim.") and ".lr_scheduler" not in name for name in made):
        return True
    if any(name == _ENGINE or _is_foreign_class(node, name) for name in made):
        return False
    name = _telling_name(node)
    return OPTIMIZER.search(name) is not None and NO_OPTIMIZER.search(name) is None


def _telling_name(node: nodes.NodeNG) -> str:
    """The last part of a name; for a loop variable that of the iterable, such as ``schedulers``."""
    name = last_name(node)
    around = set(node.node_ancestors())
    for target in bindings(node) if isinstance(node, nodes.Name) else ():
        loop, position = target.parent, None
        if isinstance(loop, nodes.Tuple) and isinstance(loop.parent, (nodes.For, nodes.Comprehension)):
            position, loop = loop.elts.index(target), loop.parent
        if isinstance(loop, nodes.Comprehension) or (isinstance(loop, nodes.For) and loop in around):
            return _iterated_name(loop.iter, position) or name
    return name


def _iterated_name(iterable: nodes.NodeNG, position: int | None) -> str:
    if not isinstance(iterable, nodes.Call):
        return last_name(iterable)
    called = last_name(iterable.func)
    if called in ("values", "items") and isinstance(iterable.func, nodes.Attribute):
        return last_name(iterable.func.expr)
    if called == "zip" and position is not None and position < len(iterable.args):
        return last_name(iterable.args[position])
    return last_name(iterable.args[0]) if called == "enumerate" and iterable.args else ""


def _is_foreign_class(node: nodes.NodeNG, name: str) -> bool:
    """A class of the file without a torch base: a wrapper whose ``step`` may do anything."""
    owner = local_class(node.root(), name)
    return owner is not None and not any("Optimizer" in last_name(base) or "Adam" in last_name(base) for base in owner.bases)


def schedule_of(node: nodes.NodeNG) -> Schedule:
    """Whether an expression schedules a learning rate the way torch's classes do."""
    made = origins(node)
    if made & {PREPARED, _ENGINE}:
        return Schedule.PREPARED
    known = {_kind(node, name) for name in made if name != UNKNOWN}
    if Schedule.TORCH in known:
        return Schedule.TORCH
    name = _telling_name(node)
    named = SCHEDULE.search(name) is not None and NO_SCHEDULE.search(name) is None
    return Schedule.NAMED if named and Schedule.OTHER not in known else Schedule.OTHER


def _kind(node: nodes.NodeNG, name: str) -> Schedule:
    if name.startswith(_PLATEAU):
        return Schedule.OTHER
    if _TORCH_SCHEDULERS.search(name):
        return Schedule.TORCH
    owner = local_class(node.root(), name)
    if owner is not None:
        bases = [last_name(base) for base in owner.bases]
        if any(map(_BASE.search, bases)):
            return Schedule.TORCH
        return Schedule.NAMED if any(base not in ("object", "") for base in bases) else Schedule.OTHER
    return Schedule.OTHER if name.startswith(("timm.", "torch.", "fairseq.")) else Schedule.NAMED


def local_class(module: nodes.NodeNG, name: str) -> nodes.ClassDef | None:
    """The class of the file with a qualified name such as ``.Trainer``."""
    found = module.locals.get(name[1:], ()) if name.startswith(".") and isinstance(module, nodes.Module) else ()
    return next((one for one in found if isinstance(one, nodes.ClassDef)), None)


def origins(node: nodes.NodeNG, depth: int = 0) -> frozenset[str]:
    """The qualified names of the calls behind an expression, as far as the file shows; else UNKNOWN."""
    found = frozenset().union(*(_made_by(value, depth) for value in values_of(node)))
    return found or frozenset({UNKNOWN})


def _made_by(value: nodes.NodeNG | None, depth: int) -> frozenset[str]:
    if depth > _DEPTH or value is None:
        return frozenset({UNKNOWN})
    if isinstance(value, (nodes.List, nodes.Tuple)):
        return frozenset().union(*(_made_by(one, depth + 1) for one in value.elts)) or frozenset({UNKNOWN})
    if isinstance(value, (nodes.ListComp, nodes.GeneratorExp)):
        return _made_by(value.elt, depth + 1)
    if isinstance(value, nodes.IfExp):
        return _made_by(value.body, depth + 1) | _made_by(value.orelse, depth + 1)
    if isinstance(value, nodes.Const):
        return frozenset()
    if isinstance(value, (nodes.Name, nodes.Attribute, nodes.Subscript)):
        return origins(value, depth + 1)
    if not isinstance(value, nodes.Call):
        return frozenset({UNKNOWN})
    if last_name(value.func) == "prepare":
        return frozenset({PREPARED})
    return frozenset().union(*(_returned(value.root(), name, depth) for name in qualified(value.func)))


def _returned(module: nodes.NodeNG, name: str, depth: int) -> frozenset[str]:
    """The name itself, or the result of the file's function with that name."""
    found = module.locals.get(name[1:], ()) if name.startswith(".") and isinstance(module, nodes.Module) else ()
    function = next((one for one in found if isinstance(one, nodes.FunctionDef)), None)
    if function is None:
        # Of an unknown object's attribute only the name is known.
        return frozenset({UNKNOWN if name.startswith(UNKNOWN) and not name.endswith(".lr_schedulers") else name})
    made = [_made_by(one.value, depth + 1) for one in nodes_of(function, nodes.Return) if one.value is not None]
    return frozenset().union(*made) or frozenset({UNKNOWN})


def values_of(node: nodes.NodeNG) -> Iterator[nodes.NodeNG | None]:
    """The values that the file assigns to a variable, or to an attribute of that name; None if unknown."""
    while isinstance(node, nodes.Subscript):
        node = node.value
    if isinstance(node, nodes.Name):
        targets: list[nodes.NodeNG] = bindings(node)
    elif isinstance(node, nodes.Attribute):
        module = node.root()
        targets = [one for one in _attributes(module) if one.attrname == node.attrname]
    else:
        targets = []
    for target in targets:
        yield _assigned(target)


def _attributes(module: nodes.NodeNG) -> list[nodes.AssignAttr]:
    known: list[nodes.AssignAttr] | None = module.__dict__.get("_ldlm_attributes")
    if known is None:
        known = list(nodes_of(module, nodes.AssignAttr))
        module.__dict__["_ldlm_attributes"] = known
    return known


def _assigned(target: nodes.NodeNG) -> nodes.NodeNG | None:
    parent = target.parent
    if isinstance(parent, (nodes.Assign, nodes.AnnAssign)):
        return parent.value
    if isinstance(parent, (nodes.For, nodes.Comprehension)) and parent.target is target:
        return parent.iter
    if isinstance(parent, nodes.Tuple) and isinstance(parent.parent, nodes.Assign):
        value = parent.parent.value
        if isinstance(value, (nodes.Tuple, nodes.List)) and len(value.elts) == len(parent.elts):
            return value.elts[parent.elts.index(target)]
        engine = isinstance(value, nodes.Call) and (last_name(value.func) == "prepare" or qualified(value.func) == {_ENGINE})
        return value if engine else None
    return None
