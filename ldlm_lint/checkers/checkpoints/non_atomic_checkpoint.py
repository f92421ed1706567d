"""non-atomic-checkpoint: saves over the file of the last one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ldlm_lint.concepts.first_rank import FirstRank
from ldlm_lint.concepts.path_patterns import PathPatterns
from ldlm_lint.concepts.replaced_files import ReplacedFiles
from ldlm_lint.edits.replaced_files import written_beside
from ldlm_lint.edits.written_parts import written_argument
from ldlm_lint.model import (
    Applicability,
    Confidence,
    Consequence,
    Finding,
    Fix,
    Frequency,
    Probe,
    Reference,
    Related,
    Rule,
)

if TYPE_CHECKING:
    from ldlm_lint.checkers.project_code import ProjectCode
    from ldlm_lint.concepts.checkpoint_writes import Write

RULE = Rule(
    code="W7603",
    symbol="non-atomic-checkpoint",
    frequency=Frequency.EPOCH,
    consequence=Consequence.DATA_LOSS,
    message="`torch.save()` overwrites the last checkpoint in place: a run that ends during the save leaves neither "
    "the old nor the new checkpoint; write a temporary file and rename it",
    summary="A checkpoint that is written over the previous one.",
    rationale="`torch.save` truncates its file and fills it again. If the job is preempted, killed or out of disk "
    "space in between, no version of torch can read the file. If the save writes to a temporary name and `os.replace` "
    "follows, the old file stays until the new one is complete.",
    cost="If the job ends during a save, all work since the last other checkpoint.",
    exceptions="File names that contain the step or the epoch, and functions that rename or copy files.",
    versions="All versions.",
    verification="Kill the run during a save and load the file. The test suite contains a program that does so.",
    references=(
        Reference("torch.save", "https://docs.pytorch.org/docs/stable/generated/torch.save.html"),
        Reference("os.replace", "https://docs.python.org/3/library/os.html#os.replace"),
    ),
    reads=("py",),
    triggers=(b"save(",),
    requires=((b"torch",),),
    confidence=Confidence.MEDIUM,
    default=False,
    applicability=Applicability.UNSAFE,
    fix_safety="Unsafe: for a moment both files are on the disk, a process that watches the folder sees a second "
    "name, and a link at that path becomes a file. No fix is offered if the path may be an open file or remote, or if "
    "several ranks save.",
    probe=Probe("checkpoint-files", "a save wrote over the file that the one before had written"),
)

_SPACE = (
    "both files are on the disk for a moment, code that watches the folder sees a second name, and a link at that "
    "path becomes a file"
)


def find(code: ProjectCode) -> Iterator[Finding]:
    """The saves of a training over one file that no code renames."""
    for write, loop in code[ReplacedFiles].written_over():
        yield code.finding(RULE, write.call.span, {}, [Related(loop.line_span, "this training loop runs it")], fix=_fix(code, write))


def _fix(code: ProjectCode, write: Write) -> Fix | None:
    """Save next to the file, then replace it; not if several ranks rename one file, it may be open, or another machine's."""
    call, path = write.call, written_argument(write.call, "f", 1)
    is_remote = any("://" in one for one in code[PathPatterns].of(write.path))
    if path is None or not call.is_dropped or is_remote or code[FirstRank].is_one_of_several(call) or write.path not in call.argument("f", 1).values:
        return None
    edits = written_beside(code.source(call.module), call.span, path.span)
    return Fix("write a temporary file and rename it", edits, Applicability.UNSAFE, _SPACE) if edits else None
