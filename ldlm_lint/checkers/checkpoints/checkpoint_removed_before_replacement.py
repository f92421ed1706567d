"""checkpoint-removed-before-replacement: the only checkpoint is deleted, then the new one is written."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ldlm_lint.concepts.path_patterns import behind_paths
from ldlm_lint.concepts.replaced_files import Replaced, ReplacedFiles
from ldlm_lint.edits.replaced_files import removed_later, without_removal, written_beside
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

RULE = Rule(
    code="E7606",
    symbol="checkpoint-removed-before-replacement",
    frequency=Frequency.EPOCH,
    consequence=Consequence.DATA_LOSS,
    message="the last checkpoint is deleted here before its replacement is written: a run that ends in between has no "
    "checkpoint left; delete it after the save",
    summary="The only checkpoint is deleted, then the new one is written.",
    rationale="Between the deletion and the end of the save there is no checkpoint at all. A save takes long, fails "
    "on a full disk, and is often what a job is doing when it is preempted. Then the run has nothing to resume from.",
    cost="The whole run, if it ends between the deletion and the end of the save.",
    exceptions="A second checkpoint under another name, a copy or a rename in the same function, temporary and lock "
    "files, and files that a script deletes once before training starts.",
    versions="All versions.",
    verification="Let the save raise an exception, as a full disk does, and look for a checkpoint. The test suite "
    "contains a program that does so.",
    references=(
        Reference("torch.save", "https://docs.pytorch.org/docs/stable/generated/torch.save.html"),
        Reference("os.replace", "https://docs.python.org/3/library/os.html#os.replace"),
    ),
    reads=("py",),
    triggers=(b"remove(", b"unlink(", b"rmtree("),
    requires=((b"save",),),
    confidence=Confidence.MEDIUM,
    applicability=Applicability.DISPLAY,
    fix_safety="Shown only: which files are the old checkpoint, and whether both fit on the disk, is your decision.",
    probe=Probe("checkpoint-files", "the only checkpoint was removed before the next one was written"),
)

_NAMED = frozenset({"param", "free", "attr", "phi", "copy"})


def find(code: ProjectCode) -> Iterator[Finding]:
    """The removals of a training in front of the save that replaces the file."""
    for one in code[ReplacedFiles].removed_before():
        related = [Related(one.write.call.span, "the replacement is written here"), Related(one.loop.line_span, "this training loop runs it")]
        yield code.finding(RULE, one.removal.call.span, {}, related, fix=_fix(code, one))


def _fix(code: ProjectCode, one: Replaced) -> Fix | None:
    """Rename the new file over the old one, or delete the old one after the save."""
    source, removal, save = code.source(one.write.call.module), one.removal.call.span, one.write.call.span
    path = written_argument(one.write.call, "f", 1)
    if one.is_same:
        lines = without_removal(source, removal, save)
        edits = written_beside(source, save, path.span) if path is not None and lines is not None else ()
        reason = "other code can still use the old file until then"
        return Fix("write a temporary file and rename it", tuple(sorted([lines, *edits])), Applicability.DISPLAY, reason) if edits and lines else None
    is_folder = one.removal.call.called_name == "rmtree" and one.removal.path is not None and behind_paths(one.removal.path).kind in _NAMED
    edits = () if is_folder else removed_later(source, removal, save)
    reason = "both checkpoints are on the disk for a moment, and the two must have different names"
    return Fix("delete the old checkpoint after the save", edits, Applicability.DISPLAY, reason) if edits else None
