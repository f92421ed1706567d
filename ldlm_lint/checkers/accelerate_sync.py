"""Backward passes of an Accelerator in manual accumulation loops: Accelerate reduces the gradients in each of them."""

from __future__ import annotations

from astroid import nodes

from ldlm_lint.python.calls import Arguments
from ldlm_lint.python.candidates import alternatives
from ldlm_lint.python.memo import remembered
from ldlm_lint.python.names import bindings, is_named
from ldlm_lint.python.scopes import enclosing
from ldlm_lint.python.walks import nodes_of

_ACCELERATOR = frozenset({"accelerate.Accelerator"})
# Other engines than DDP reduce gradients on their own terms.
_OTHER_ENGINES = ("deepspeed_plugin", "deepspeed_plugins", "fsdp_plugin", "megatron_lm_plugin", "parallelism_config", "cpu")
_LOCAL = frozenset({"accumulate", "no_sync"})


def is_backward_of_accelerator(call: nodes.Call) -> bool:
    """``accelerator.backward(loss)`` of an Accelerator that the file makes."""
    return isinstance(call.func, nodes.Attribute) and call.func.attrname == "backward" and bool(call.args) and bool(_made(call.func.expr))


def reduces_each_pass(call: nodes.Call) -> bool:
    """Whether DDP reduces the gradients of each such pass: no code of the file keeps them local, and no other engine is
    configured."""
    made = _made(call.func.expr)
    plain = all(Arguments(one)[name].absent or Arguments(one)[name].is_only(None) for one in made for name in _OTHER_ENGINES)
    methods = remembered(call.root(), ("methods of accelerators",), lambda: _methods(call.root()))
    # A model that is not prepared is not wrapped.
    return bool(made) and plain and "prepare" in methods and methods.isdisjoint(_LOCAL)


def _methods(module: nodes.Module) -> frozenset[str]:
    """The methods of which a file calls those that an Accelerator has."""
    called = (one.func for one in nodes_of(module, nodes.Call) if isinstance(one.func, nodes.Attribute))
    return frozenset(one.attrname for one in called if one.attrname in _LOCAL or (one.attrname == "prepare" and _made(one.expr)))


def _made(owner: nodes.NodeNG) -> list[nodes.Call]:
    """The constructors of the Accelerator that an expression is; empty if it may be anything else."""
    values = _values(owner)
    calls = [one for one in values if isinstance(one, nodes.Call) and is_named(one.func, _ACCELERATOR)]
    return calls if len(calls) == len(values) else []


def _values(owner: nodes.NodeNG) -> list[nodes.NodeNG]:
    if isinstance(owner, nodes.Attribute):
        return alternatives(owner)
    if not isinstance(owner, nodes.Name):
        return []
    return remembered(enclosing(owner), ("bound to", owner.name), lambda: [_value(one) for one in bindings(owner)])


def _value(binding: nodes.NodeNG) -> nodes.NodeNG:
    statement = binding.parent
    return statement.value if isinstance(statement, (nodes.Assign, nodes.AnnAssign)) and statement.value is not None else binding


__all__ = ["is_backward_of_accelerator", "reduces_each_pass"]
