"""Stands for ``torchrun`` in launch scripts: keeps what the script gave it, then launches for real.

``torchrun.py RECORD OBSERVER WORD...``: the words and the environment go to RECORD as JSON; OBSERVER, unless empty,
runs the entry program, which is the first word that names a Python file. ``-`` launches nothing.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path


def main() -> None:
    """Record, then become the launcher."""
    record, observer, *words = sys.argv[1:]
    told = {"words": words, "environment": dict(os.environ)}
    Path(record).write_text(json.dumps(told), encoding="utf-8")
    if observer == "-":
        return
    if observer:
        entry = next(index for index, word in enumerate(words) if word.endswith(".py"))
        words.insert(entry, observer)
    os.execv(sys.executable, [sys.executable, "-m", "torch.distributed.run", *words])


if __name__ == "__main__":
    main()
