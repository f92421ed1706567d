"""environment-set-too-late: variables that a program sets after the process group, or the CUDA allocator, has read them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from ldlm_lint.concepts.environment import Environment, EnvironmentWrite
from ldlm_lint.concepts.environment_reads import EnvironmentReads
from ldlm_lint.edits.lines import delete_line
from ldlm_lint.edits.written_parts import bound_in
from ldlm_lint.model import Applicability, Confidence, Consequence, Edit, Finding, Fix, Reference, Related, Rule, Span
from ldlm_lint.patterns import lazily
from ldlm_lint.program.handles import Call
from ldlm_lint.python.skim import without_comments
from ldlm_lint.rules.environment_aliases import DEPRECATED_NCCL_VARIABLE
from ldlm_lint.rules.environment_decisions import decide
from ldlm_lint.rules.settings import Setting, Value
from ldlm_lint.source import Source

if TYPE_CHECKING:
    from ldlm_lint.checkers.project_code import ProjectCode

RULE = Rule(
    code="W7223",
    symbol="environment-set-too-late",
    consequence=Consequence.CONFIG,
    message="`%(name)s` is set after %(done)s, when it has already been read: the value has no effect there; set it before %(doing)s",
    summary="A `TORCH_NCCL_` variable that Python sets after `init_process_group`, or an option of the CUDA allocator after its first use.",
    rationale="torch reads `TORCH_NCCL_*` in the constructor of the NCCL process group. A later assignment to "
    "`os.environ` silently changes nothing for this group. NCCL's own variables are read later, when the first "
    "communicator is created, so they are not reported. The CUDA allocator reads `PYTORCH_CUDA_ALLOC_CONF` when it "
    "starts, with the first tensor on a GPU.",
    cost="A setting that the project relies on has no effect. Not measured.",
    exceptions="A group that is created later, or a child process that inherits the environment, does read the value.",
    versions="torch 2.0 to 2.13.",
    verification="Print the variable just before `init_process_group`; with TORCH_CPP_LOG_LEVEL=INFO the group logs its settings.",
    references=(
        Reference(
            "PyTorch: ProcessGroupNCCL environment variables",
            "https://docs.pytorch.org/docs/stable/torch_nccl_environment_variables.html",
        ),
        Reference(
            "PyTorch: memory management of CUDA",
            "https://docs.pytorch.org/docs/stable/notes/cuda.html#optimizing-memory-usage-with-pytorch-cuda-alloc-conf",
        ),
    ),
    reads=("py",),
    triggers=(),
    applicability=Applicability.UNSAFE,
    fix_safety="Unsafe: a setting that has had no effect so far takes effect. The assignment moves before the call, "
    "with the comments above it. No fix is offered if its value may depend on the code in between, if the file "
    "mentions the variable elsewhere, or if another rule reports the value.",
)

_OF_ALLOCATOR = frozenset({"PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF"})
_PREFIX = "TORCH_NCCL_"
# The names these had before torch 2.2; NCCL's own variables are read later, with the first communicator.
_OLD_NAMES = frozenset({"NCCL_BLOCKING_WAIT", "NCCL_ASYNC_ERROR_HANDLING", "NCCL_DESYNC_DEBUG", "NCCL_ENABLE_TIMING"})
# Variables that together configure the heartbeat are not activated one by one.
_NEVER_MOVED = frozenset({"TORCH_NCCL_ENABLE_MONITORING", "TORCH_NCCL_BLOCKING_WAIT", "NCCL_BLOCKING_WAIT"})
_TARGET = lazily(rb"[ \t]*(?:\w+[ \t]*=[ \t]*)?\Z")


def find(code: ProjectCode) -> Iterator[Finding]:
    """Every write after the code that has already read the variable."""
    reads = code[EnvironmentReads]
    written = list(code[Environment].writes(lambda name: name in _OF_ALLOCATOR or _is_read_by_group(name)))
    for write in written:
        is_of_allocator = write.name in _OF_ALLOCATOR
        reader = (reads.by_allocator if is_of_allocator else reads.by_group).before(write.spot)
        if reader is None or any(_is_before(other, write) for other in written):
            continue
        done = "the CUDA allocator was started" if is_of_allocator else "the process group was created"
        doing = "the GPU is used" if is_of_allocator else "the process group is created"
        args = {"name": write.name, "done": done, "doing": doing}
        confidence = RULE.confidence if reader.module is write.at.module else Confidence.MEDIUM
        related = [Related(reader.spot.line_span, f"{doing} here")]
        yield code.finding(RULE, _span(code, write), args, related, fix=None if is_of_allocator else _fix(code, write, reader), confidence=confidence)


def _is_read_by_group(name: str) -> bool:
    """Whether the constructor of a process group reads a variable."""
    return name.startswith(_PREFIX) or name in _OLD_NAMES


def _is_before(other: EnvironmentWrite, write: EnvironmentWrite) -> bool:
    """Whether the same variable is set at the top of the file, or higher up in the function, as well."""
    if other is write or other.name != write.name:
        return False
    mine, its = write.spot, other.spot
    return its.place < mine.place if its.function == mine.function else its.function.is_module


def _span(code: ProjectCode, write: EnvironmentWrite) -> Span:
    """The statement or call that sets a variable."""
    if isinstance(write.at, Call):
        return write.at.span
    bound = bound_in(code.source(write.at.module), write.at.module.table, 0, write.at.place)
    return write.at.span if bound is None else write.at.span._replace(end=bound.whole.end)


def _fix(code: ProjectCode, write: EnvironmentWrite, reader: Call) -> Fix | None:
    """Move an assignment, with the comments above it, in front of the call that should read it.

    None if the value may depend on the code in between, where the file mentions the variable elsewhere, or where another
    rule is against the value, which has had no effect so far.
    """
    if write.written.put is None or write.given_by is not None or len(write.texts) != 1 or not write.spot.is_beside(reader.spot):
        return None
    source, span = code.source(write.written.module), _span(code, write)
    lines, head = _lines_of(source, span), source.data[source.line_starts[reader.line - 1] : reader.span.start]
    mentions = re.findall(rb"(?<!\w)" + write.name.encode() + rb"(?!\w)", without_comments(source.data))
    is_alone = len(mentions) == 1 and lines is not None and _TARGET.match(head) is not None and _lines_of(source, reader.span, head) is not None
    if lines is None or not is_alone or write.name in _NEVER_MOVED or not _is_movable(write, reader, source.slice(span)) or _is_disputed(code, write, span):
        return None
    moved, start = source.slice(lines), source.line_starts[reader.line - 1]
    ended = moved if moved.endswith(("\n", "\r")) else moved + source.newline
    edits = (Edit(Span(lines.path, start, start, lines.cell), ended), Edit(lines, ""))
    # The assignments after one call move together, so that they keep their order.
    together = f"earlier:{lines.path}:{lines.cell}:{start}"
    return Fix(f"set {write.name} before the process group is created", edits, Applicability.UNSAFE, "a setting that has had no effect so far takes effect", together)


def _is_movable(write: EnvironmentWrite, reader: Call, text: str) -> bool:
    """Whether an assignment reads only literals and names bound before the group is created."""
    without_texts = re.sub(r"([\"']).*?\1", "", text)
    names = set(re.findall(r"[^\W\d]\w*", without_texts))
    bound = (event for event in reader.function.events if event.kind == "bind" and reader.place <= event.spot.place < write.written.place)
    return "(" not in text and not any(event.name in names for event in bound)


def _is_disputed(code: ProjectCode, write: EnvironmentWrite, span: Span) -> bool:
    """Whether a rule about values reports this one."""
    setting = Setting(write.name, (Value(write.texts[0], None),), span)
    return any(one.rule != DEPRECATED_NCCL_VARIABLE.symbol for one in decide((setting,), code.facts(write.written.module)))


def _lines_of(source: Source, span: Span, head: bytes = b"") -> Span | None:
    """The lines of a statement with the comment after it and those right above it; None if other code is on them."""
    lines = delete_line(source, span).span
    before, after = source.data[lines.start : span.start], source.data[span.end : lines.end].strip()
    if before.removesuffix(head).strip() or (after and not after.startswith(b"#")):
        return None
    start, indent = lines.start, re.match(rb"[ \t]*", source.data[lines.start : lines.end])
    while start and indent is not None:
        above = source.data.rfind(b"\n", 0, start - 1) + 1
        if not source.data.startswith(indent[0] + b"#", above):
            break
        start = above
    return Span(lines.path, start, lines.end, lines.cell)
