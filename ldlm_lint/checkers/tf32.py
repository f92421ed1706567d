"""The two interfaces that choose the precision of float32 products, in a file."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from astroid import nodes

from ldlm_lint.checkers.version_switches import switched_by_version
from ldlm_lint.python.names import qualified
from ldlm_lint.python.walks import nodes_of

_MATMUL, _CUDNN = "matmul", "cudnn"
_NEW = {
    "torch.backends": _MATMUL,
    "torch.backends.cuda": _MATMUL,
    "torch.backends.cuda.matmul": _MATMUL,
    "torch.backends.cudnn": _CUDNN,
    "torch.backends.cudnn.conv": _CUDNN,
    "torch.backends.cudnn.rnn": _CUDNN,
}
_OLD = {"torch.backends.cuda.matmul": _MATMUL, "torch.backends.cudnn": _CUDNN}
_FUNCTIONS = {"torch.set_float32_matmul_precision", "torch.get_float32_matmul_precision"}


class Use(NamedTuple):
    """A use of an interface; ``family`` is the kind of products that it chooses for."""

    node: nodes.NodeNG
    name: str
    family: str


def new_settings(module: nodes.Module) -> Iterator[Use]:
    """The assignments to ``fp32_precision``."""
    for node in nodes_of(module, nodes.AssignAttr):
        owner = _owner(node) if node.attrname == "fp32_precision" else ""
        if owner in _NEW and not switched_by_version(node):
            yield Use(node, f"{owner}.fp32_precision", _NEW[owner])


def old_uses(module: nodes.Module) -> Iterator[Use]:
    """The places that set or read ``allow_tf32`` or the precision of float32 products by a function."""
    for node in nodes_of(module, (nodes.AssignAttr, nodes.Attribute, nodes.Call)):
        if isinstance(node, nodes.Call):
            names = qualified(node.func)
            if names <= _FUNCTIONS and not switched_by_version(node):
                yield Use(node, f"{min(names)}()", _MATMUL)
        elif node.attrname == "allow_tf32":
            owner = _owner(node)
            if owner in _OLD and not switched_by_version(node):
                yield Use(node, f"{owner}.allow_tf32", _OLD[owner])


def _owner(node: nodes.AssignAttr | nodes.Attribute) -> str:
    names = qualified(node.expr)
    return min(names) if len(names) == 1 else ""


def exclude_each_other(one: nodes.NodeNG, other: nodes.NodeNG) -> bool:
    """Whether two nodes are in different branches of one statement."""
    mine = {id(parent): child for child, parent in _line_of(one)}
    for child, parent in _line_of(other):
        if id(parent) in mine:
            branches = [getattr(parent, name, ()) for name in ("body", "orelse", "handlers")]
            found = [
                [index for index, part in enumerate(branches) if node in part] for node in (child, mine[id(parent)])
            ]
            return isinstance(parent, (nodes.If, nodes.Try)) and all(found) and found[0] != found[1]
    return False


def _line_of(node: nodes.NodeNG) -> Iterator[tuple[nodes.NodeNG, nodes.NodeNG]]:
    while node.parent is not None:
        yield node, node.parent
        node = node.parent
