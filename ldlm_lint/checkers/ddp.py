"""Missing or unnecessary arguments of DistributedDataParallel: the views and buffers that they share between ranks."""

from __future__ import annotations

from collections.abc import Iterator

from astroid import nodes

from ldlm_lint import tables
from ldlm_lint.autofix.keywords import remove_arguments
from ldlm_lint.checkers.base import LdlmChecker, span_of
from ldlm_lint.model import Applicability, Claim, Edit, Fix
from ldlm_lint.python.calls import Arguments
from ldlm_lint.python.names import bindings
from ldlm_lint.python.places import function_of, scope_name
from ldlm_lint.python.walks import nodes_of
from ldlm_lint.requirements import OLDEST_TORCH
from ldlm_lint.rules.ddp import BROADCAST_BUFFERS
from ldlm_lint.source import Source

WRAPPER = "torch.nn.parallel.DistributedDataParallel"
# What follows differs between torch versions: 2.13 has `init_sync` where 2.0 has `process_group`.
_POSITIONAL = tables.positional(WRAPPER)
_DEPRECATING = (2, 13)
_DEPRECATED = (
    "`broadcast_buffers` is deprecated since torch 2.13: rename it to `forward_sync_buffers`, with which DDP always broadcasts buffers at construction"
)
_DELETE_REASON = "buffers are then broadcast at construction and before each forward pass"
_RENAME_REASON = "torch before 2.13 has no `forward_sync_buffers`, and False no longer skips the broadcast at construction"


def check_broadcast_buffers(checker: LdlmChecker, node: nodes.Call) -> None:
    """Report ``broadcast_buffers`` if it is deprecated, or if omitting the first broadcast makes ranks differ."""
    arguments = Arguments(node, _POSITIONAL)
    argument = arguments["broadcast_buffers"]
    if argument.node is None or len(node.args) > len(_POSITIONAL):
        return
    place = next((keyword for keyword in node.keywords if keyword.arg == "broadcast_buffers"), node)
    if _is_recent(checker):
        checker.report(
            BROADCAST_BUFFERS,
            place,
            args={"problem": _DEPRECATED},
            claims=(Claim("stands-outside-tests"),),
            fix=lambda source: _rename_fix(source, place),
        )
        return
    model = arguments["module"].node
    origins = sorted(set(_origins(model))) if model is not None else []
    if origins and argument.is_only(False):
        checker.report(
            BROADCAST_BUFFERS,
            place,
            args={"problem": "`broadcast_buffers=False`"},
            claims=(Claim("wrapped-model-trains", scope_name(function_of(node))), Claim("model-draws-buffers", " ".join(origins))),
            fix=lambda source: _delete_fix(source, place),
        )


def _is_recent(checker: LdlmChecker) -> bool:
    """Whether torch 2.13 is the oldest version that the project runs on; pylint gets these findings from the engine."""
    options = getattr(checker.linter, "ldlm_options", None) or {}
    target = options.get(OLDEST_TORCH)
    return target is not None and target >= _DEPRECATING


def _origins(node: nodes.NodeNG, depth: int = 0) -> Iterator[str]:
    """The last names of the classes and functions that may have created an expression's value."""
    if depth > 4:
        return
    if isinstance(node, nodes.Call):
        if isinstance(node.func, nodes.Attribute):
            yield node.func.attrname
            yield from _origins(node.func.expr, depth + 1)
        elif isinstance(node.func, nodes.Name):
            yield node.func.name
            for argument in node.args:
                yield from _origins(argument, depth + 1)
    elif isinstance(node, nodes.Name):
        for binding in bindings(node):
            value = getattr(binding.parent, "value", None)
            if isinstance(binding, nodes.AssignName) and isinstance(value, nodes.Call):
                yield from _origins(value, depth + 1)
    elif isinstance(node, nodes.Attribute):
        for target in nodes_of(node.root(), nodes.AssignAttr):
            value = getattr(target.parent, "value", None)
            if target.attrname == node.attrname and isinstance(value, nodes.Call):
                yield from _origins(value, depth + 1)


def _rename_fix(source: Source, place: nodes.NodeNG) -> Fix | None:
    if not isinstance(place, nodes.Keyword):
        return None
    start = span_of(source, place).start
    edit = Edit(source.span(start, start + len("broadcast_buffers")), "forward_sync_buffers")
    needs = (tables.interface("DistributedDataParallel(forward_sync_buffers=)"),)
    return Fix("rename broadcast_buffers to forward_sync_buffers", (edit,), Applicability.UNSAFE, _RENAME_REASON, needs=needs)


def _delete_fix(source: Source, place: nodes.NodeNG) -> Fix | None:
    edits = remove_arguments(source, [span_of(source, place)]) if isinstance(place, nodes.Keyword) else None
    return Fix("leave broadcast_buffers at its default", edits, Applicability.UNSAFE, _DELETE_REASON) if edits else None


__all__ = ["WRAPPER", "check_broadcast_buffers"]
