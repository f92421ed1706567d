"""Where the values of a training step live: on the host for certain, on the device for certain, or unknown."""

from __future__ import annotations

import enum
import itertools
from collections.abc import Iterable

from astroid import nodes
from astroid.exceptions import NoDefault

from ldlm_lint.checkers.host_time_calls import is_loss_call, moved_roots, moves_to
from ldlm_lint.checkers.host_time_names import is_result, of_another_loop, reaching, returns, trained
from ldlm_lint.patterns import lazily
from ldlm_lint.python.host_names import (
    CREATES,
    GATHERS,
    HOST_ATTRIBUTES,
    HOST_METHODS,
    HOST_MODULES,
    JOINS,
    NUMBERS,
    OF_TENSORS,
    OUTPUTS,
    PARTS,
    TAKES_APART,
    TOKENIZER_OPTIONS,
    TORCH_HOST,
)
from ldlm_lint.python.memo import remembered
from ldlm_lint.python.names import bindings, last_name, qualified, scope_of
from ldlm_lint.python.places import function_of
from ldlm_lint.python.values import constant

_DEPTH = 9
_TENSOR = lazily(
    r"^['\"]?((typing\.)?Optional\[)?(torch\.)?\w*Tensor\]?( \| None)?['\"]?$|^(\w+\.)?(Float|Int|Bool|Shaped)\["
)
_NUMBER = lazily(r"^(typing\.)?(Optional\[)?(int|float|str|bool)\b")
# What draws batches for a loader, and what it draws them from, work on the host.
_OF_LOADER = lazily(r"(?:^|\.)(?:\w*_)?batch_sampler$|(?:loader|dl)\.(?:sampler|dataset)$")
# What gives back a module, whose methods need not return tensors.
_MODULES = frozenset({"torch.compile", "torch.jit.script", "torch.jit.trace"})
# Of a variable that may hold more values than this where it is used nothing is said: each is looked at for each use.
_MOST = 64


class Home(enum.Enum):
    """Where a value lives."""

    HOST = "host"
    DEVICE = "device"
    UNKNOWN = "unknown"


HOST, DEVICE, UNKNOWN = Home.HOST, Home.DEVICE, Home.UNKNOWN


def join(homes: Iterable[Home]) -> Home:
    """The home of a value that comes from one of several: the device as soon as one does."""
    seen = set(homes)
    if DEVICE in seen:
        return DEVICE
    return HOST if seen == {HOST} else UNKNOWN


def _never_on_device(node: nodes.NodeNG) -> bool:
    """A text, ``None`` or a list: comparisons with it are left to Python, which asks first whether both are the same object."""
    if isinstance(node, (nodes.List, nodes.ListComp, nodes.Tuple, nodes.Dict)):
        return True
    return isinstance(constant(node), str) or (isinstance(node, nodes.Const) and node.value is None)


class Homes:
    """Answers for the expressions of one file; a tree is looked at only where it is asked for."""

    def __init__(self) -> None:
        self._known: dict[nodes.NodeNG, Home] = {}
        self._trained: dict[nodes.NodeNG, set[str]] = {}
        self._moved: dict[nodes.NodeNG, set[str]] = {}

    def of(self, node: nodes.NodeNG | None, depth: int = 0) -> Home:
        """Where the value of an expression lives."""
        if node is None or depth > _DEPTH:
            return UNKNOWN
        known = self._known.get(node)
        if known is None:
            self._known[node] = UNKNOWN
            known = self._known[node] = self._find(node, depth + 1)
        return known

    def _find(self, node: nodes.NodeNG, depth: int) -> Home:
        if isinstance(node, (nodes.Const, nodes.JoinedStr, nodes.Lambda)):
            return HOST
        if isinstance(node, nodes.Name):
            return self._of_name(node, depth)
        if isinstance(node, nodes.Attribute):
            return self._of_attribute(node, depth)
        if isinstance(node, nodes.Call):
            return self._of_call(node, depth)
        if isinstance(node, nodes.Subscript):
            return self._of_element(node, depth)
        return self._of_compound(node, depth)

    def _of_compound(self, node: nodes.NodeNG, depth: int) -> Home:
        if isinstance(node, nodes.BinOp):
            text = node.op == "%" and isinstance(constant(node.left), str)
            return HOST if text else join([self.of(node.left, depth), self.of(node.right, depth)])
        if isinstance(node, nodes.UnaryOp):
            return HOST if node.op == "not" else self.of(node.operand, depth)
        if isinstance(node, nodes.Compare):
            sides = [node.left, *(one for _, one in node.ops)]
            if node.ops[0][0] in ("is", "is not", "in", "not in") or any(_never_on_device(one) for one in sides):
                return HOST
            return join(self.of(one, depth) for one in sides)
        if isinstance(node, nodes.BoolOp):
            return join(self.of(one, depth) for one in node.values)
        if isinstance(node, nodes.IfExp):
            return join([self.of(node.body, depth), self.of(node.orelse, depth)])
        if isinstance(node, (nodes.Starred, nodes.Await, nodes.NamedExpr, nodes.DictComp)):
            return self.of(node.value, depth)
        if isinstance(node, (nodes.ListComp, nodes.SetComp, nodes.GeneratorExp)):
            return self.of(node.elt, depth)
        parts = _elements(node)
        homes = {self.of(one, depth) for one in parts}
        return next(iter(homes)) if len(homes) == 1 else UNKNOWN

    def _of_element(self, node: nodes.Subscript, depth: int) -> Home:
        key = constant(node.slice)
        literal = self._only_value(node.value) if isinstance(node.value, nodes.Name) else node.value
        if isinstance(literal, nodes.Dict) and isinstance(key, str):
            found = [value for name, value in literal.items if constant(name) == key]
            if found:
                return self.of(found[-1], depth)
        return self.of(node.value, depth)

    def _only_value(self, name: nodes.Name) -> nodes.NodeNG | None:
        found = list(reaching(name))
        statement = found[0].parent if len(found) == 1 else None
        return statement.value if isinstance(statement, nodes.Assign) and found[0] in statement.targets else None

    def _of_attribute(self, node: nodes.Attribute, depth: int) -> Home:
        name = node.attrname
        if name in HOST_ATTRIBUTES or all(one.partition(".")[0] in HOST_MODULES for one in qualified(node)):
            return HOST
        run_backward = self._trained_in(function_of(node))
        if run_backward and node.as_string() in run_backward:
            return DEVICE
        base = self.of(node.expr, depth)
        own = last_name(node.expr) in ("self", "cls")
        if name in PARTS and base is not HOST:
            return DEVICE if base is DEVICE or (name == "grad" and not own) else UNKNOWN
        made = isinstance(node.expr, nodes.Name) and not own
        if made and base is not HOST and OUTPUTS.search(name) and is_result(node.expr):
            return DEVICE
        return HOST if base is HOST else UNKNOWN

    def _of_name(self, node: nodes.Name, depth: int) -> Home:
        found = list(itertools.islice(reaching(node), _MOST + 1))
        if len(found) > _MOST:
            return UNKNOWN
        home = join(self._of_binding(one, node, depth) for one in found) if found else UNKNOWN
        trained_here = home is UNKNOWN and node.name in self._trained_in(function_of(node))
        return DEVICE if trained_here and not of_another_loop(found) else home

    def _of_binding(self, binding: nodes.NodeNG, use: nodes.Name, depth: int) -> Home:
        if not isinstance(binding, nodes.AssignName):
            return UNKNOWN
        target, index = binding, None
        while isinstance(target.parent, (nodes.Tuple, nodes.List, nodes.Starred)):
            index = target.parent.elts.index(target) if not isinstance(target.parent, nodes.Starred) else None
            target = target.parent
        owner = target.parent
        if isinstance(owner, nodes.Arguments):
            if self._is_rebound(use):
                return HOST
            return remembered(binding, ("home",), lambda: _of_parameter(owner, binding))
        if isinstance(owner, (nodes.For, nodes.Comprehension)):
            return self._of_loop(owner, binding, index, depth)
        value = getattr(owner, "value", None)
        if isinstance(owner, (nodes.Assign, nodes.AnnAssign, nodes.NamedExpr)) and value is not None:
            if self._is_moved_later(value, binding):
                return HOST
            return self.of(value, depth) if index is None else self._of_part(value, index, depth)
        if isinstance(owner, nodes.AugAssign):
            return self.of(value, depth)
        return UNKNOWN

    def _of_part(self, value: nodes.NodeNG, index: int, depth: int) -> Home:
        """One element of what is taken apart; of the results of a loss function the first is a tensor for certain."""
        if isinstance(value, (nodes.Tuple, nodes.List)):
            return self.of(value.elts[index], depth) if index < len(value.elts) else UNKNOWN
        if isinstance(value, nodes.Call) and self._local(value) is not None:
            parts = [one.value for one in returns(self._local(value))]
            if parts and all(isinstance(one, (nodes.Tuple, nodes.List)) and index < len(one.elts) for one in parts):
                return join(self.of(one.elts[index], depth) for one in parts)
            return UNKNOWN
        home = self.of(value, depth)
        certain = isinstance(value, nodes.Call) and all(one.startswith("torch.") for one in qualified(value.func))
        return home if home is HOST or certain or index == 0 else UNKNOWN

    def _of_loop(self, loop: nodes.NodeNG, binding: nodes.AssignName, index: int | None, depth: int) -> Home:
        iterable = loop.iter
        name = last_name(iterable.func) if isinstance(iterable, nodes.Call) else ""
        if name in ("range", "trange", "keys") or (index == 0 and name in ("enumerate", "items", "named_parameters")):
            return HOST
        if name in ("parameters", "named_parameters"):
            return DEVICE
        if binding.name in self._moved_in(loop):
            return HOST
        if name == "zip" and index is not None and index < len(iterable.args):
            return self.of(iterable.args[index], depth)
        if isinstance(iterable, nodes.Call) and name in ("enumerate", "tqdm", "zip") and iterable.args:
            return self.of(iterable.args[0], depth)
        return HOST if self._is_dictionary(iterable) else self.of(iterable, depth)

    def _is_dictionary(self, node: nodes.NodeNG) -> bool:
        """A loop over a dictionary goes through its keys, and no tensor serves as one."""
        value = self._only_value(node) if isinstance(node, nodes.Name) else node
        made = isinstance(value, nodes.Call) and isinstance(value.func, nodes.Name) and value.func.name == "dict"
        return isinstance(value, (nodes.Dict, nodes.DictComp)) or made

    def _is_moved_later(self, value: nodes.NodeNG, binding: nodes.AssignName) -> bool:
        """``batch = next(batches)`` and a move to the device behind it: it came from the host."""
        taken = isinstance(value, nodes.Call) and last_name(value.func) in ("next", "get_batch", "__next__")
        return taken and binding.name in self._moved_in(function_of(binding))

    def _is_rebound(self, use: nodes.Name) -> bool:
        """``batch = to_device(batch)`` behind the use of a parameter: until then it lies on the host."""
        function = function_of(use)
        return use.name in self._moved_in(function) and any(
            isinstance(one.parent, nodes.Assign) and one.lineno > use.lineno and use.name in moved_roots(one.parent)
            for one in bindings(use)
        )

    def _of_call(self, node: nodes.Call, depth: int) -> Home:
        names = qualified(node.func)
        name = last_name(node.func)
        if isinstance(node.func, nodes.Name) and scope_of(node.func) is None:
            if name in NUMBERS:
                return HOST
            return join(self.of(one, depth) for one in node.args) if name in JOINS and node.args else UNKNOWN
        if all(one.startswith("torch.") for one in names):
            return self._of_torch(node, name, names, depth)
        if all(one.partition(".")[0] in HOST_MODULES for one in names):
            return HOST
        if (local := self._local(node)) is not None:
            return join(self.of(one.value, depth) for one in returns(local))
        if any(one.arg in TOKENIZER_OPTIONS for one in node.keywords):
            return HOST
        if isinstance(node.func, nodes.Call):
            return DEVICE if all(one.startswith("torch.nn.") for one in qualified(node.func.func)) else UNKNOWN
        if "clip_grad_norm" in name:
            return DEVICE
        if isinstance(node.func, nodes.Attribute):
            home = HOST if _OF_LOADER.search(node.func.expr.as_string()) else self._of_method(node, name, depth)
            if home is not UNKNOWN:
                return home
        if GATHERS.search(name) and node.args:
            return self.of(node.args[0], depth)
        return DEVICE if is_loss_call(node) else UNKNOWN

    def _of_torch(self, node: nodes.Call, name: str, names: frozenset[str], depth: int) -> Home:
        if any(TORCH_HOST.search(one) for one in names):
            return HOST
        if names <= _MODULES:
            return UNKNOWN
        if "." in next(iter(names)).removeprefix("torch.nn.") and name[:1].isupper() and name not in CREATES:
            return UNKNOWN
        homes = [self.of(one, depth) for one in node.args]
        if name in CREATES:
            device = next((one.value for one in node.keywords if one.arg == "device"), None)
            if device is None:
                return DEVICE if name == "as_tensor" and DEVICE in homes else HOST
            return HOST if constant(device) == "cpu" else DEVICE
        tensors = [home for one, home in zip(node.args, homes, strict=True) if not isinstance(one, nodes.Const)]
        return HOST if tensors and tensors[0] is HOST and DEVICE not in homes else DEVICE

    def _of_method(self, node: nodes.Call, name: str, depth: int) -> Home:
        if name in HOST_METHODS:
            return HOST
        if name in ("to", "cuda", "npu", "xpu"):
            moved = {"cpu": HOST, "device": DEVICE}.get(moves_to(node))
            return moved or self.of(node.func.expr, depth)
        base = self.of(node.func.expr, depth)
        if name in TAKES_APART:
            return join([base, *(self.of(one, depth) for one in node.args[1:])]) if base is not UNKNOWN else UNKNOWN
        return DEVICE if base is UNKNOWN and name in OF_TENSORS else base

    def _local(self, call: nodes.Call) -> nodes.FunctionDef | None:
        """The function of this file that a call goes to by its name, or as a method of its own class."""
        if isinstance(call.func, nodes.Name):
            found = bindings(call.func)
            return found[0] if len(found) == 1 and isinstance(found[0], nodes.FunctionDef) else None
        if not isinstance(call.func, nodes.Attribute) or last_name(call.func.expr) != "self":
            return None
        owner = next((one for one in call.node_ancestors() if isinstance(one, nodes.ClassDef)), None)
        methods = owner.mymethods() if owner is not None else ()
        return next((one for one in methods if one.name == call.func.attrname), None)

    def trains(self, function: nodes.NodeNG) -> bool:
        """Whether a function runs a loss backward."""
        return bool(self._trained_in(function))

    def _trained_in(self, function: nodes.NodeNG) -> set[str]:
        """The names and attributes that a function runs backward."""
        if function not in self._trained:
            self._trained[function] = set(trained(function))
        return self._trained[function]

    def _moved_in(self, node: nodes.NodeNG) -> set[str]:
        if node not in self._moved:
            self._moved[node] = moved_roots(node)
        return self._moved[node]


def _elements(node: nodes.NodeNG) -> list[nodes.NodeNG]:
    if isinstance(node, nodes.Dict):
        return [value for _, value in node.items]
    return list(getattr(node, "elts", ()))


def _of_parameter(arguments: nodes.Arguments, binding: nodes.AssignName) -> Home:
    """By its annotation, or by a number as its default."""
    every = [*zip(arguments.posonlyargs or [], arguments.posonlyargs_annotations or [], strict=False)]
    every += [*zip(arguments.args or [], arguments.annotations or [], strict=False)]
    every += [*zip(arguments.kwonlyargs or [], arguments.kwonlyargs_annotations or [], strict=False)]
    text = next((note.as_string() for one, note in every if one is binding and note is not None), "")
    if _TENSOR.search(text):
        return DEVICE
    if _NUMBER.search(text):
        return HOST
    try:
        default = arguments.default_value(binding.name)
    except NoDefault:
        return UNKNOWN
    return HOST if isinstance(default, nodes.Const) and default.value is not None else UNKNOWN


__all__ = ["DEVICE", "HOST", "UNKNOWN", "Home", "Homes", "join"]
