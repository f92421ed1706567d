"""Qualified names by scope lookup: the function or class behind an expression, without importing it.

``DL(ds)`` after ``from torch.utils.data import DataLoader as DL`` is ``torch.utils.data.DataLoader``. Every possible
origin is returned, so that both branches of ``try: … except ImportError: …`` count.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet

from astroid import nodes
from astroid.exceptions import AstroidError

from ldlm_lint.python.candidates import alternatives, inherited
from ldlm_lint.python.scopes import bindings, enclosing, scope_of

UNKNOWN = "?"
_NOTHING = frozenset({UNKNOWN})
_DEPTH = 6
# A name with more bindings than hand-written code has is unknown: each binding must be resolved.
_BINDINGS = 64
# The expressions that may mean a function or class; anything else is a value.
_NAMING = (nodes.Name, nodes.Attribute, nodes.Call, nodes.Subscript, nodes.IfExp)
_MEMBERS = frozenset({nodes.Attribute, nodes.AssignAttr})
_CACHE = "_ldlm_qualified"
_NAMES = "_ldlm_names"
_MEANT = "_ldlm_meant"

# If torch and others define a name in one module and publish it in another, the published one is used.
_PUBLISHED = {
    "torch.utils.data.dataloader.DataLoader": "torch.utils.data.DataLoader",
    "torch.utils.data.distributed.DistributedSampler": "torch.utils.data.DistributedSampler",
    "torch.nn.parallel.distributed.DistributedDataParallel": "torch.nn.parallel.DistributedDataParallel",
    # A subclass that passes all of DDP's options on.
    "mmcv.parallel.MMDistributedDataParallel": "torch.nn.parallel.DistributedDataParallel",
    "mmcv.parallel.distributed.MMDistributedDataParallel": "torch.nn.parallel.DistributedDataParallel",
    "mmengine.model.MMDistributedDataParallel": "torch.nn.parallel.DistributedDataParallel",
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
# Names that a project's own modules import from torch and re-export under the same name.
_HANDED_ON = {
    name.rpartition(".")[2]: name
    for name in (
        "torch.utils.data.DataLoader",
        "torch.utils.data.DistributedSampler",
        "torch.nn.parallel.DistributedDataParallel",
        "torch.optim.Adam",
        "torch.optim.AdamW",
        "torch.optim.SGD",
    )
}
_TORCH = "torch."
_NO_MODULE = (UNKNOWN, ".")
# Names that Lightning publishes at its top level.
_LIGHTNING_CORE = frozenset({"core", "trainer"})
_LIGHTNING = ("pytorch_lightning.", "lightning.pytorch.", "lightning.fabric.", "lightning.")


def published(name: str) -> str:
    """The public spelling of a qualified name; Lightning's three packages become one."""
    if name.startswith(_NO_MODULE):
        return name
    name = _PUBLISHED.get(name, name)
    if name.startswith(_LIGHTNING):
        prefix = next(one for one in _LIGHTNING if name.startswith(one))
        return "lightning." + _without_modules(name[len(prefix) :])
    return name


def spellings(public: str) -> frozenset[str]:
    """All names under which an object published under one name may be imported."""
    return frozenset(name for name, known in _PUBLISHED.items() if known == public) | {public}


def _without_modules(name: str) -> str:
    """A class of Lightning by the package that publishes it: ``callbacks.model_checkpoint.ModelCheckpoint`` is ``callbacks.ModelCheckpoint``."""
    first, _, last = name.partition(".")[0], *name.rpartition(".")[1:]
    if not last[:1].isupper() or last.isupper() or "." not in name:
        return name
    return last if first in _LIGHTNING_CORE else f"{first}.{last}"


def last_name(node: nodes.NodeNG | None) -> str:
    """The last part of a dotted name, as the file writes it; empty for other expressions."""
    # Only a node is of these classes.
    return node.attrname if node.__class__ in _MEMBERS else getattr(node, "name", "") or ""  # type: ignore[union-attr]


def qualified(node: nodes.NodeNG, depth: int = 0) -> frozenset[str]:
    """Every qualified name that an expression may have; includes `UNKNOWN` if one is unknown.

    Names of the module's own definitions begin with a dot (``.make_loader``), so that a class of the project with the
    name of a torch class is never mistaken for it.
    """
    if depth > _DEPTH:
        return _NOTHING
    # Every checker needs this for every call; cached on the node, so that it is released with the tree.
    known: frozenset[str] | None = node.__dict__.get(_CACHE)
    if known is None:
        known = _qualified(node, depth)
        if depth == 0:
            node.__dict__[_CACHE] = known
    return known


def _qualified(node: nodes.NodeNG, depth: int) -> frozenset[str]:
    if isinstance(node, nodes.Name):
        return _of_name(node, depth)
    if not isinstance(node, _NAMING):
        return _NOTHING
    root = _root(node) if isinstance(node, nodes.Attribute) else None
    if root is None:
        return _chosen(node, depth)
    # A dotted name means the same everywhere in a scope, like a name.
    known: dict[tuple[str, int], frozenset[str]] = enclosing(root).__dict__.setdefault(_NAMES, {})
    spelled = (_spelled(node), depth)
    names = known.get(spelled)
    if names is None:
        names = known[spelled] = _chosen(node, depth)
    return names


def _root(node: nodes.Attribute) -> nodes.Name | None:
    """The name at the beginning of a dotted name; None for an attribute of anything else."""
    while node.__class__ is nodes.Attribute:
        node = node.expr
    return node if node.__class__ is nodes.Name else None


def _spelled(node: nodes.NodeNG) -> str:
    text = ""
    while node.__class__ is nodes.Attribute:
        text = f".{node.attrname}{text}"
        node = node.expr
    return f"{node.name}{text}"


def _chosen(node: nodes.NodeNG, depth: int) -> frozenset[str]:
    options = alternatives(node)
    if options:
        chosen = frozenset().union(*(qualified(one, depth + 1) for one in options))
        if not chosen <= _NOTHING:
            return chosen
    if isinstance(node, nodes.Attribute):
        return frozenset([published(f"{base}.{node.attrname}") for base in qualified(node.expr, depth + 1)])
    if isinstance(node, nodes.Call):
        return _of_call(node, depth)
    return _NOTHING


def _of_name(node: nodes.Name, depth: int) -> frozenset[str]:
    # The same for every use of a name in a scope. Intermediate results are cached there by depth: otherwise a name that
    # is repeatedly rebound using itself is looked up once for each path through its bindings.
    scope = enclosing(node)
    known: dict[tuple[str, int], frozenset[str]] | None = scope.__dict__.get(_NAMES)
    if known is None:
        known = scope.__dict__[_NAMES] = {}
    names = known.get((node.name, 0)) or known.get((node.name, depth))
    if names is None:
        names = known[node.name, depth] = _of_bindings(node, depth)
    return names


def _of_bindings(node: nodes.Name, depth: int) -> frozenset[str]:
    binders = bindings(node)
    if len(binders) > _BINDINGS:
        return _NOTHING
    found = frozenset(map(published, frozenset().union(*(_of_binding(one, node.name, depth) for one in binders))))
    return found if 0 < len(found) <= _BINDINGS else _NOTHING


def _of_call(node: nodes.Call, depth: int) -> frozenset[str]:
    if _is_getattr(node):
        return frozenset(published(f"{base}.{node.args[1].value}") for base in qualified(node.args[0], depth + 1))
    if is_partial(node, depth + 1):
        return qualified(node.args[0], depth + 1)
    return _NOTHING


def is_partial(node: nodes.Call, depth: int = 0) -> bool:
    """Whether a call is ``functools.partial(function, …)``: its result is called like the function."""
    return bool(node.args) and _may_be_partial(node.func) and qualified(node.func, depth) == {"functools.partial"}


def _may_be_partial(func: nodes.NodeNG) -> bool:
    """A cheap test before names are resolved: most calls are of other functions."""
    return isinstance(func, nodes.Name) or (isinstance(func, nodes.Attribute) and func.attrname == "partial")


def partials(node: nodes.NodeNG) -> tuple[nodes.Call, ...] | None:
    """The ``functools.partial`` calls in an expression, outermost first; None if it may be several."""
    found: list[nodes.Call] = []
    for _ in range(_DEPTH):
        if isinstance(node, nodes.Call) and is_partial(node):
            found.append(node)
            node = node.args[0]
            continue
        options = _values_of(node) if isinstance(node, nodes.Name) else alternatives(node)
        if len(options) != 1:
            return None if any(partials(option) != () for option in options) else tuple(found)
        node = options[0]
    return tuple(found)


def _values_of(node: nodes.Name) -> list[nodes.NodeNG]:
    return [value for one in bindings(node) if (value := _assigned(one)) is not None]


def _assigned(binding: nodes.NodeNG) -> nodes.NodeNG | None:
    """The value that an assignment binds to a name; None for every other binding."""
    statement = binding.parent if isinstance(binding, nodes.AssignName) else None
    return statement.value if isinstance(statement, (nodes.Assign, nodes.AnnAssign)) else None


def is_named(node: nodes.NodeNG, wanted: AbstractSet[str]) -> bool:
    """Whether an expression means one of the wanted names: all its possible origins are among them.

    A name that a module of the project may re-export counts; `handed_on` finds it, and the finding gets a claim.
    """
    return meant(node) <= wanted


def meant(node: nodes.NodeNG) -> frozenset[str]:
    """`qualified`, with the public name instead of one that a module of the project may re-export."""
    known: frozenset[str] | None = node.__dict__.get(_MEANT)
    if known is None:
        found = handed_on(node)
        known = node.__dict__[_MEANT] = frozenset({found[1]}) if found is not None else qualified(node)
    return known


def handed_on(node: nodes.NodeNG) -> tuple[str, str] | None:
    """For ``from .common import DataLoader``: the name as imported, and the public one that it may be; else None."""
    names = qualified(node)
    name = min(names)
    public = _HANDED_ON.get(name.rpartition(".")[2])
    if (
        public is None
        or len(names) > 1
        or name == public
        or name.startswith((UNKNOWN, _TORCH))
        or not _is_imported(node)
    ):
        return None
    return name, public


def _is_imported(node: nodes.NodeNG) -> bool:
    while isinstance(node, nodes.Attribute):
        node = node.expr
    return isinstance(node, nodes.Name) and all(
        isinstance(one, (nodes.Import, nodes.ImportFrom)) for one in bindings(node)
    )


def _of_binding(binding: nodes.NodeNG, name: str, depth: int) -> frozenset[str]:
    if isinstance(binding, nodes.ImportFrom):
        return _imported_from(binding, name)
    if isinstance(binding, nodes.Import):
        return _imported(binding, name)
    if isinstance(binding, nodes.ClassDef) and (base := inherited(binding)) is not None:
        names = qualified(base, depth + 1)
        return names if UNKNOWN not in names else frozenset({"." + binding.name})
    if isinstance(binding, (nodes.FunctionDef, nodes.ClassDef)):
        return frozenset({"." + binding.name})
    value = _assigned(binding)
    return qualified(value, depth + 1) if isinstance(value, _NAMING) and value is not binding else _NOTHING


def _imported_from(binding: nodes.ImportFrom, name: str) -> frozenset[str]:
    try:
        original = binding.real_name(name)
    except AstroidError:
        return _NOTHING
    module = f"{'.' * (binding.level or 0)}{binding.modname}"
    return frozenset({f"{module}{original}" if module.endswith(".") else f"{module}.{original}"})


def _imported(binding: nodes.Import, name: str) -> frozenset[str]:
    for module, alias in binding.names:
        if alias == name:
            return frozenset({module})
        if alias is None and module.partition(".")[0] == name:
            return frozenset({name})
    return _NOTHING


def _is_getattr(node: nodes.Call) -> bool:
    return (
        isinstance(node.func, nodes.Name)
        and node.func.name == "getattr"
        and scope_of(node.func) is None
        and len(node.args) >= 2
        and isinstance(node.args[1], nodes.Const)
        and isinstance(node.args[1].value, str)
    )
