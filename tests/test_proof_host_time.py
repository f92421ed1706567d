"""Sums of losses and evaluations hold no graphs any more once they are fixed, and nothing else changes by a bit."""

from __future__ import annotations

import re
from pathlib import Path

import proof
import pytest

pytestmark = pytest.mark.torch

OBSERVER = str(proof.PROGRAMS / "host_time" / "observe.py")


@pytest.fixture(scope="module")
def before(tmp_path_factory: pytest.TempPathFactory) -> proof.Run:
    """The program as it is."""
    pytest.importorskip("torch")
    return observed(proof.copy_of("host_time", tmp_path_factory.mktemp("host_time")))


def observed(folder: Path) -> proof.Run:
    return proof.run(folder, "--steps", "20", entry=OBSERVER)


def told(run: proof.Run) -> list[str]:
    """What a program prints; torch's warning that a number was taken from a tensor with a graph is no part of it."""
    return re.findall(r"^(?:step|mean|in all) .*$", run.output, re.M)


def test_sums_without_graphs_change_no_bit(before: proof.Run, tmp_path: Path) -> None:
    folder = proof.copy_of("host_time", tmp_path, "after")
    # How the sums are formatted later is for the reader to check, so the fix is no safe one.
    assert set(proof.fix(folder, unsafe=True, select=["loss-graph-accumulation"]).by_rule) == {"loss-graph-accumulation"}
    after = observed(folder)
    assert len(after.losses) == 20
    assert len(told(after)) == 25
    assert told(after) == told(before)
    assert after.files("runs") == before.files("runs")
    assert before.value("graphs alive") >= 20
    assert after.value("graphs alive") <= 2


def test_an_evaluation_without_gradients_saves_nothing(before: proof.Run, tmp_path: Path) -> None:
    folder = proof.copy_of("host_time", tmp_path, "after")
    assert set(proof.fix(folder, unsafe=True, select=["evaluation-with-gradients"]).by_rule) == {
        "evaluation-with-gradients"
    }
    after = observed(folder)
    assert told(after) == told(before)
    assert after.files("runs") == before.files("runs")
    assert before.value("saved bytes") > 0
    assert after.value("saved bytes") == 0


def test_a_sum_that_loses_its_value_is_noticed(before: proof.Run, tmp_path: Path) -> None:
    folder = proof.copy_of("host_time", tmp_path, "wrong")
    text = (folder / "train.py").read_text(encoding="utf-8")
    assert text.count("total += loss\n") == 1
    (folder / "train.py").write_text(text.replace("total += loss\n", "total = loss.detach()\n"), encoding="utf-8")
    after = observed(folder)
    assert told(after) != told(before)
    assert after.files("runs") != before.files("runs")
