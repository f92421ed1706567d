"""What a newer Python may read is said to be so, and a plain mistake is not."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from ldlm_lint.config import Config
from ldlm_lint.engine import run
from ldlm_lint.python.newer_syntax import newer_python

OLD = (3, 10)


@pytest.mark.parametrize(
    ("line", "version"),
    [
        ("except* ValueError:", "3.11"),
        ("    except *(KeyError, ValueError):", "3.11"),
        ("def first[T](values: list[T]) -> T:", "3.12"),
        ("    async def first[T](values: list[T]) -> T:", "3.12"),
        ("class Box[T]:", "3.12"),
        ("type Batch = dict[str, int]", "3.12"),
        ("type Pair[T] = tuple[T, T]", "3.12"),
        ('print "epoch"', ""),
        ("def broken(:", ""),
        ("type = 3 +", ""),
        ("classes[0] = ", ""),
        ("except ValueError, error:", ""),
    ],
)
def test_the_python_that_may_read_a_line(line: str, version: str) -> None:
    assert newer_python(line, "invalid syntax", OLD) == version


def test_an_f_string_that_cannot_be_read_may_be_a_newer_one() -> None:
    assert newer_python('path = f"{cfg["dir"]}"', "f-string: unmatched '['", OLD) == "3.12"
    assert newer_python('print "value of f"', "Missing parentheses in call to 'print'", OLD) == ""


def test_a_python_that_is_new_enough_is_not_told_to_be_newer() -> None:
    assert newer_python('path = f"{cfg["dir"}"', "f-string: expecting '}'", (3, 12)) == ""
    assert newer_python("except* ValueError:", "invalid syntax", (3, 11)) == ""


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="this Python reads it")
def test_the_finding_names_both_pythons(tmp_path: Path) -> None:
    (tmp_path / "batch.py").write_text("type Batch = dict[str, int]\n")
    (finding,) = run([tmp_path], Config(), base=tmp_path).findings
    running = ".".join(map(str, sys.version_info[:2]))
    assert dict(finding.args)["error"] == f"invalid syntax (Python 3.12 and later can read it, ldlm-lint runs on {running})"
