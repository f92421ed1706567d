"""Notes for the comparison, so that readers do not overinterpret it. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from ldlm_lint.bench.compare import Comparison
from ldlm_lint.bench.samples import Sample


def all_notes(
    comparisons: Sequence[Comparison], samples: Sequence[Sample], rounds: int, guarded: Sequence[str] = ()
) -> list[str]:
    """The notes for a reader; ``guarded`` are keywords that are the only change and are False without CUDA."""
    names = {one.quantity.name for one in comparisons}
    notes = []
    if guarded and all(sample.cuda is False for sample in samples):
        notes.append(
            f"the second tree adds only {', '.join(guarded)}, which does nothing here: the runs had no CUDA device; what "
            "differs is noise, so measure it on the machine with the GPU"
        )
    done = len({one.round for one in samples})
    if done < rounds:
        notes.append(f"the budget ended after {done} of {rounds} rounds")
    if "step time" not in names:
        notes.append("no process took two optimizer steps of torch, so steps were not timed")
    kinds = {one.memory_kind for one in samples}
    if "peak memory" in names and kinds == {"resident"}:
        notes.append(
            "peak memory is the resident memory of the ranks and of their workers: it holds libraries and what allocators keep, and tells "
            "little about activations; ldlm-lint probe memory does"
        )
    return notes
