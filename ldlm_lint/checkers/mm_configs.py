"""Settings in the Python configurations of OpenMMLab, which are modules of assignments; whether a file is one the project knows."""

from __future__ import annotations

from astroid import nodes

from ldlm_lint.python.calls import Arguments
from ldlm_lint.python.names import last_name, scope_of
from ldlm_lint.python.values import constant
from ldlm_lint.rules.kept_checkpoints import HANDFUL

KEEP = "max_keep_ckpts"
_LENGTHS = {"max_epochs", "max_iters", "total_epochs", "total_iters"}


def keeps_every_checkpoint(node: nodes.Call) -> bool:
    """Whether settings of a CheckpointHook save at an interval, more than a few times as far as the file tells, and keep all."""
    if not is_settings(node) or not _is_of_hook(node):
        return False
    arguments = Arguments(node)
    interval = constant(arguments["interval"].node) if arguments["interval"].node is not None else None
    if arguments[KEEP].may_be_passed() or not isinstance(interval, int) or interval < 1:
        return False
    by_epoch = not arguments["by_epoch"].is_only(False)
    length = _length(node.root(), by_epoch)
    return length > HANDFUL * interval if length is not None else by_epoch and interval == 1


def is_settings(node: nodes.Call) -> bool:
    """``dict(name=value, …)`` below the top of a file, of names that are all written out."""
    if not isinstance(node.func, nodes.Name) or node.func.name != "dict" or node.args or scope_of(node.func) is not None:
        return False
    return isinstance(node.scope(), nodes.Module) and all(one.arg is not None for one in node.keywords)


def _is_of_hook(node: nodes.Call) -> bool:
    """The hook by its name, or the ``checkpoint_config`` from which mmcv makes one."""
    if _type_of(Arguments(node)):
        return _type_of(Arguments(node)) == "CheckpointHook"
    assign = node.parent
    return isinstance(assign, nodes.Assign) and [getattr(one, "name", "") for one in assign.targets] == ["checkpoint_config"]


def _type_of(arguments: Arguments) -> str:
    node = arguments["type"].node
    if node is None:
        return ""
    return node.value if isinstance(node, nodes.Const) and isinstance(node.value, str) else last_name(node)


def _length(module: nodes.Module, by_epoch: bool) -> int | None:
    """How many epochs, or iterations, the file trains for; None where it does not say."""
    word = "epochs" if by_epoch else "iters"
    found = []
    for statement in module.body:
        if not isinstance(statement, nodes.Assign) or not isinstance(statement.targets[0], nodes.AssignName):
            continue
        name, value = statement.targets[0].name, statement.value
        if name in _LENGTHS and name.endswith(word):
            found.append(constant(value))
        elif name in ("runner", "train_cfg") and isinstance(value, nodes.Call):
            found += [constant(one.value) for one in value.keywords if one.arg in _LENGTHS and one.arg.endswith(word)]
    numbers = [one for one in found if isinstance(one, int)]
    return max(numbers) if numbers else None


__all__ = ["KEEP", "is_settings", "keeps_every_checkpoint"]
