"""Tables that are remembered say what tables say that are made, and whatever a cache holds instead is none."""

from __future__ import annotations

import ast
import pickle

import pytest
from collected import for_every

from ldlm_lint.cache.values import encode
from ldlm_lint.code import plain, unpacked
from ldlm_lint.project import tables
from ldlm_lint.project.tables import Tabled, Tables, recalled, remembered, small, tabled

CODE = """\
import torch
from data import make as loader

def train(model, *args, rate=1e-3, **rest):
    for index, batch in enumerate(loader(args)):
        if index % 10 == 0:
            rest["loss"] = {"value": model(batch), **rest}
        [one for one in batch if one]

class Net(torch.nn.Module):
    size: int = 3
"""


def made() -> Tabled:
    found = tabled(ast.parse(CODE))
    assert found is not None
    return found


@pytest.mark.parametrize("one", [made(), small(made())], ids=["as it is", "as bytes"])
def test_what_is_remembered_is_what_was_made(one: Tabled) -> None:
    found = recalled(remembered(one))
    assert found is not None
    assert found.shown == made().shown
    assert plain(found.table) == plain(made().table)  # type: ignore[arg-type]


def test_a_file_without_a_table_is_remembered_too() -> None:
    assert recalled(remembered(None)) is None


@for_every(
    "data",
    [b"no", pickle.dumps(print), encode(1), encode(((), ())), encode((tuple(made().shown), (0, []))), encode({"a": 1})],
)
def test_anything_else_is_no_table(data: bytes) -> None:
    with pytest.raises(ValueError, match=r"no value|no table|a table of form|unpack"):
        recalled(data)


def test_many_tables_stand_as_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "STANDING", 60)
    known = Tables()
    for name in ("a.py", "b.py"):
        known.put(name, made())
    first, second = known.take("a.py"), known.take("b.py")
    assert first is not None
    assert second is not None
    assert not isinstance(first.table, bytes)
    assert isinstance(second.table, bytes)
    assert plain(unpacked(second.table)) == plain(first.table)
    assert known.take("a.py") is None


def test_what_is_nested_too_deeply_has_no_table_yet() -> None:
    deep = ast.parse("x = 1")
    operand = deep.body[0].value  # type: ignore[attr-defined]
    for _ in range(100_000):
        operand = ast.UnaryOp(ast.USub(), operand, lineno=1, col_offset=0, end_lineno=1, end_col_offset=1)
    deep.body[0].value = operand  # type: ignore[attr-defined]
    assert tabled(deep) is None
