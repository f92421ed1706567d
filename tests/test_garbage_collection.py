"""The collector's pace is ours for as long as we lint, and what has settled is set aside for as long as pylint runs."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator

import pytest
from pylint.lint import PyLinter

from ldlm_lint import register
from ldlm_lint.garbage_collection import _OF_PYTHON, PACE, Settled, at_our_pace
from ldlm_lint.pylint_host import run
from ldlm_lint.pylint_host.checkers import EngineChecker


def test_the_pace_is_given_back_also_after_a_failure() -> None:
    usual = gc.get_threshold()
    with pytest.raises(ValueError, match="in between"), at_our_pace():
        assert gc.get_threshold() == PACE
        raise ValueError("in between")
    assert gc.get_threshold() == usual


def test_pylint_keeps_its_pace_but_where_the_engine_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []

    def fail(*_: object, **__: object) -> None:
        seen.append(gc.get_threshold())
        raise ValueError("of ours")

    monkeypatch.setattr(run.engine, "run", fail)
    usual, linter = gc.get_threshold(), PyLinter()
    register(linter)
    EngineChecker(linter, {}).close()
    assert (seen, gc.get_threshold(), linter.stats.by_msg) == ([PACE], usual, {"ldlm-internal-error": 1})


@pytest.fixture(autouse=True)
def nothing_set_aside() -> None:
    # Python 3.12 begins with some 400 objects.
    gc.unfreeze()


@pytest.fixture
def settled() -> Iterator[Settled]:
    one = Settled()
    yield one
    one.end()


class _Ring:
    def __init__(self) -> None:
        self.me = self


def test_what_outlives_a_full_collection_is_set_aside_until_the_end(settled: Settled) -> None:
    settled.begin()
    kept = _Ring()
    before = gc.get_freeze_count()
    gc.collect()
    assert gc.get_freeze_count() > before > 0
    assert not any(one is kept for one in gc.get_objects())
    settled.end()
    assert gc.get_freeze_count() == 0
    assert any(one is kept for one in gc.get_objects())


def test_what_comes_and_goes_is_collected_all_the_same(settled: Settled) -> None:
    settled.begin()
    gone = weakref.ref(_Ring())
    gc.collect()
    assert gone() is None
    aside = _Ring()
    gc.collect()
    late = weakref.ref(aside)
    del aside
    gc.collect()
    assert late() is not None
    settled.end()
    gc.collect()
    assert late() is None


def test_what_python_itself_has_set_aside_is_not_taken_for_the_work_of_others(
    monkeypatch: pytest.MonkeyPatch, settled: Settled
) -> None:
    before = len(gc.callbacks)
    with monkeypatch.context() as patch:
        patch.setattr(gc, "get_freeze_count", lambda: 375)
        settled.begin()
    assert len(gc.callbacks) == before + 1 and gc.get_freeze_count() > 375


def test_what_others_have_set_aside_is_theirs() -> None:
    mine = Settled()
    gc.freeze()
    try:
        mine.begin()
        mine.end()
        assert gc.get_freeze_count() > 0
    finally:
        gc.unfreeze()


def test_a_run_that_was_cut_short_is_ended_by_the_next_one(settled: Settled) -> None:
    Settled().begin()
    left = weakref.ref(_Ring())
    settled.begin()
    settled.end()
    gc.collect()
    assert gc.get_freeze_count() < _OF_PYTHON and left() is None


@pytest.mark.parametrize(("jobs", "aside"), [(1, True), (2, False)])
def test_pylint_in_one_process_sets_aside_what_it_keeps(
    monkeypatch: pytest.MonkeyPatch, jobs: int, aside: bool
) -> None:
    def fail(*_: object) -> None:
        raise ValueError("at the end")

    linter = PyLinter()
    linter.config.jobs = jobs
    checker = EngineChecker(linter, {})
    monkeypatch.setattr(EngineChecker, "_report", fail)
    checker.open()
    assert (gc.get_freeze_count() > 0) is aside
    if aside:
        with pytest.raises(ValueError, match="at the end"):
            checker.close()
    assert gc.get_freeze_count() == 0
