"""Numbers of workers as a guard repeats them: what may be written a second time, and what needs no guard."""

from __future__ import annotations

from astroid import nodes

from ldlm_lint.python.names import last_name, qualified, scope_of
from ldlm_lint.python.walks import nodes_of

_LONGEST = 60
_BUILTINS = {"min", "max", "int", "len", "getattr"}
_LOOK_UPS = {"os.cpu_count", "os.process_cpu_count", "os.getenv", "os.sched_getaffinity", "multiprocessing.cpu_count"}
_RANKS = {"torch.distributed.get_world_size", "torch.distributed.get_rank", "torch.cuda.device_count"}


def can_be_repeated(call: nodes.Call, node: nodes.NodeNG) -> bool:
    """Whether writing an expression of a call a second time computes the same, does nothing else, and can be read."""
    if any(True for _ in nodes_of(call, (nodes.NamedExpr, nodes.Await, nodes.Yield, nodes.YieldFrom))):
        return False
    if (
        isinstance(node, (nodes.Const, nodes.Lambda))
        or node.end_lineno != node.lineno
        or (node.end_col_offset or 0) - (node.col_offset or 0) > _LONGEST
    ):
        return False
    return not any(True for _ in nodes_of(node, nodes.Lambda)) and all(
        _only_looks_up(one) for one in nodes_of(node, nodes.Call)
    )


def _only_looks_up(call: nodes.Call) -> bool:
    if isinstance(call.func, nodes.Name) and scope_of(call.func) is None:
        return call.func.name in _BUILTINS
    if last_name(call.func) == "get" and isinstance(call.func, nodes.Attribute):
        # A queue's ``get`` takes something away; what is asked for a key is a mapping.
        return bool(call.args) and isinstance(call.args[0], nodes.Const) and isinstance(call.args[0].value, str)
    return qualified(call.func) <= _LOOK_UPS | _RANKS


def is_positive(node: nodes.NodeNG) -> bool:
    """Whether an expression is above 0 by its own text: a number, either of two, ``n or 2``, ``max(1, ...)``."""
    if isinstance(node, nodes.Const):
        return type(node.value) is int and node.value > 0
    if isinstance(node, nodes.IfExp):
        return is_positive(node.body) and is_positive(node.orelse)
    if isinstance(node, nodes.BoolOp):
        # What is not 0 is more, since a loader takes no negative number.
        return node.op == "or" and is_positive(node.values[-1])
    if isinstance(node, nodes.Call) and isinstance(node.func, nodes.Name) and scope_of(node.func) is None:
        several = len(node.args) > 1 and not any(isinstance(one, nodes.Starred) for one in node.args)
        least = {"max": any, "min": all}.get(node.func.name)
        return several and least is not None and least(is_positive(one) for one in node.args)
    return False
