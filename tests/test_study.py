"""Programs of common kinds whose truths are known: no verdict about them contradicts what they do (see `study`)."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest
import study
from collected import for_every
from study import SETTINGS, Comparison, Setting

from ldlm_lint.evidence.model import Judgement, Scope, Site, Verdict

NEEDS = {"accelerated": "accelerate", "trainer": "transformers", "lit": "lightning"}


def test_truths_are_read_from_the_lines_of_a_program() -> None:
    def at(rule: str, *words: str) -> list[str]:
        return [rules[rule] for rules in study.truths(Setting("mixed", words)).values() if rule in rules]

    assert at("optimizer-not-fused") == ["holds"] and at("optimizer-not-fused", "fused") == []
    assert at("clip-before-unscale") == [] and at("clip-before-unscale", "clip-scaled") == ["holds"]
    assert set(study.truths(Setting("trainer"))[_line("trainer", "trainer.train()")].values()) == {"holds", "open"}


def _line(program: str, text: str) -> int:
    return next(number for number, line in enumerate(study.lines(program), 1) if text in line)


@for_every(
    ("verdict", "truth", "wrong"),
    [
        (Verdict.VERIFIED, "", "wrong verified"),
        (Verdict.VERIFIED, "on-cuda", "wrong verified"),
        (Verdict.VERIFIED, "open", ""),
        (Verdict.REFUTED, "holds", "wrong refuted"),
        (Verdict.REFUTED, "", ""),
        (Verdict.INCONCLUSIVE, "holds", ""),
    ],
)
def test_a_verdict_is_wrong_where_it_contradicts_the_truth(verdict: Verdict, truth: str, wrong: str) -> None:
    judgement = Judgement("a-rule", "a claim", verdict, "so", Scope("cpu", "cpu", 1), (Site("a.py", 1),))
    assert Comparison(Setting("gpt"), judgement, truth).wrong == wrong


def test_each_program_of_the_study_is_watched() -> None:
    names = {path.stem for path in study.PROGRAMS.glob("*.py")}
    assert {one.program for one in SETTINGS} == names


def _marks(setting: Setting) -> list[pytest.MarkDecorator]:
    needed = NEEDS.get(setting.program, "torch")
    missing = importlib.util.find_spec(needed) is None
    slow = [pytest.mark.slow] if setting.slow else []
    return [pytest.mark.torch, pytest.mark.skipif(missing, reason=f"{needed} is not installed"), *slow]


@pytest.mark.parametrize("setting", [pytest.param(one, marks=_marks(one), id=str(one)) for one in SETTINGS])
def test_no_verdict_contradicts_the_program(setting: Setting) -> None:
    found = study.studied(setting)
    assert found and [str(one) for one in found if one.wrong] == []


@pytest.mark.parametrize(
    "setting",
    [
        pytest.param(one, marks=[*_marks(one), pytest.mark.slow], id=str(one))
        for one in (
            *study.of("trainer", "limited evaluate", "unlimited", steps=60),
            *study.of("lit", "reads", "kept all", steps=20),
        )
    ],
)
def test_check_reports_of_a_watched_program_what_is_written_in_it(setting: Setting, tmp_path: Path) -> None:
    found = {(one["rule"], one["line"]) for one in study.findings(setting, tmp_path)}
    assert found - study.written(setting.program) == set()
