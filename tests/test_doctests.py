"""The examples in docstrings are true."""

from __future__ import annotations

import doctest
import importlib
from pathlib import Path

from collected import for_every

PACKAGE = Path(__file__).resolve().parent.parent / "ldlm_lint"
WITH_EXAMPLES = sorted(path for path in PACKAGE.rglob("*.py") if ">>> " in path.read_text(encoding="utf-8"))


@for_every("path", WITH_EXAMPLES, ids=lambda path: path.relative_to(PACKAGE).as_posix())
def test_examples_in_docstrings(path: Path) -> None:
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    tried = doctest.testmod(importlib.import_module(".".join(parts).removesuffix(".__init__")))
    assert tried.attempted and not tried.failed
