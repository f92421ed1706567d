"""Which values of a file may live on the device: `ldlm_lint.checkers.host_time_values`, read generously.

Order is not looked at: what a name holds anywhere in its function, or in one around it, it may hold everywhere there.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cached_property

from ldlm_lint.patterns import lazily
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
from ldlm_lint.shapes.outline import Outline, dotted, last_name
from ldlm_lint.shapes.owners import FUNCTIONS, Owner
from ldlm_lint.shapes.walks import nodes_below

_TENSOR = lazily(r"Tensor|^(Float|Int|Bool|Shaped)$")
_BACKWARD = frozenset({"backward", "manual_backward"})
_WRAPS = (ast.Starred, ast.Await, ast.NamedExpr, ast.DictComp)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.GeneratorExp)
_BINDS = (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.NamedExpr, ast.For, ast.AsyncFor, ast.comprehension)
_FAR = (b"global ", b"nonlocal ")


_Name = tuple[Owner | None, str]
"""A name in a function; without one the functions of the name."""


class _Search:
    """Expressions that are still to be looked at, with their functions, and the names that need not be any more."""

    __slots__ = ("seen", "waiting")

    def __init__(self, node: ast.AST | None, owner: Owner) -> None:
        self.waiting: list[tuple[ast.AST | None, Owner]] = [(node, owner)]
        self.seen: set[_Name] = set()


class Homes:
    """Answers for the expressions of one file.

    A value may live on the device where one of those it is made of does: what is asked is whether a chain of names leads
    from an expression to a source. Only what a question comes to is looked at, and what led nowhere is remembered.
    """

    def __init__(self, outline: Outline) -> None:
        self._outline = outline
        self._parents = {inner: owner for owner in outline.owners for inner in owner.inner}
        self._torch = standing_for(outline, ("torch",))
        self._one_scope = any(word in outline.data for word in _FAR)
        self._held: dict[Owner, dict[str, list[ast.expr]]] = {}
        self._tensors: dict[Owner, frozenset[str]] = {}
        self._on_host: set[_Name] = set()
        self.trained = frozenset(_trained(outline))

    def may_be_device(self, node: ast.AST | None, owner: Owner) -> bool:
        """Whether the value of an expression in a function may live on the device."""
        search = _Search(node, owner)
        while search.waiting:
            one, where = search.waiting.pop()
            if one is not None and self._is_source(one, where, search):
                return True
        self._on_host |= search.seen
        return False

    def _is_source(self, node: ast.AST, owner: Owner, search: _Search) -> bool:
        """Whether an expression is on the device whatever it is made of; else that is what the search has to go to."""
        if isinstance(node, ast.Name):
            return self._name(node.id, owner, search)
        if isinstance(node, ast.Attribute):
            return self._attribute(node, owner, search)
        if isinstance(node, ast.Call):
            return self._call(node, owner, search)
        search.waiting += [(one, owner) for one in ([node.value] if isinstance(node, ast.Subscript) else _parts(node))]
        return False

    def _name(self, name: str, owner: Owner, search: _Search) -> bool:
        if name in self.trained:
            return True
        for one in self._outline.owners if self._one_scope else self._around(owner):
            if self._is_new((one, name), search):
                if name in self._tensors_of(one):
                    return True
                search.waiting += [(value, one) for value in self._given(one).get(name, ())]
        return False

    def _is_new(self, name: _Name, search: _Search) -> bool:
        """Whether a search has not come to a name yet, and no earlier one in vain."""
        if name in self._on_host or name in search.seen:
            return False
        search.seen.add(name)
        return True

    def _tensors_of(self, owner: Owner) -> frozenset[str]:
        if owner not in self._tensors:
            self._tensors[owner] = frozenset(_tensor_parameters(owner))
        return self._tensors[owner]

    def _given(self, owner: Owner) -> dict[str, list[ast.expr]]:
        """What a function gives to each name that it binds."""
        if owner not in self._held:
            found = self._held[owner] = {}
            for name, value in _given(self._outline, owner):
                found.setdefault(name, []).append(value)
        return self._held[owner]

    def _around(self, owner: Owner) -> Iterator[Owner]:
        one: Owner | None = owner
        while one is not None:
            yield one
            one = self._parents.get(one)

    def _attribute(self, node: ast.Attribute, owner: Owner, search: _Search) -> bool:
        if node.attr in HOST_ATTRIBUTES:
            return False
        if self.trained and dotted(node) in self.trained:
            return True
        if node.attr in PARTS:
            search.waiting.append((node.value, owner))
        # ``x.data.cpu().numpy()`` shows a tensor by itself.
        return node.attr in ("grad", "data") or OUTPUTS.search(node.attr) is not None

    def _call(self, node: ast.Call, owner: Owner, search: _Search) -> bool:
        name, function = last_name(node.func), node.func
        self._follow(name, search)
        if "clip_grad_norm" in name or names_loss_call(name):
            return True
        if node.args and GATHERS.search(name):
            search.waiting.append((node.args[0], owner))
        if isinstance(function, ast.Name):
            # A number, but where the name is one of torch's functions here.
            if name in NUMBERS and not (name in self._torch and self._outline.binds(name)):
                return False
            if name in JOINS:
                search.waiting += [(one, owner) for one in node.args]
            return self._of_torch(node, name)
        if isinstance(function, ast.Attribute):
            return self._of_torch(node, name) or self._method(node, function, owner, search)
        # ``nn.MSELoss()(a, b)``
        return isinstance(function, ast.Call)

    def _follow(self, name: str, search: _Search) -> None:
        """Go on to what the functions of a name return."""
        if name in self._returned and self._is_new((None, name), search):
            search.waiting += self._returned[name]

    @cached_property
    def _returned(self) -> dict[str, list[tuple[ast.AST, Owner]]]:
        found: dict[str, list[tuple[ast.AST, Owner]]] = {}
        for owner in self._outline.owners:
            for one in self._outline.places.statements(owner):
                if isinstance(one, ast.Return) and one.value is not None:
                    found.setdefault(owner.name, []).append((one.value, owner))
        return found

    def _of_torch(self, node: ast.Call, name: str) -> bool:
        """A function of torch, by what its first name may mean here, that gives back a tensor on the device."""
        path = dotted(node.func)
        root = path.partition(".")[0]
        if not root or root not in self._torch:
            return False
        meanings = self._outline.imported.get(root, ())
        full = path.replace(root, meanings[0], 1) if len(meanings) == 1 else ""
        if TORCH_HOST.search(full):
            return False
        placed = any(one.arg in (None, "device") for one in node.keywords)
        return placed or name not in CREATES or name == "as_tensor"

    def _method(self, node: ast.Call, function: ast.Attribute, owner: Owner, search: _Search) -> bool:
        name = function.attr
        if name in HOST_METHODS or self._is_host_module(function):
            return False
        if name in ("to", "cuda", "npu", "xpu"):
            if _goes_to_host(node):
                return False
            search.waiting.append((function.value, owner))
            return _names_device(node)
        if name in TAKES_APART:
            search.waiting += [(one, owner) for one in node.args[1:]]
        search.waiting.append((function.value, owner))
        return name in OF_TENSORS

    def _is_host_module(self, function: ast.Attribute) -> bool:
        root = dotted(function).partition(".")[0]
        meanings = self._outline.imported.get(root, ())
        known = bool(meanings) and all(one.partition(".")[0] in HOST_MODULES for one in meanings)
        return known and not self._outline.binds(root)


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
    targets: list[ast.expr]
    value: ast.expr | None
    for one in outline.own(owner, *_BINDS):
        if isinstance(one, ast.Assign):
            targets, value = one.targets, one.value
        elif isinstance(one, (ast.AnnAssign, ast.AugAssign, ast.NamedExpr)):
            targets, value = [one.target], one.value
        else:
            targets, value = [one.target], _elements(one.iter)
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
    for _, nodes in outline.places.near(_BACKWARD):
        for call in nodes:
            if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr in _BACKWARD:
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
