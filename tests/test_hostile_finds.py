"""What the fuzzers found: each input broke a property once, and all of them must hold of it now."""

from __future__ import annotations

from pathlib import Path

from collected import for_every
from fuzz.properties import check_fixes, check_lint
from test_bad_input import BEAT

FIXTURES = Path(__file__).parent / "fixtures"
MODEL = (FIXTURES / "missing-activation-checkpointing" / "bad.py").read_text()
STEPS = (FIXTURES / "accumulation-without-no-sync" / "bad.py").read_text()
FINDS = {
    # The name of a file and its text, by what went wrong.
    "a word without the end of its parameter was read for ever": ("run.sh", BEAT + "torchrun train.py --name $'${A'\n"),
    "each round of fixes took one of many comments": ("run.sh", BEAT + "x=1 " + "# ldlm-lint: ignore[all]" * 40 + "\n"),
    "a fix for a file that does not parse": ("model.py", MODEL + "x = \u202e1\n"),
    "a fix for a file that lacks a block": ("model.py", MODEL + "def f():\n"),
    "an index that holds what slots are joined by": ("train.py", STEPS.replace("model(", 'model["a:b;c"](')),
    "no cells": ("a.ipynb", '{"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": []}'),
    "no cell of code": ("a.ipynb", '{"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": [{"cell_type": "markdown", "source": "x"}]}'),
    "a cell of nothing": ("a.ipynb", '{"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": [{"source": "\\n"}]}'),
}


@for_every("what", FINDS)
def test_what_was_found_is_mended(what: str) -> None:
    name, text = FINDS[what]
    check_lint(name, text.encode())
    check_fixes(name, text.encode())
