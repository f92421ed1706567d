"""Programs that make a loader and go through it, and what the project says of that loader."""

from __future__ import annotations

import textwrap

from snippets import ask_about_call

IMPORT = "from torch.utils.data import DataLoader\n"
MAKE = IMPORT + "def make(data):\n    return DataLoader(data, num_workers=4)\n"
STEP = "def train_one_epoch(loader):\n    for batch in loader:\n        step(batch).backward()\n"

REITERATED, TRAINS = "loader-is-reiterated", "loader-feeds-training"


def epochs(over: str, count: str = "range(9)") -> str:
    """Epochs of training over an expression."""
    return f"for epoch in {count}:\n    for batch in {over}:\n        step(batch).backward()\n"


def answers(files: dict[str, str] | str, at: str | None = None) -> tuple[bool, bool]:
    """Whether the first DataLoader of the file ``at`` is iterated again and again, and whether it feeds a training."""
    files = {"train.py": IMPORT + textwrap.dedent(files)} if isinstance(files, str) else files
    return tuple(ask_about_call(question, files, "DataLoader", at).holds for question in (REITERATED, TRAINS))
