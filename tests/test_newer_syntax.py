"""What a newer Python may read is said to be so, and a plain mistake is not."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from collected import for_every
from harness import pylint_in_process

from ldlm_lint.code.newer_syntax import certain_version, newer_python, possible_version
from ldlm_lint.config import Config
from ldlm_lint.engine import run
from ldlm_lint.model import Finding, Severity

OLD = (3, 10)


@for_every(
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


@for_every(
    ("line", "message", "possible", "certain"),
    [
        ("type Batch = dict[str, int]", "invalid syntax", (3, 12), (3, 12)),
        ("class Box[T = int]:", "invalid syntax", (3, 13), (3, 13)),
        ("def first[T: (int, str)](values, key=None):", "expected '('", (3, 12), (3, 12)),
        ('name = f"{cfg["dir"]}"', "f-string: unmatched '['", (3, 12), None),
        ('name = f"{', "unterminated string literal (detected at line 3)", (3, 12), None),
        ("except KeyError, ValueError:", "multiple exception types must be parenthesized", (3, 14), None),
        ('text = t"{name}"', "invalid syntax", (3, 14), None),
        ('name = "dir', "unterminated string literal (detected at line 3)", None, None),
        ("if ready", "expected ':'", None, None),
        ("x = first second", "invalid syntax", None, None),
    ],
)
def test_what_only_newer_pythons_read_and_what_they_may_read(line, message, possible, certain):
    assert (possible_version(line, message, OLD), certain_version(line, OLD)) == (possible, certain)


SURE = "import torch\n\n\nclass Box[T]:\n    pass\n"
MAYBE = 'import torch\n\ntorch.save({}, f"{cfg["dir"]}/state.pt")\n'
MISTAKE = "import torch\n\nfor batch in loader\n    pass\n"
NEEDS = {
    "pyproject.toml": '[project]\nname = "small"\nrequires-python = ">=3.12,<3.15"\n',
    "setup.py": "setup(\n    name='small',\n    python_requires='>= 3.12',\n)\n",
    "setup.cfg": "[options]\npython_requires = >=3.12\n",
    ".python-version": "3.12.4\n",
    "environment.yml": "name: small\ndependencies:\n  - python=3.12\n  - pytorch\n",
}
POETRY = '[tool.poetry]\nname = "small"\n[tool.poetry.dependencies]\npython = "^3.12"\n'
CLASSIFIED = '[project]\nname = "small"\nclassifiers = ["Programming Language :: Python :: 3.12", "Programming Language :: Python :: 3.13"]\n'
OLDER = '[project]\nname = "small"\nrequires-python = ">=3.9"\nclassifiers = ["Programming Language :: Python :: 3.12"]\n'


def unparsable(root: Path, text: str, **others: str) -> Finding:
    for name, content in {"train.py": text, **others}.items():
        (root / name).write_text(content)
    (finding,) = (one for one in run([root], Config(root=root.as_posix()), base=root).findings if one.rule == "unparsable-file")
    return finding


before = pytest.mark.skipif(sys.version_info >= (3, 12), reason="this Python reads it")


@before
@pytest.mark.parametrize("name", NEEDS)
def test_a_file_that_the_projects_python_reads_is_no_error_of_the_file(name, tmp_path):
    finding = unparsable(tmp_path, MAYBE, **{name: NEEDS[name]})
    assert finding.severity is Severity.INFO
    assert str(dict(finding.args)["error"]).startswith("the project needs Python 3.12 or later (")


@before
@pytest.mark.parametrize("text", [POETRY, CLASSIFIED], ids=["poetry", "classifiers"])
def test_other_tables_of_pyproject_say_it_too(text, tmp_path):
    assert unparsable(tmp_path, MAYBE, **{"pyproject.toml": text}).severity is Severity.INFO


@before
def test_syntax_that_no_older_python_has_is_told_by_its_form(tmp_path):
    finding = unparsable(tmp_path, SURE)
    running = ".".join(map(str, sys.version_info[:2]))
    assert finding.severity is Severity.INFO
    assert str(dict(finding.args)["error"]).startswith(f"this syntax needs Python 3.12 or later and ldlm-lint runs on {running}")


@before
@pytest.mark.parametrize("other", [{}, {"pyproject.toml": OLDER}], ids=["nothing said", "older ones allowed"])
def test_what_may_be_a_mistake_stays_an_error_where_nothing_asks_for_a_newer_python(other, tmp_path):
    finding = unparsable(tmp_path, MAYBE, **other)
    assert finding.severity is Severity.ERROR
    assert "(Python 3.12 and later can read it" in str(dict(finding.args)["error"])


def test_a_mistake_stays_an_error_whatever_the_project_needs(tmp_path):
    assert unparsable(tmp_path, MISTAKE, **{"pyproject.toml": NEEDS["pyproject.toml"]}).severity is Severity.ERROR


@before
def test_a_cell_of_a_notebook_is_treated_alike(tmp_path):
    import json

    cells = [{"cell_type": "code", "metadata": {}, "outputs": [], "execution_count": None, "source": [one]} for one in ("import torch", "type Batch = dict[str, int]")]
    (tmp_path / "draft.ipynb").write_text(json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}))
    (finding,) = run([tmp_path], Config(), base=tmp_path).findings
    assert (finding.rule, finding.severity) == ("unparsable-file", Severity.INFO)


@before
def test_the_exit_code_is_that_of_a_clean_run(tmp_path, monkeypatch, capsys):
    from ldlm_lint.cli import main

    (tmp_path / "train.py").write_text(SURE)
    monkeypatch.chdir(tmp_path)
    assert main(["check", "--no-cache", "."]) == 0
    assert "needs Python 3.12" in capsys.readouterr().out
    assert [one["message"] for one in pylint_in_process(tmp_path) if one["symbol"] == "unparsable-file"] != []
