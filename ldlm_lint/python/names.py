"""Qualified names by scope lookup: which function or class an expression means, without importing it.

``DL(ds)`` after ``from torch.utils.data import DataLoader as DL`` is ``torch.utils.data.DataLoader``. Every
possible origin is returned, so that both arms of ``try: … except ImportError: …`` are seen.
"""

from __future__ import annotations

from astroid import nodes
from astroid.exceptions import AstroidError

UNKNOWN = "?"
_DEPTH = 6
_CACHE = "_ldlm_qualified"
_NONLOCALS = "_ldlm_nonlocals"

# Where torch and others define a name in one module and publish it in another, the published one is used.
_PUBLISHED = {
    "torch.utils.data.dataloader.DataLoader": "torch.utils.data.DataLoader",
    "torch.utils.data.distributed.DistributedSampler": "torch.utils.data.DistributedSampler",
    "torch.nn.parallel.distributed.DistributedDataParallel": "torch.nn.parallel.DistributedDataParallel",
    "torch.distributed.distributed_c10d.init_process_group": "torch.distributed.init_process_group",
    "torch.distributed.distributed_c10d.new_group": "torch.distributed.new_group",
    "torch.optim.adam.Adam": "torch.optim.Adam",
    "torch.optim.adamw.AdamW": "torch.optim.AdamW",
    "torch.optim.sgd.SGD": "torch.optim.SGD",
    "torch.serialization.save": "torch.save",
    "accelerate.utils.dataclasses.InitProcessGroupKwargs": "accelerate.InitProcessGroupKwargs",
    "accelerate.utils.InitProcessGroupKwargs": "accelerate.InitProcessGroupKwargs",
    "accelerate.utils.DistributedDataParallelKwargs": "accelerate.DistributedDataParallelKwargs",
    "transformers.training_args.TrainingArguments": "transformers.TrainingArguments",
    "transformers.training_args_seq2seq.Seq2SeqTrainingArguments": "transformers.Seq2SeqTrainingArguments",
}
_LIGHTNING = ("pytorch_lightning.", "lightning.pytorch.", "lightning.fabric.", "lightning.")


def published(name: str) -> str:
    """The public spelling of a qualified name; Lightning's three packages become one."""
    name = _PUBLISHED.get(name, name)
    for prefix in _LIGHTNING:
        if name.startswith(prefix):
            return "lightning." + name[len(prefix) :]
    return name


def qualified(node: nodes.NodeNG, depth: int = 0) -> frozenset[str]:
    """Every qualified name that an expression may stand for; `UNKNOWN` is among them where one cannot be told.

    Names of the module's own definitions begin with a dot (``.make_loader``), so that a class of the project
    that is called like one of torch's is never taken for it.
    """
    if depth > _DEPTH:
        return frozenset({UNKNOWN})
    # Every checker asks this of every call; the answer rests with the node, so that it goes when the tree goes.
    known: frozenset[str] | None = node.__dict__.get(_CACHE)
    if known is None:
        known = _qualified(node, depth)
        if depth == 0:
            node.__dict__[_CACHE] = known
    return known


def _qualified(node: nodes.NodeNG, depth: int) -> frozenset[str]:
    if isinstance(node, nodes.Attribute):
        return frozenset(published(f"{base}.{node.attrname}") for base in qualified(node.expr, depth + 1))
    if isinstance(node, nodes.Name):
        found = frozenset().union(*(_of_binding(stmt, node.name, depth) for stmt in bindings(node)))
        return frozenset(map(published, found)) or frozenset({UNKNOWN})
    if isinstance(node, nodes.Call) and _is_getattr(node):
        return frozenset(published(f"{base}.{node.args[1].value}") for base in qualified(node.args[0], depth + 1))
    return frozenset({UNKNOWN})


def is_named(node: nodes.NodeNG, wanted: frozenset[str] | set[str]) -> bool:
    """Whether an expression means one of the wanted names for certain: all its possible origins are among them."""
    return qualified(node) <= wanted


def scope_of(node: nodes.Name) -> nodes.NodeNG | None:
    """The module, class or function whose name this is; None for a builtin or a name from a star import."""
    scope = first = node.scope()
    while True:
        if (scope is first or not isinstance(scope, nodes.ClassDef)) and _own(scope, node.name):
            return scope
        if scope.parent is None:
            return None
        scope = scope.parent.scope()


def bindings(node: nodes.Name) -> list[nodes.NodeNG]:
    """All nodes that bind a name in its scope (AssignName, ImportFrom, FunctionDef, …), before or after its use.

    A ``nonlocal`` statement is among them where a nested function may bind the name anew.
    """
    scope = scope_of(node)
    return [*_own(scope, node.name), *_nonlocals(scope, node.name)] if scope is not None else []


def _own(scope: nodes.NodeNG, name: str) -> list[nodes.NodeNG]:
    """What binds a name in a scope, stars left out: a full build binds what they bring if it can import the module."""
    return [
        one for one in scope.locals.get(name, ()) if not (isinstance(one, nodes.ImportFrom) and one.names[0][0] == "*")
    ]


def _nonlocals(scope: nodes.NodeNG, name: str) -> list[nodes.NodeNG]:
    if not isinstance(scope, nodes.FunctionDef):
        return []
    found: list[nodes.NodeNG] | None = scope.__dict__.get(_NONLOCALS)
    if found is None:
        found = list(scope.nodes_of_class(nodes.Nonlocal))
        scope.__dict__[_NONLOCALS] = found
    return [one for one in found if name in one.names]


def _of_binding(binding: nodes.NodeNG, name: str, depth: int) -> frozenset[str]:
    if isinstance(binding, nodes.ImportFrom):
        return _imported_from(binding, name)
    if isinstance(binding, nodes.Import):
        return _imported(binding, name)
    if isinstance(binding, (nodes.FunctionDef, nodes.ClassDef)):
        return frozenset({"." + binding.name})
    if isinstance(binding, nodes.AssignName) and isinstance(binding.parent, (nodes.Assign, nodes.AnnAssign)):
        value = binding.parent.value
        if isinstance(value, (nodes.Name, nodes.Attribute, nodes.Call)) and value is not binding:
            return qualified(value, depth + 1)
    return frozenset({UNKNOWN})


def _imported_from(binding: nodes.ImportFrom, name: str) -> frozenset[str]:
    try:
        original = binding.real_name(name)
    except AstroidError:
        return frozenset({UNKNOWN})
    module = f"{'.' * (binding.level or 0)}{binding.modname}"
    return frozenset({f"{module}{original}" if module.endswith(".") else f"{module}.{original}"})


def _imported(binding: nodes.Import, name: str) -> frozenset[str]:
    for module, alias in binding.names:
        if alias == name:
            return frozenset({module})
        if alias is None and module.partition(".")[0] == name:
            return frozenset({name})
    return frozenset({UNKNOWN})


def _is_getattr(node: nodes.Call) -> bool:
    return (
        isinstance(node.func, nodes.Name)
        and node.func.name == "getattr"
        and scope_of(node.func) is None
        and len(node.args) >= 2
        and isinstance(node.args[1], nodes.Const)
        and isinstance(node.args[1].value, str)
    )
