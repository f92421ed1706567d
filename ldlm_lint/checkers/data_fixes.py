"""Fixes of DataLoader calls: keywords to add, numbers to change."""

from __future__ import annotations

from astroid import nodes

from ldlm_lint import tables
from ldlm_lint.autofix.calls import add_keyword
from ldlm_lint.autofix.imports import ensure_import
from ldlm_lint.checkers.base import span_of
from ldlm_lint.checkers.data_repeats import can_be_repeated, is_positive
from ldlm_lint.checkers.data_workers import Amount
from ldlm_lint.model import Applicability, Edit, Fix
from ldlm_lint.python.calls import Argument, State
from ldlm_lint.python.values import only_binding
from ldlm_lint.python.walks import nodes_of
from ldlm_lint.source import Source

PERSISTENT_REASON = "workers keep their copies of the dataset and their random streams between epochs"
PREFETCH_REASON = "more batches are buffered in host memory and /dev/shm"
WORKERS_REASON = (
    "each worker holds a copy of the dataset and draws other random numbers, an `IterableDataset` that is not split by worker "
    "is repeated, and a dataset that cannot be pickled or forked raises"
)
PIN_REASON = "pinned memory cannot be swapped out, and a batch that is on the GPU already cannot be pinned"
_AMOUNT_REASON = "fewer workers can be too few for a slow dataset"


def persistent_fix(source: Source, call: nodes.Call, workers: Argument, group: str) -> Fix | None:
    """Add ``persistent_workers``."""
    fix = _keyword_fix(source, call, workers, group, "persistent_workers", ("True", "{} > 0"), PERSISTENT_REASON)
    return fix._replace(needs=(tables.interface("DataLoader(persistent_workers=)"),)) if fix else None


def written_at(value: nodes.NodeNG) -> nodes.NodeNG:
    """The place where a value is written out: behind a name that is bound once."""
    bound = only_binding(value) if isinstance(value, nodes.Name) else None
    return value if bound is None else bound


def switched_on(source: Source, call: nodes.Call, value: nodes.NodeNG, workers: Argument) -> Fix | None:
    """Write True in the place of the call's own False; without workers the option raises, so their number must be written out."""
    own = isinstance(value, nodes.Const) and isinstance(value.parent, nodes.Keyword) and value.parent.parent is call
    if not own or workers.node is None or not is_positive(workers.node):
        return None
    return Fix("set persistent_workers=True", (Edit(span_of(source, value), "True"),), Applicability.UNSAFE, PERSISTENT_REASON)


def prefetch_fix(source: Source, call: nodes.Call, workers: Argument, group: str, factor: int) -> Fix | None:
    """Add ``prefetch_factor``."""
    values = (str(factor), f"{factor} if {{}} > 0 else None")
    fix = _keyword_fix(source, call, workers, group, "prefetch_factor", values, PREFETCH_REASON)
    guarded = fix is not None and "None" in fix.title
    return fix._replace(needs=(tables.interface("DataLoader(prefetch_factor=None)"),)) if fix is not None and guarded else fix


def _keyword_fix(
    source: Source, call: nodes.Call, workers: Argument, group: str, name: str, values: tuple[str, str], reason: str
) -> Fix | None:
    """Add a keyword: as it is where the workers are a positive literal, guarded by their own expression elsewhere."""
    assert workers.node is not None
    plain, guarded = values
    own = workers.node.parent is call or workers.node.parent in call.keywords
    # A number in a dictionary that only some runs pass is no number of the others, which would raise.
    if (own and is_positive(workers.node)) or (not own and _all_positive(workers)):
        value = plain
    elif own and can_be_repeated(call, workers.node) and all(one.arg is not None for one in call.keywords):
        # Beside a dictionary of options, which is where the author decides on them, a condition would be misplaced.
        value = guarded.format(_text_of(source, workers.node))
    else:
        return None
    edit = add_keyword(source, span_of(source, call), name, value)
    return Fix(f"set {name}={value}", (edit,), Applicability.UNSAFE, reason, group=group) if edit else None


def _all_positive(workers: Argument) -> bool:
    return workers.state is State.KNOWN and all(isinstance(value, int) and value > 0 for value in workers.values)


def _text_of(source: Source, node: nodes.NodeNG) -> str:
    """An expression as an operand of a comparison."""
    text = source.slice(span_of(source, node))
    return f"({text})" if isinstance(node, (nodes.IfExp, nodes.BoolOp, nodes.Compare, nodes.UnaryOp)) else text


def pin_fix(source: Source, call: nodes.Call, group: str) -> Fix | None:
    """Add ``pin_memory=True``."""
    edit = add_keyword(source, span_of(source, call), "pin_memory", "True")
    return Fix("set pin_memory=True", (edit,), Applicability.UNSAFE, PIN_REASON, group=group) if edit else None


def amount_fix(source: Source, amount: Amount, limit: int) -> Fix | None:
    """Halve the limit for a number, share the CPUs of the node between its ranks for their count."""
    if not amount.whole_node:
        number = next((one for one in nodes_of(amount.place, nodes.Const) if str(one.value) == amount.text), None)
        if number is None or not isinstance(number.value, int):
            return None
        edit = Edit(span_of(source, number), str(max(limit // 2, 1)))
        return Fix(f"use {edit.text} workers per rank", (edit,), Applicability.UNSAFE, _AMOUNT_REASON)
    added, environ = ensure_import(source, "os", "environ")
    span = span_of(source, amount.place)
    text = source.slice(span)
    node = amount.place
    operand = (
        f"int({text})"
        if isinstance(node, nodes.BinOp) and node.op == "/"
        else f"({text})"
        if isinstance(node, nodes.BinOp)
        else text
    )
    shared = Edit(span, f'max(1, {operand} // int({environ}.get("LOCAL_WORLD_SIZE", 1)))')
    reason = f"{_AMOUNT_REASON}; only torchrun and launchers built on it set LOCAL_WORLD_SIZE"
    return Fix(
        "share the CPUs between the ranks of the node",
        (shared, *([added] if added else [])),
        Applicability.UNSAFE,
        reason,
    )
