"""Numbers of loader workers that a default decides: of a function's parameter, of a command-line flag, of a settings class."""

from __future__ import annotations

from astroid import nodes

from ldlm_lint.python.defaults import flag_of, parameter_default
from ldlm_lint.python.key_reads import class_of_self
from ldlm_lint.python.names import bindings
from ldlm_lint.python.places import function_of, scope_name
from ldlm_lint.python.slots import is_call_of
from ldlm_lint.python.walks import nodes_of

# The field of transformers' TrainingArguments, 0 where nothing sets it.
WORKERS_OF_TRAINER = "dataloader_num_workers"
_CACHES = {"cached_property", "lru_cache", "cache"}


def parameter_of(node: nodes.NodeNG | None) -> tuple[str, str, nodes.NodeNG | None] | None:
    """The function, the name and the default of the parameter that an expression is, as long as nothing else is bound to it."""
    if not isinstance(node, nodes.Name):
        return None
    bound = bindings(node)
    if len(bound) != 1 or not isinstance(bound[0].parent, nodes.Arguments):
        return None
    function = bound[0].parent.parent
    if not isinstance(function, nodes.FunctionDef) or function is not function_of(node):
        return None
    return scope_name(function), node.name, parameter_default(function, node.name)


def hyperparameter_of(node: nodes.NodeNG | None) -> tuple[str, str, nodes.NodeNG | None] | None:
    """The same for ``self.hparams.name`` of Lightning: the argument of the class's constructor."""
    if not isinstance(node, nodes.Attribute):
        return None
    held = node.expr
    owner = class_of_self(held.expr) if isinstance(held, nodes.Attribute) and held.attrname == "hparams" else None
    methods = owner.body if owner is not None else ()
    constructor = next((one for one in methods if isinstance(one, nodes.FunctionDef) and one.name == "__init__"), None)
    if constructor is None or node.attrname not in {one.name for one in constructor.args.arguments}:
        return None
    return scope_name(constructor), node.attrname, parameter_default(constructor, node.attrname)


def is_zero(node: nodes.NodeNG | None) -> bool:
    """The literal 0."""
    return isinstance(node, nodes.Const) and type(node.value) is int and node.value == 0


def zero_by_default(node: nodes.NodeNG | None) -> str:
    """The setting that is 0 unless a user says otherwise, as ``args.workers`` with a flag of the file; empty elsewhere."""
    if not isinstance(node, nodes.Attribute):
        return ""
    module = node.root()
    found = [flag[1] for call in nodes_of(module, nodes.Call) if (flag := flag_of(call)) and flag[0] == node.attrname]
    if found:
        return f"--{node.attrname}" if all(is_zero(one) for one in found) else ""
    fields = [
        one.value
        for one in nodes_of(module, nodes.AnnAssign)
        if isinstance(one.parent, nodes.ClassDef) and isinstance(one.target, nodes.AssignName) and one.target.name == node.attrname
    ]
    return node.attrname if fields and all(is_zero(one) for one in fields) else ""


def is_made_anew(call: nodes.Call) -> bool:
    """A loader of which there is one pass: ``iter(DataLoader(…))`` keeps only that, and each access of a property makes another."""
    if isinstance(call.parent, nodes.Call) and is_call_of(call.parent, "iter"):
        return True
    function = function_of(call)
    decorators = function.decorators.nodes if isinstance(function, nodes.FunctionDef) and function.decorators else []
    names = {(one.func if isinstance(one, nodes.Call) else one).as_string().rpartition(".")[2] for one in decorators}
    return "property" in names and not names & _CACHES
