"""Which values of a file may live on the device: `ldlm_lint.checkers.host_time_values`, read generously.

Order is not looked at: what a name holds anywhere in its function, or in one around it, it may hold everywhere there.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from ldlm_lint.python.host_names import (
    CREATES,
    GATHERS,
    HOST_ATTRIBUTES,
    HOST_METHODS,
    HOST_MODULES,
    JOINS,
    NAMES_DEVICE,
    NUMBERS,
    OF_TENSORS,
    OUTPUTS,
    PARTS,
    TAKES_APART,
    TORCH_HOST,
    names_loss_call,
)
from ldlm_lint.shapes.meaning import standing_for
from ldlm_lint.shapes.outline import FUNCTIONS, Outline, Owner, dotted, last_name
from ldlm_lint.shapes.walks import nodes_below

_TENSOR = re.compile(r"Tensor|^(Float|Int|Bool|Shaped)$")
_BACKWARD = frozenset({"backward", "manual_backward"})
_WRAPS = (ast.Starred, ast.Await, ast.NamedExpr, ast.DictComp)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.GeneratorExp)
_FAR = (b"global ", b"nonlocal ")


class Homes:
    """Answers for the expressions of one file."""

    def __init__(self, outline: Outline) -> None:
        self._outline = outline
        self._parents = {inner: owner for owner in outline.owners for inner in owner.inner}
        self._held: dict[Owner, set[str]] = {owner: set(_tensor_parameters(owner)) for owner in outline.owners}
        self._bound = frozenset(_bound_in(outline))
        self._torch = standing_for(outline, ("torch",))
        self._returning: set[str] = set()
        self.trained = frozenset(_trained(outline)) if b"backward" in outline.data else frozenset()
        self._settle()

    def _settle(self) -> None:
        """Go over what names are given, and what functions return, until nothing new is known to be on the device."""
        given = {owner: tuple(_given(self._outline, owner)) for owner in self._outline.owners}
        returned = [
            (owner, one.value)
            for owner in self._outline.owners
            for one in self._outline.own_nodes(owner)
            if isinstance(one, ast.Return) and one.value is not None
        ]
        one_scope = any(word in self._outline.data for word in _FAR)
        size = -1
        while size != (size := sum(map(len, self._held.values())) + len(self._returning)):
            for owner, pairs in given.items():
                held = self._held[owner]
                held.update(name for name, value in pairs if name not in held and self.may_be_device(value, owner))
            self._returning.update(owner.name for owner, value in returned if self.may_be_device(value, owner))
            if one_scope:
                every = set().union(*self._held.values())
                self._held = {owner: every for owner in self._held}

    def may_be_device(self, node: ast.AST | None, owner: Owner) -> bool:
        """Whether the value of an expression in a function may live on the device."""
        if isinstance(node, ast.Name):
            return node.id in self.trained or any(node.id in self._held[one] for one in self._around(owner))
        if isinstance(node, ast.Attribute):
            return self._attribute(node, owner)
        if isinstance(node, ast.Call):
            return self._call(node, owner)
        if isinstance(node, ast.Subscript):
            return self.may_be_device(node.value, owner)
        return any(self.may_be_device(one, owner) for one in _parts(node))

    def _around(self, owner: Owner) -> Iterator[Owner]:
        one: Owner | None = owner
        while one is not None:
            yield one
            one = self._parents.get(one)

    def _attribute(self, node: ast.Attribute, owner: Owner) -> bool:
        if node.attr in HOST_ATTRIBUTES:
            return False
        if self.trained and dotted(node) in self.trained:
            return True
        return node.attr == "grad" or OUTPUTS.search(node.attr) is not None or (
            node.attr in PARTS and self.may_be_device(node.value, owner)
        )

    def _call(self, node: ast.Call, owner: Owner) -> bool:
        name, function = last_name(node.func), node.func
        first = node.args[0] if node.args else None
        if name in self._returning or "clip_grad_norm" in name or names_loss_call(name):
            return True
        if GATHERS.search(name) and self.may_be_device(first, owner):
            return True
        if isinstance(function, ast.Name):
            if name in NUMBERS and name not in self._bound:
                return False
            if name in JOINS and any(self.may_be_device(one, owner) for one in node.args):
                return True
            return self._of_torch(node, name, owner)
        if isinstance(function, ast.Attribute):
            return self._of_torch(node, name, owner) or self._method(node, function, owner)
        # ``nn.MSELoss()(a, b)``
        return isinstance(function, ast.Call)

    def _of_torch(self, node: ast.Call, name: str, owner: Owner) -> bool:
        """A function of torch, by what its first name may mean here, that gives back a tensor on the device."""
        path = dotted(node.func)
        root = path.partition(".")[0]
        if not root:
            return False
        if root not in self._torch:
            return False
        meanings = self._outline.imported.get(root, ())
        full = path.replace(root, meanings[0], 1) if len(meanings) == 1 else ""
        if TORCH_HOST.search(full):
            return False
        placed = any(one.arg in (None, "device") for one in node.keywords)
        return placed or name not in CREATES or name == "as_tensor"

    def _method(self, node: ast.Call, function: ast.Attribute, owner: Owner) -> bool:
        name = function.attr
        if name in HOST_METHODS or self._is_host_module(function):
            return False
        if name in ("to", "cuda", "npu", "xpu"):
            return not _goes_to_host(node) and (_names_device(node) or self.may_be_device(function.value, owner))
        if name in TAKES_APART and any(self.may_be_device(one, owner) for one in node.args[1:]):
            return True
        return name in OF_TENSORS or self.may_be_device(function.value, owner)

    def _is_host_module(self, function: ast.Attribute) -> bool:
        root = dotted(function).partition(".")[0]
        meanings = self._outline.imported.get(root, ())
        known = bool(meanings) and all(one.partition(".")[0] in HOST_MODULES for one in meanings)
        return known and root not in self._bound


def _parts(node: ast.AST | None) -> list[ast.expr]:
    """The expressions of which one has to live on the device for a compound expression to do so."""
    if isinstance(node, ast.BinOp):
        return [node.left, node.right]
    if isinstance(node, ast.UnaryOp):
        return [] if isinstance(node.op, ast.Not) else [node.operand]
    if isinstance(node, ast.Compare):
        sides = [node.left, *node.comparators]
        identity = isinstance(node.ops[0], (ast.Is, ast.IsNot, ast.In, ast.NotIn))
        return [] if identity or any(isinstance(one, ast.Constant) and isinstance(one.value, str) for one in sides) else sides
    if isinstance(node, ast.BoolOp):
        return node.values
    if isinstance(node, ast.IfExp):
        return [node.body, node.orelse]
    if isinstance(node, _WRAPS):
        return [node.value]
    if isinstance(node, _COMPREHENSIONS):
        return [node.elt]
    return list(node.values) if isinstance(node, ast.Dict) else list(getattr(node, "elts", ()))


def _bound_in(outline: Outline) -> Iterator[str]:
    """The names that are bound anywhere in a file, but by imports."""
    yield from outline.local_classes
    for owner in outline.owners:
        yield owner.name
        for one in outline.own_nodes(owner):
            if isinstance(one, ast.Name):
                if isinstance(one.ctx, ast.Store):
                    yield one.id
            elif isinstance(one, ast.arg):
                yield one.arg


def _tensor_parameters(owner: Owner) -> Iterator[str]:
    """The parameters of a function that are annotated as tensors."""
    if isinstance(owner.node, FUNCTIONS):
        every = owner.node.args
        for one in (*every.posonlyargs, *every.args, *every.kwonlyargs):
            if one.annotation is not None and any(map(_names_tensor, nodes_below(one.annotation))):
                yield one.arg


def _names_tensor(node: ast.AST) -> bool:
    text = node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else last_name(node)
    return _TENSOR.search(text) is not None or "[" in text


def _given(outline: Outline, owner: Owner) -> Iterator[tuple[str, ast.expr]]:
    """The names that a function binds, with the expressions that they, or a part of them, come from."""
    for one in outline.own_nodes(owner):
        if isinstance(one, ast.Assign):
            targets, value = one.targets, one.value
        elif isinstance(one, (ast.AnnAssign, ast.AugAssign, ast.NamedExpr)):
            targets, value = [one.target], one.value
        elif isinstance(one, (ast.For, ast.AsyncFor, ast.comprehension)):
            targets, value = [one.target], _elements(one.iter)
        else:
            continue
        if value is not None and not isinstance(value, ast.Constant):
            for target in targets:
                yield from ((name, value) for name in _bound(target))


def _elements(iterable: ast.expr) -> ast.expr:
    """What has to live on the device for the elements of an iterable to do so; parameters of a model always do."""
    name = last_name(iterable.func) if isinstance(iterable, ast.Call) else ""
    if name in ("parameters", "named_parameters"):
        return ast.Attribute(iterable, "grad")
    if isinstance(iterable, ast.Call) and name in ("enumerate", "tqdm", "zip", "trange", "range", "items"):
        return ast.Tuple([*iterable.args, iterable]) if name not in ("range", "trange") else ast.Tuple([])
    return iterable


def _bound(target: ast.expr) -> Iterator[str]:
    if isinstance(target, ast.Name):
        yield target.id
    elif isinstance(target, ast.Starred):
        yield from _bound(target.value)
    elif isinstance(target, (ast.Tuple, ast.List)):
        for one in target.elts:
            yield from _bound(one)


def _trained(outline: Outline) -> Iterator[str]:
    """The names and attributes that stand in what the file runs backward."""
    for owner in outline.owners:
        for call in outline.calls(owner):
            if isinstance(call.func, ast.Attribute) and call.func.attr in _BACKWARD:
                for one in nodes_below(call):
                    if isinstance(one, (ast.Name, ast.Attribute)):
                        yield dotted(one)


def _goes_to_host(call: ast.Call) -> bool:
    return len(call.args) == 1 and isinstance(call.args[0], ast.Constant) and call.args[0].value == "cpu"


def _names_device(call: ast.Call) -> bool:
    """Whether a cast may be a move: something in it speaks of a device, or is text or computed."""
    if last_name(call.func) != "to":
        return True
    for argument in [*call.args, *(one.value for one in call.keywords if one.arg in (None, "device"))]:
        name = dotted(argument)
        if not name or NAMES_DEVICE.search(name):
            return True
    return False


__all__ = ["Homes"]
