"""Names that are about the ranks of a training: what communicates between them, and tests of how many there are."""

from __future__ import annotations

from ldlm_lint.patterns import lazily

_REDUCES = lazily(r"reduc|gather|broadcast|synchron|sync_|aggregat|all_ranks|any_rank|across|consensus|agree|allsum|\bpmean|global")
_COUNTS = lazily(r"(?i)world_size|num_process|n_?gpus?\b|distributed|\bddp\b|is_dist|single")
_LOCAL = ("builtins.", "functools.", "numpy.", "einops.", "math.", "cv2.")


def communicates(name: str) -> bool:
    """Whether a function says by its name that it communicates with the other ranks."""
    return _REDUCES.search(name.lower()) is not None


def is_local(name: str) -> bool:
    """Whether a function, by its dotted name, belongs to a package that knows of no ranks: ``einops.reduce``, ``torch.gather``."""
    return name.startswith(_LOCAL) or (name.startswith("torch.") and not name.startswith("torch.distributed."))


def asks_for_ranks(name: str) -> bool:
    """Whether a name in a test says how many ranks there are, or whether there are several."""
    return _COUNTS.search(name) is not None
