"""Recognizes numbers of micro-batches per step by their use."""

from __future__ import annotations

from astroid import nodes

from ldlm_lint.python.names import last_name
from ldlm_lint.python.walks import nodes_of
from ldlm_lint.vocabulary.batch_sizes import is_accumulation


def name_of(target: nodes.NodeNG) -> str:
    """The name of a variable, an attribute or a constant key; empty for other expressions."""
    if isinstance(target, (nodes.AssignName, nodes.Name)):
        return target.name
    if isinstance(target, (nodes.AssignAttr, nodes.Attribute)):
        return target.attrname
    if isinstance(target, nodes.Subscript) and isinstance(target.slice, nodes.Const):
        return str(target.slice.value)
    return ""


def is_steps(use: nodes.NodeNG) -> bool:
    """Whether a value is passed on as accumulation steps, or counts the micro-batches of a step."""
    parent = use.parent
    if isinstance(parent, nodes.Keyword):
        return parent.arg is not None and is_accumulation(parent.arg)
    if isinstance(parent, nodes.Assign):
        return any(is_accumulation(name_of(one)) for one in parent.targets)
    if isinstance(parent, nodes.Dict):
        return any(held is use and isinstance(key, nodes.Const) and is_accumulation(str(key.value)) for key, held in parent.items)
    if isinstance(parent, nodes.BinOp):
        return parent.op == "%" and parent.right is use and _decides_step(parent)
    return isinstance(parent, nodes.Call) and last_name(parent.func) == "range" and _runs_backward(parent.parent, parent)


def _decides_step(remainder: nodes.BinOp) -> bool:
    """``if (index + 1) % steps == 0: optimizer.step()`` in a loop that runs backward passes."""
    guard = remainder.statement()
    loop = guard.parent
    while loop is not None and not isinstance(loop, (nodes.For, nodes.While, nodes.FunctionDef, nodes.Module)):
        loop = loop.parent
    steps = isinstance(guard, nodes.If) and any(last_name(one.func) == "step" for one in nodes_of(guard, nodes.Call))
    return steps and isinstance(loop, (nodes.For, nodes.While)) and _has_backward(loop)


def _runs_backward(loop: nodes.NodeNG | None, counted: nodes.NodeNG) -> bool:
    """``for _ in range(steps):`` around a backward pass."""
    return isinstance(loop, nodes.For) and loop.iter is counted and _has_backward(loop)


def _has_backward(loop: nodes.NodeNG) -> bool:
    return any(last_name(one.func) == "backward" for one in nodes_of(loop, nodes.Call))


__all__ = ["is_steps", "name_of"]
