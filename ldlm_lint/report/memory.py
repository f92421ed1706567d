"""The peak memory of a training step as a table: bytes by kind, one column for each way to checkpoint."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TextIO

from rich.table import Table
from rich.text import Text

from ldlm_lint.report.cells import clean
from ldlm_lint.report.console import console_of
from ldlm_lint.report.verdicts import amount

KINDS = (
    ("parameters", "parameters"),
    ("gradients", "gradients"),
    ("optimizer state", "optimizer state"),
    ("activations", "activations"),
    ("temporaries", "temporaries, recomputed"),
    ("inputs", "batch"),
    ("buffers", "buffers"),
)
NOT_IN_IT = (
    "not in these figures: the CUDA context, workspaces inside kernels (cuDNN, cuBLAS), fragmentation of the allocator, "
    "NCCL and DDP buckets, sharding (one device holds the whole model), other data that the program keeps (an EMA copy)"
)
PEAK, KEPT = "peak", "kept by the forward"
_DETAILS = ("phase of the peak", "of it saved by autograd")
_WIDTH = 160


def write_memory(memory: Mapping[str, Any], stream: TextIO, *, notes: Sequence[str], capacity: int = 0) -> None:
    """Write the figures of an evidence file's topic ``memory``; with ``capacity`` (bytes) also what fits into it."""
    console = console_of(stream)
    if not console.is_terminal:
        console.width = _WIDTH
    for line in head(memory):
        console.print(clean(line), soft_wrap=True)
    with console.capture() as captured:
        console.print(_table(memory["variants"]))
    stream.write("".join(f"{line.rstrip()}\n" for line in captured.get().splitlines()))
    failed = [f"{one['name']}: the step failed: {one['error']}" for one in memory["variants"] if one["error"]]
    for note in (*failed, *notes, NOT_IN_IT):
        console.print(Text.assemble(("note: ", "bold"), clean(note)), soft_wrap=True)
    if capacity:
        console.print(answer(memory, capacity), soft_wrap=True)


def answer(memory: Mapping[str, Any], capacity: int) -> str:
    """A sentence that says whether the model fits; the figures are lower bounds, so the remaining memory must hold
    everything that they omit. Without a loss, which can be the largest part, it says that this was not measured."""
    variants = memory["variants"]
    as_is = variants[0]
    size = amount(capacity, "bytes")
    left = capacity - as_is["peak_bytes"]
    has_loss = memory.get("loss", True)
    if left >= 0 and not has_loss:
        return (
            f"Whether it fits into {size} was not measured: the function returned no loss, so the memory of the loss and of its "
            f"backward pass is missing. Without them {amount(left, 'bytes')} are left; return (model, batch, loss)."
        )
    if left >= 0:
        share = left / capacity
        return f"It fits into {size} as it is: {amount(left, 'bytes')} ({share:.0%}) are left for everything that is not counted."
    over = f"It does not fit into {size}: {amount(-left, 'bytes')} too much as it is"
    fitting = [one for one in variants[1:] if not one["error"] and one["peak_bytes"] <= capacity]
    if not fitting:
        return over + (", and also with checkpoints." if len(variants) > 1 else ".")
    best = min(fitting, key=lambda one: one["peak_bytes"])
    spare = amount(capacity - best["peak_bytes"], "bytes")
    if not has_loss:
        return f"{over}; with {best['name']} {spare} are left for the loss and its backward pass, which were not measured."
    return f"{over}; with {best['name']} it fits, and {spare} are left."


def head(memory: Mapping[str, Any]) -> list[str]:
    """The measurement as lines: the model, the batch, and the method."""
    request = memory["request"]
    types = ", ".join(f"{count:,} {name}" for name, count in memory["parameter_types"].items())
    frozen = f" ({memory['parameters_frozen']:,} frozen)" if memory["parameters_frozen"] else ""
    blocks = ", ".join(f"{count} {name}" for name, count in memory["blocks"].items()) or "none found"
    autocast = f", autocast {request['autocast']}" if request["autocast"] else ""
    how = f"{memory['device']}, counted as on {request['device']}" if not request["real"] else "real tensors on the CPU"
    return [
        f"{memory['model']}: parameters {types}{frozen}; repeated blocks: {blocks}",
        f"batch {', '.join(memory['batch'])}{autocast}; optimizer {request['optimizer']}; {how}",
        "",
    ]


def rows(variants: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, Sequence[str]]]:
    """The figures of variants that did not fail, by kind: a label, and a cell for each of them."""
    for kind, label in KINDS:
        yield label, [amount(one["bytes_at_peak"][kind], "bytes") for one in variants]
    yield PEAK, [amount(one["peak_bytes"], "bytes") for one in variants]
    yield "phase of the peak", [one["peak_phase"] for one in variants]
    yield KEPT, [amount(one["kept_for_backward_bytes"], "bytes") for one in variants]
    yield "of it saved by autograd", [amount(one["saved_by_autograd_bytes"], "bytes") for one in variants]
    yield "modules run again", [f"{sum(one['recomputed_in_backward'].values()):,}" for one in variants]


def _table(variants: Sequence[Mapping[str, Any]]) -> Table:
    shown = [one for one in variants if not one["error"]]
    table = Table(box=None, pad_edge=False, show_edge=False, padding=(0, 3, 0, 0))
    table.add_column("bytes at the peak of one training step")
    for one in shown:
        table.add_column(one["name"], justify="right")
    for label, cells in rows(shown):
        style = "bold" if label == PEAK else ""
        if label == KEPT:
            table.add_row("")
        indent = "  " if label in _DETAILS else ""
        table.add_row(Text(f"{indent}{label}", style), *(Text(cell, style) for cell in cells))
    return table
