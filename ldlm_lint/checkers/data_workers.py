"""What a number of loader workers may be: nothing at all, or more than the CPUs that a rank has a share of."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from astroid import nodes

from ldlm_lint.numerals import is_printable, whole
from ldlm_lint.patterns import lazily
from ldlm_lint.python.calls import Argument
from ldlm_lint.python.defaults import default_of
from ldlm_lint.python.memo import remembered
from ldlm_lint.python.names import bindings, last_name, qualified, scope_of
from ldlm_lint.python.places import function_of, scope_name
from ldlm_lint.python.scopes import enclosing
from ldlm_lint.python.values import constant
from ldlm_lint.python.walks import nodes_of
from ldlm_lint.rules.data import SHARE_CORES, fewer_workers
from ldlm_lint.wording import quoted

_DEPTH = 6
_CPU_COUNTS = {
    "os.cpu_count",
    "os.process_cpu_count",
    "multiprocessing.cpu_count",
    "torch.multiprocessing.cpu_count",
    "psutil.cpu_count",
}
_GPU_COUNTS = {"torch.cuda.device_count", "torch.accelerator.device_count"}
_ENVIRONMENT = {"os.environ.get", "os.getenv"}
# Batch systems say how many CPUs a job has: SLURM_CPUS_PER_TASK, PBS_NCPUS, LSB_DJOB_NUMPROC, NSLOTS.
_CPU_VARIABLE = lazily(r"cpus?(_|$)|cores?(_|$)|nprocs?(_|$)|numproc|nslots", re.I)
_LOOK_UPS = {"get", "getattr", "pop", "getenv"}
_CASTS = {"int", "round", "floor"}
_FEW = 4
_IN_MEMORY_BUILTINS = {"range", "list", "zip", "sorted"}
_IN_MEMORY = frozenset(
    {"torch.utils.data.TensorDataset", "torch.utils.data.dataset.TensorDataset", "torch.load", "numpy.load", "pickle.load", "joblib.load"}
)
# What a policy has just played is kept where it is, and learned from once.
_PLAYED = lazily(r"(^|_)(rollouts?|replay|trajector(y|ies)|transitions)(_|$)", re.I)
SETTING = lazily(r"^(?:.*_)?(?:n|num|n_|num_|number_of_)?(?:data_?|data_?loader_)?workers$|^(?:.*_)?workers_per_\w+$", re.I)

_COMPARED: dict[tuple[str, object], bool] = {
    (">", 0): True, ("!=", 0): True, (">=", 1): True, ("==", 0): False, ("<=", 0): False, ("<", 1): False,
}


class Amount(NamedTuple):
    """A number of workers: the expression that a user would edit, the number as a text, and whether it is the node's CPU count."""

    place: nodes.NodeNG
    text: str
    whole_node: bool = False

    def described(self, limit: int) -> dict[str, str]:
        """The number, and what to do about it, as a message says it."""
        if self.whole_node:
            return {"workers": quoted(self.text), "advice": SHARE_CORES}
        return {"workers": self.text, "advice": fewer_workers(limit)}


def _looked_up_default(node: nodes.Call) -> nodes.NodeNG | None:
    """The default of ``cfg.get(name, default)``, ``os.getenv(…)``, ``getattr(cfg, name, default)``."""
    wanted = 3 if last_name(node.func) == "getattr" else 2
    named = next((keyword.value for keyword in node.keywords if keyword.arg == "default"), None)
    return node.args[-1] if len(node.args) == wanted else named


def is_guarded(call: nodes.Call, workers: nodes.NodeNG) -> bool:
    """Whether the function of a loader tests its number of workers anywhere outside of the call."""
    text = workers.as_string()
    return any(
        not call.parent_of(test) and any(one.as_string() == text for one in nodes_of(test, type(workers)))
        for test in _tests(call.scope())
    )


def is_zero_here(call: nodes.Call, workers: nodes.NodeNG | None) -> bool:
    """Whether a loader stands in a branch that is taken without workers only: ``if n > 0: … else: DataLoader(…, num_workers=n)``."""
    if not isinstance(workers, (nodes.Name, nodes.Attribute, nodes.Subscript)):
        return False
    text, child = workers.as_string(), call
    for parent in call.node_ancestors():
        if isinstance(parent, nodes.If) and child is not parent.test:
            chosen = _says_workers(parent.test, text)
            if chosen is not None and chosen is not (child in parent.body):
                return True
        child = parent
    return False


def _says_workers(test: nodes.NodeNG, text: str) -> bool | None:
    """True for a test that there are workers, False for one that there are none, None for any other."""
    if isinstance(test, nodes.UnaryOp) and test.op == "not":
        inner = _says_workers(test.operand, text)
        return None if inner is None else not inner
    if test.as_string() == text:
        return True
    if isinstance(test, nodes.Compare) and len(test.ops) == 1 and test.left.as_string() == text:
        operator, right = test.ops[0]
        return _COMPARED.get((operator, constant(right)))
    return None


def _tests(scope: nodes.NodeNG) -> Iterator[nodes.NodeNG]:
    for node in nodes_of(scope, (nodes.If, nodes.IfExp, nodes.While, nodes.Assert, nodes.Compare, nodes.BoolOp)):
        yield node if isinstance(node, (nodes.Compare, nodes.BoolOp)) else node.test


# By an operator and whether its test holds: how far what stands left of it is above its right side at most.
_AT_MOST: Mapping[tuple[str, bool], int] = {("<", True): -1, ("<=", True): 0, ("==", True): 0, (">", False): 0, (">=", False): -1, ("!=", False): 0}
_Known = dict[tuple[int, int, int], Amount | None]
"""What is known of names: by the first value that is bound to one, how many are, and how deeply it was asked for."""


def too_many(node: nodes.NodeNG, limit: int, depth: int = 0, known: _Known | None = None) -> Amount | None:
    """The number of workers where it is at least the limit, by literal or evident default, or the CPU count of the node."""
    if depth > _DEPTH:
        return None
    known = {} if known is None else known
    if isinstance(node, nodes.Const):
        return _of_number(node, node, limit)
    if isinstance(node, nodes.Name):
        return _of_name(node, limit, depth, known)
    if isinstance(node, nodes.IfExp):
        arms = [arm for arm, truth in ((node.body, True), (node.orelse, False)) if not _is_bounded(arm, node.test, truth, limit)]
        return _any(arms, limit, depth, known)
    if isinstance(node, nodes.BoolOp) and node.op == "or":
        return _any(node.values, limit, depth, known)
    if isinstance(node, nodes.BinOp):
        return _of_operation(node, limit, depth, known)
    return _of_call(node, limit, depth, known) if isinstance(node, nodes.Call) else None


def may_exceed(workers: Argument, most: int) -> bool:
    """Whether a number of workers may be larger than ``most``, by what its file says: a literal, a default, what the machine has."""
    if any(type(value) is int and value > most for value in workers.values):
        return True
    if workers.node is None or _may_reach(workers.node, most + 1, 0, {}):
        return workers.node is not None
    found = default_of(workers.node)
    bound = found is not None and any(type(value) is int and value > most for value in found.values)
    return bound or (found is not None and _may_reach(found.node, most + 1, 0, {}))


def _may_reach(node: nodes.NodeNG, limit: int, depth: int, known: dict[int, bool]) -> bool:
    """Whether a number may be at least the limit: it is too many, or is computed from what the machine or its batch system gives."""
    if depth > _DEPTH:
        return False
    if too_many(node, limit) is not None or _is_of_machine(node):
        return True
    if isinstance(node, nodes.Name):
        values = remembered(enclosing(node), ("bound values", node.name), lambda: _values_of(node))
        if values and id(values[0]) not in known:
            known[id(values[0])] = False
            known[id(values[0])] = any(_may_reach(one, limit, depth + 1, known) for one in values)
        return bool(values) and known[id(values[0])]
    parts = _parts(node, limit)
    smallest = isinstance(node, nodes.Call) and last_name(node.func) == "min"
    return bool(parts) and (all if smallest else any)(_may_reach(one, limit, depth + 1, known) for one in parts)


def _parts(node: nodes.NodeNG, limit: int) -> list[nodes.NodeNG]:
    """The numbers that a number grows with."""
    if isinstance(node, nodes.IfExp):
        return [arm for arm, truth in ((node.body, True), (node.orelse, False)) if not _is_bounded(arm, node.test, truth, limit)]
    if isinstance(node, nodes.BoolOp):
        return list(node.values) if node.op == "or" else []
    if isinstance(node, nodes.BinOp):
        return [node.left, node.right] if node.op in ("+", "*") else [node.left] if node.op in ("-", "/", "//") else []
    return list(node.args) if isinstance(node, nodes.Call) and last_name(node.func) in {*_CASTS, "min", "max"} else []


def _is_of_machine(node: nodes.NodeNG) -> bool:
    """Whether an expression is a count of CPUs or GPUs, or an environment variable that has no default or counts CPUs."""
    if isinstance(node, nodes.Subscript):
        return qualified(node.value) == {"os.environ"}
    if not isinstance(node, nodes.Call):
        return False
    names = qualified(node.func)
    if (names and names <= _CPU_COUNTS | _GPU_COUNTS) or _counts_affinity(node):
        return True
    if not names or not names <= _ENVIRONMENT or not node.args:
        return False
    variable = constant(node.args[0])
    return _looked_up_default(node) is None or (isinstance(variable, str) and bool(_CPU_VARIABLE.search(variable)))


def source_of(workers: nodes.NodeNG | None) -> tuple[str, str]:
    """Where others may give a number of workers: the function and its parameter, or the names of settings (commas between them)."""
    if workers is None:
        return "", ""
    read = [workers, *nodes_of(workers, (nodes.Name, nodes.Attribute, nodes.Subscript))]
    names = [one.attrname if isinstance(one, nodes.Attribute) else constant(one.slice) for one in read if isinstance(one, (nodes.Attribute, nodes.Subscript))]
    parameters = [one for one in read if isinstance(one, nodes.Name) and any(isinstance(bound.parent, nodes.Arguments) for bound in bindings(one))]
    settings = [name for name in names if isinstance(name, str) and SETTING.match(name)]
    function = function_of(parameters[0]) if parameters and not settings else None
    scope = scope_name(function) if isinstance(function, nodes.FunctionDef) else ""
    return scope, ",".join(dict.fromkeys(settings or [one.name for one in parameters[:1]]))


def _is_bounded(arm: nodes.NodeNG, test: nodes.NodeNG, truth: bool, limit: int) -> bool:
    """Whether a condition keeps a number below the limit: ``5 if os.cpu_count() > 4 else os.cpu_count()``."""
    if not isinstance(test, nodes.Compare) or len(test.ops) != 1 or test.left.as_string() != arm.as_string():
        return False
    operator, right = test.ops[0]
    value = constant(right)
    most = _AT_MOST.get((operator, truth))
    return isinstance(value, (int, float)) and most is not None and value + most < limit


def _of_name(node: nodes.Name, limit: int, depth: int, known: _Known) -> Amount | None:
    # A name may be bound thousands of times, each time to another one that is.
    values = remembered(enclosing(node), ("bound values", node.name), lambda: _values_of(node))
    if not values:
        return None
    key = (id(values[0]), len(values), depth)
    if key not in known:
        known[key] = _any(values, limit, depth, known)
    return known[key]


def _of_number(node: nodes.NodeNG, place: nodes.NodeNG, limit: int) -> Amount | None:
    value = node.value if isinstance(node, nodes.Const) else None
    if isinstance(value, str) and value.isdecimal():
        value = whole(value)
    return Amount(place, str(value)) if type(value) is int and is_printable(value) and value >= limit else None


def _any(parts: list[nodes.NodeNG], limit: int, depth: int, known: _Known) -> Amount | None:
    return next((amount for part in parts if (amount := too_many(part, limit, depth + 1, known))), None)


def _values_of(node: nodes.Name) -> list[nodes.NodeNG]:
    statements = [one.parent for one in bindings(node) if isinstance(one.parent, (nodes.Assign, nodes.AnnAssign))]
    since = max((one.lineno for one in statements if _always_binds(one, node)), default=0)
    return [one.value for one in statements if one.value is not None and one.lineno >= since]


def _always_binds(statement: nodes.NodeNG, use: nodes.Name) -> bool:
    """Whether a use in the same function comes behind a statement that always runs before: what was bound earlier is gone."""
    return statement.parent is use.frame() and statement.end_lineno < use.lineno


def _of_operation(node: nodes.BinOp, limit: int, depth: int, known: _Known) -> Amount | None:
    """The CPU count less a few, or halved: still many times what a rank's share is."""
    by = constant(node.right)
    small = isinstance(by, (int, float)) and (node.op == "-" or (node.op in ("//", "/") and by < _FEW))
    amount = too_many(node.left, limit, depth + 1, known) if small else None
    return Amount(node, node.as_string(), True) if amount is not None and amount.whole_node else None


def _of_call(node: nodes.Call, limit: int, depth: int, known: _Known) -> Amount | None:
    name = last_name(node.func)
    if qualified(node.func) <= _CPU_COUNTS or _counts_affinity(node):
        return Amount(node, node.as_string(), True)
    if name in _LOOK_UPS:
        default = _looked_up_default(node)
        return _of_number(default, node, limit) if default is not None else None
    if name in _CASTS and len(node.args) == 1:
        inner = too_many(node.args[0], limit, depth + 1, known)
        return Amount(node, node.as_string(), True) if inner is not None and inner.whole_node else inner
    if name == "max":
        return _any(node.args, limit, depth, known)
    if name == "min":
        # The smallest decides, so all of them have to be too many; a number says more than the CPU count does.
        amounts = [too_many(one, limit, depth + 1, known) for one in node.args]
        found = [one for one in amounts if one is not None]
        return min(found, key=lambda one: one.whole_node) if amounts and len(found) == len(amounts) else None
    return None


def _counts_affinity(node: nodes.Call) -> bool:
    return (
        isinstance(node.func, nodes.Name)
        and node.func.name == "len"
        and scope_of(node.func) is None
        and len(node.args) == 1
        and isinstance(node.args[0], nodes.Call)
        and qualified(node.args[0].func) == {"os.sched_getaffinity"}
    )


def is_in_memory(node: nodes.NodeNG | None) -> bool:
    """A dataset that the file itself shows to be a list, a range or tensors in memory: nothing is left to do per item."""
    if _PLAYED.search(last_name(node)):
        return True
    if isinstance(node, nodes.Name):
        bound = [one.parent for one in bindings(node)]
        values = [one.value for one in bound if isinstance(one, (nodes.Assign, nodes.AnnAssign)) and one.value is not None]
        return bool(values) and len(values) == len(bound) and all(not isinstance(one, nodes.Name) and is_in_memory(one) for one in values)
    if isinstance(node, nodes.Call):
        builtin = isinstance(node.func, nodes.Name) and node.func.name in _IN_MEMORY_BUILTINS and scope_of(node.func) is None
        return builtin or qualified(node.func) <= _IN_MEMORY
    return isinstance(node, (nodes.List, nodes.Tuple, nodes.ListComp, nodes.Dict))
