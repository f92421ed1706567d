"""The examples of docs/core.md run, and the names that it mentions exist."""

from __future__ import annotations

import re
from pathlib import Path

from linking import Alone, program_of

from ldlm_lint.program import handles
from ldlm_lint.program.origins import Origin

TEXT = (Path(__file__).parent.parent / "docs" / "core.md").read_text(encoding="utf-8")
TRAIN = """
import torch

def main():
    torch.optim.AdamW(params)
    optimizer = torch.optim.AdamW(params, fused=True)
    optimizer.step()
"""


def test_the_examples_run():
    names: dict[str, object] = {}
    for block in re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL):
        exec(compile(block, "docs/core.md", "exec"), names)
    code = Alone(program_of({"train.py": TRAIN}))
    assert list(names["find"](code)) == [(5, "AdamW")]
    assert [call.line for call in names["dropped"](code, {"torch.optim.AdamW"})] == [5]
    (called, _) = code.calls({"torch.optim.AdamW"})
    assert not code[names["Trained"]].is_trained(called.function)


def test_the_table_names_what_handles_have():
    rows = re.findall(r"^\| `(\w+)` \| (.*) \|$", TEXT, re.MULTILINE)
    assert {name for name, _ in rows} == {"Call", "Expr", "Argument", "Function", "Class", "Alternative", "Origin"}
    for name, what in rows:
        kind = Origin if name == "Origin" else getattr(handles, name)
        known = {*dir(kind), *getattr(kind, "__dataclass_fields__", ())}
        assert {one.partition("(")[0] for one in re.findall(r"`(\w+(?:\([^`]*\))?)`", what)} <= known, name


def test_the_concepts_that_it_names_exist():
    named = re.search(r"Often asked: (.*?)\n\n", TEXT, re.DOTALL)[1]
    text = "".join(path.read_text(encoding="utf-8") for path in Path(handles.__file__).parent.parent.parent.joinpath("concepts").glob("*.py"))
    for name in re.findall(r"`(\w+)`", named):
        assert f"class {name}(" in text, name
