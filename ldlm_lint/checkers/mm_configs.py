"""Settings in the Python configurations of OpenMMLab, which are modules of assignments; whether a file is one the project knows."""

from __future__ import annotations

from astroid import nodes

from ldlm_lint.python.calls import Argument, Arguments
from ldlm_lint.python.names import last_name, scope_of


def unused_parameters_switch(node: nodes.Assign) -> nodes.Const | None:
    """The literal of ``find_unused_parameters = True`` at the top of a file."""
    if not isinstance(node.parent, nodes.Module) or [getattr(one, "name", "") for one in node.targets] != ["find_unused_parameters"]:
        return None
    return node.value if isinstance(node.value, nodes.Const) and node.value.value is True else None


def unused_parameters_of_wrapper(node: nodes.Call) -> Argument | None:
    """The flag of ``model_wrapper_cfg = dict(type="MMDistributedDataParallel", find_unused_parameters=True)``."""
    if not is_settings(node) or "find_unused_parameters" not in {one.arg for one in node.keywords}:
        return None
    arguments = Arguments(node)
    if not _type_of(arguments).endswith("DistributedDataParallel") or arguments["static_graph"].may_be_passed():
        return None
    flag = arguments["find_unused_parameters"]
    return flag if flag.is_only(True) else None


def is_settings(node: nodes.Call) -> bool:
    """``dict(name=value, …)`` below the top of a file, of names that are all written out."""
    if not isinstance(node.func, nodes.Name) or node.func.name != "dict" or node.args or scope_of(node.func) is not None:
        return False
    return isinstance(node.scope(), nodes.Module) and all(one.arg is not None for one in node.keywords)


def _type_of(arguments: Arguments) -> str:
    node = arguments["type"].node
    if node is None:
        return ""
    return node.value if isinstance(node, nodes.Const) and isinstance(node.value, str) else last_name(node)


__all__ = ["is_settings", "unused_parameters_of_wrapper", "unused_parameters_switch"]
