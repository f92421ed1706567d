"""Whether a run that was seen at some lines of a program is sure to have gone through another one."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest
from calling import Enter, Run
from collected import for_every
from dossiers import REFUTED, judged, site, written

from ldlm_lint.evidence.reached import ran
from ldlm_lint.source import Kind, Source

KEEPS = """\
import torch


def train(model, loader, optimizer, keep, path):
    losses = []
    for batch in loader:
        loss = model(batch).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        {kept}
"""
BACKWARD = 9
# Programs: the line that ends in ``# seen`` was seen, the question is about the one that ends in ``# asked``.
CASES = {
    "the same block": (True, "a()  # seen\nb()  # asked\n"),
    "a loop around it": (True, "a()  # seen\nfor x in y:\n    with z:\n        b()  # asked\n"),
    "behind a flag": (False, "a()  # seen\nif keep:\n    b()  # asked\n"),
    "a condition itself": (True, "a()  # seen\nif b():  # asked\n    c()\n"),
    "on a condition's line": (False, "if a(): b()  # seen, asked\n"),
    "the other branch": (False, "if keep:\n    a()  # seen\nelse:\n    b()  # asked\n"),
    "the same branch": (True, "if keep:\n    a()  # seen\n    b()  # asked\n"),
    "what handles a failure": (False, "try:\n    a()  # seen\nexcept E:\n    b()  # asked\n"),
    "what comes in any case": (True, "try:\n    a()  # seen\nfinally:\n    b()  # asked\n"),
    "a case": (False, "a()  # seen\nmatch x:\n    case 1:\n        b()  # asked\n"),
    "behind what goes on": (False, "for x in y:\n    a()  # seen\n    if x:\n        continue\n    b()  # asked\n"),
    "seen behind what goes on": (True, "for x in y:\n    if x:\n        continue\n    b()  # asked\n    a()  # seen\n"),
    "behind another loop's end": (True, "for x in y:\n    if x:\n        break\na()  # seen\nb()  # asked\n"),
    "another function": (False, "def f():\n    a()  # seen\n\ndef g():\n    b()  # asked\n"),
    "a function that it calls": (True, "def f():\n    a()  # seen\n    g()\n\ndef g():\n    b()  # asked\n"),
    "a method that it calls": (
        True,
        "class T:\n    def f(self):\n        a()  # seen\n        self.g()\n    def g(self):\n        b()  # asked\n",
    ),
    "the only caller": (True, "def f():\n    a()  # seen\n\nif __name__ == '__main__':\n    b()  # asked\n    f()\n"),
    "one of two callers": (False, "def f():\n    a()  # seen\n\nif x:\n    b()  # asked\n    f()\nelse:\n    f()\n"),
    "functions that call each other": (False, "a()  # seen\ndef f():\n    g()\ndef g():\n    f()\n    b()  # asked\n"),
    "nothing seen": (False, "b()  # asked\n"),
    "what does not parse": (False, "a()  # seen\nb(  # asked\n"),
}


def _line(text: str, mark: str) -> list[int]:
    return [number for number, line in enumerate(text.splitlines(), 1) if mark in line.partition("# ")[2].split(", ")]


@for_every("name", CASES)
def test_a_line_that_need_not_run_is_not_taken_to_have_run(name):
    expected, text = CASES[name]
    (asked,) = _line(text, "asked")
    assert ran(Source("train.py", text.encode(), Kind.PYTHON), asked, _line(text, "seen")) is expected


def test_what_has_no_branches_ran():
    assert ran(Source("deepspeed.json", b"{}", Kind.JSON), 1, ())


@pytest.mark.parametrize(
    ("kept", "verdict"),
    [
        ("losses.append(loss)", "refuted"),
        ("if keep:\n    losses.append(loss)", "inconclusive"),
        ("if path:\n    continue\nlosses.append(loss)", "inconclusive"),
    ],
)
def test_what_did_not_run_is_not_refuted(enter: Enter, run: Run, tmp_path: Path, kept: str, verdict: str):
    rule = "loss-graph-accumulation"
    text = KEEPS.format(kept=textwrap.indent(kept, " " * 8).strip())
    project = enter({"pyproject.toml": f"[tool.ldlm-lint]\nselect = ['{rule}']\n", "train.py": text})
    place = site(project / "train.py", BACKWARD, project)
    folder = written(tmp_path / "e", project, judged(rule, REFUTED, [place], reason="every graph was freed"))
    _, out, _ = run("check", "--evidence", folder, ".")
    said = "no evidence that the run executed these lines; elsewhere " if verdict == "inconclusive" else ""
    wrong = " (the linter was wrong here)" if verdict == "refuted" else ""
    assert f"probe: {verdict}{wrong}: {said}every graph was freed\n" in out
