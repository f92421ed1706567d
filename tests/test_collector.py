"""The collector's pace is ours for as long as we lint, and no longer."""

from __future__ import annotations

import gc

import pytest
from pylint.lint import PyLinter

from ldlm_lint.checkers.project import ProjectChecker
from ldlm_lint.collector import PACE, at_our_pace


def test_the_pace_is_given_back_also_after_a_failure() -> None:
    usual = gc.get_threshold()
    with pytest.raises(ValueError, match="in between"), at_our_pace():
        assert gc.get_threshold() == PACE
        raise ValueError("in between")
    assert gc.get_threshold() == usual


def test_pylint_keeps_its_pace_but_where_a_file_is_linted(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []
    monkeypatch.setattr(ProjectChecker, "_take", lambda *_: seen.append(gc.get_threshold()))
    usual = gc.get_threshold()
    ProjectChecker(PyLinter()).leave_module(None)  # type: ignore[arg-type]
    assert (seen, gc.get_threshold()) == ([PACE], usual)


def test_a_failure_of_ours_is_one_message_of_the_file(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise ValueError("of ours")

    linter, told = PyLinter(), []
    monkeypatch.setattr(ProjectChecker, "_take", fail)
    monkeypatch.setattr(linter, "add_message", lambda symbol, **kwargs: told.append((symbol, kwargs["args"]["error"])))
    ProjectChecker(linter).leave_module(None)  # type: ignore[arg-type]
    assert told == [("ldlm-internal-error", "leave_module: ValueError: of ours")]
