"""unsynchronized-copy-to-host: copies that are read before they have arrived, also if a helper makes the copy and a caller reads it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ldlm_lint.concepts.async_copies import AsyncCopies, Read
from ldlm_lint.edits.written_parts import without_keywords
from ldlm_lint.model import Applicability, Consequence, Fix, Frequency, Reference, Related, Rule
from ldlm_lint.wording import quoted

if TYPE_CHECKING:
    from ldlm_lint.checkers.project_code import ProjectCode
    from ldlm_lint.model import Finding
    from ldlm_lint.program.handles import Call

RULE = Rule(
    code="E7110",
    symbol="unsynchronized-copy-to-host",
    frequency=Frequency.STEP,
    consequence=Consequence.WRONG_RESULT,
    message="%(read)s can read wrong values: with `non_blocking=True` this copy returns before the GPU has written it; "
    "drop `non_blocking=True`, or synchronize before the read",
    summary="A copy to the CPU with `non_blocking=True` whose values are read without a synchronization.",
    rationale="For a CUDA tensor, `tensor.to('cpu', non_blocking=True)` returns a pinned tensor immediately and "
    "copies later, on the current stream. The host does not wait, so code that reads the values before a "
    "synchronization sees whatever the memory contained.",
    cost="Wrong numbers from time to time: in logs, metrics, saved files or decisions. Not measured here.",
    exceptions="A read after `torch.cuda.synchronize()`, after a wait for the stream or an event, or after another "
    "copy that blocks; a tensor that was already on the CPU.",
    versions="All versions.",
    verification="Needs a GPU: fill a large tensor on a busy stream, copy it with `non_blocking=True`, and compare "
    "the values read immediately with those read after `torch.cuda.synchronize()`. On a CPU both are equal.",
    references=(
        Reference(
            "A guide on good usage of non_blocking and pin_memory()",
            "https://docs.pytorch.org/tutorials/intermediate/pinmem_nonblock.html",
        ),
        Reference(
            "CUDA semantics: pinned memory buffers", "https://docs.pytorch.org/docs/stable/notes/cuda.html#use-pinned-memory-buffers"
        ),
    ),
    reads=("py",),
    triggers=(),
    applicability=Applicability.SAFE,
    fix_safety="Safe on every supported version: the copy then waits until the values have arrived, as it does by "
    "default, so the program reads the intended values. Unsafe in a file that captures CUDA graphs, because a copy "
    "that waits cannot be captured.",
    overrides="the values are wrong with it",
)

_CAPTURES = (b"CUDAGraph", b"cuda.graph", b"make_graphed_callables")
_CAPTURE_REASON = "a copy that waits cannot be captured in a CUDA graph, and this file captures one"
_READ_HERE = "the copy is read here"


def find(code: ProjectCode) -> Iterator[Finding]:
    """The copies that their function, or a known caller that receives them, reads before it waits."""
    for copy in code[AsyncCopies].all():
        read = code[AsyncCopies].read_of(copy)
        if read is not None:
            yield _finding(code, copy, read)


def _finding(code: ProjectCode, copy: Call, read: Read) -> Finding:
    source, is_here = code.source(read.reader.module), read.reader.function == copy.function
    described = "an f-string" if read.is_formatted else quoted(source.slice(read.span))
    is_in_file = read.reader.module is copy.module
    is_elsewhere = not is_in_file or read.line != copy.line_span
    related = (Related(read.span if is_in_file else read.line, _READ_HERE),) if is_elsewhere else ()
    return code.finding(RULE, copy.span, {"read": described}, related, fix=_fix(code, copy) if is_here else None, confidence=RULE.confidence)


def _fix(code: ProjectCode, copy: Call) -> Fix | None:
    """Drop the argument."""
    edits = without_keywords(copy, ["non_blocking"])
    reason = _CAPTURE_REASON if any(word in code.source(copy.module).data for word in _CAPTURES) else ""
    level = Applicability.UNSAFE if reason else Applicability.SAFE
    return Fix("drop non_blocking=True, so that the copy waits", edits, level, reason) if edits else None
