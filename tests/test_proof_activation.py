"""Activation checkpointing, before and after its fix: the same training bit for bit, fewer bytes saved for backward."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
from proof import PROGRAMS, Run, copy_of, fix, run

pytestmark = pytest.mark.torch

_RULE = ["missing-activation-checkpointing"]
_SAVED = re.compile(r"^saved (\d+)$", re.MULTILINE)
_TOLD = re.compile(r"^(?:model|gradients|evaluation|keys) .*$", re.MULTILINE)


def prepared(program: str, into: Path, name: str, *, fixed: bool) -> Path:
    """A copy of a program with the meter of saved bytes beside it."""
    project = copy_of(program, into, name)
    if fixed:
        fix(project, unsafe=True, select=_RULE)
    shutil.copy(PROGRAMS / "saved.py", project)
    return project


def saved(done: Run, steps: int = 8) -> list[int]:
    """The bytes that a step of each model keeps for its backward pass."""
    found = [int(one) for one in _SAVED.findall(done.output)]
    assert all(len(set(found[at : at + steps])) == 1 for at in range(0, len(found), steps)), found
    return found[::steps]


def same(before: Run, after: Run) -> bool:
    """Losses, norms of all gradients, the output in evaluation and the names of the parameters, bit for bit."""
    told = _TOLD.findall(before.output)
    return bool(told) and before.losses == after.losses and told == _TOLD.findall(after.output)


def keeps_less(before: Run, after: Run, factor: float) -> bool:
    """Whether the one model of both runs keeps less than one in ``factor`` of the bytes."""
    (one,), (other,) = saved(before), saved(after)
    return other * factor < one


@pytest.fixture(scope="module")
def gpt(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path, Run]:
    """The GPT as it is and fixed, and a run of the first."""
    into = tmp_path_factory.mktemp("gpt")
    before, after = prepared("gpt", into, "before", fixed=False), prepared("gpt", into, "after", fixed=True)
    return before, after, run(before)


def test_gpt_trains_the_same_and_keeps_a_third(gpt):
    _, after, before = gpt
    done = run(after)
    assert same(before, done)
    assert keeps_less(before, done, 3), (saved(before), saved(done))


def test_gpt_resumes_from_a_checkpoint_of_before(gpt):
    older, after, before = gpt
    done = run(after, "--resume", str(older / "half.pt"))
    assert done.losses == before.losses[len(before.losses) // 2 :]


def test_gpt_that_was_pickled_as_a_whole_before_trains_on(gpt):
    older, after, before = gpt
    done = run(after, "--whole", str(older / "whole.pt"))
    assert same(before, done)
    assert keeps_less(before, done, 3)


def test_gpt_in_two_ranks(gpt):
    older, after, _ = gpt
    one, other = run(older, ranks=2), run(after, ranks=2)
    assert same(one, other)
    assert keeps_less(one, other, 3)


def test_gpt_compiled(gpt):
    _, after, before = gpt
    done = run(after, "--compile")
    assert len(done.losses) == len(before.losses)
    # The compiler draws the random numbers of dropout in an order of its own.
    assert all(abs(x - y) < 0.05 for (_, x), (_, y) in zip(before.losses, done.losses, strict=True)), done.losses


def test_ddp_searches_unused_parameters_of_a_checkpointed_model(tmp_path):
    project = copy_of(PROGRAMS.parent / "demonstrations" / "find-unused-with-reentrant-checkpoint", tmp_path)
    (project / "fixed.py").unlink()
    run(project, entry="bad.py", succeeds=False)
    (project / "store").unlink(missing_ok=True)
    fix(project, unsafe=True, select=["find-unused-with-reentrant-checkpoint"])
    assert "steps: 2" in run(project, entry="bad.py").output
