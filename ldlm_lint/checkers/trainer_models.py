"""Whether the Trainers of a file train only an adapter."""

from __future__ import annotations

from astroid import nodes

from ldlm_lint.python.memo import remembered
from ldlm_lint.python.names import qualified
from ldlm_lint.python.walks import nodes_of


def trains_adapter(module: nodes.Module, made: nodes.Call | None) -> bool:
    """Whether only an adapter is trained: trl gets one in the file, or peft creates one, regardless of the options."""
    if made is not None and any(name.startswith("trl.") for name in qualified(made.func)):
        return remembered(module, ("peft_config",), lambda: any(one.arg == "peft_config" for one in nodes_of(module, nodes.Keyword)))
    return remembered(module, ("get_peft_model",), lambda: any(map(_adapts, nodes_of(module, nodes.Call))))


def _adapts(call: nodes.Call) -> bool:
    """A call of peft's ``get_peft_model`` under no condition."""
    return qualified(call.func) == {"peft.get_peft_model"} and not any(map(_chooses, call.node_ancestors()))


def _chooses(node: nodes.NodeNG) -> bool:
    """A condition, but for whether the file is the program that runs."""
    return isinstance(node, nodes.If) and "__name__" not in node.test.as_string()


__all__ = ["trains_adapter"]
