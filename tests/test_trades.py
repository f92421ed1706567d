"""Fixes that trade speed for memory: bulk runs leave them out, and they are applied where somebody agrees to them."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path

import pytest
from calling import Enter, Run
from harness import FIXTURES, strip

from ldlm_lint.cli import main
from ldlm_lint.model import Applicability
from ldlm_lint.rules import ALL
from ldlm_lint.select import Layer, by_name

RULE = "missing-activation-checkpointing"
CODE = "R7502"
MODEL = strip((FIXTURES / RULE / "bad.py").read_bytes())
FIXED = strip((FIXTURES / RULE / "bad.fixed.py").read_bytes())
NOTE = f"this fix trades speed for memory: use --interactive to decide, or --unsafe-fixes --select {RULE} to apply it"


@pytest.fixture
def project(enter: Enter) -> Path:
    return enter({"pyproject.toml": "[tool.ldlm-lint]\n", "model.py": MODEL})


def after(project: Path, run: Run, *flags: str, settings: str = "") -> bool:
    """Whether all unsafe fixes change the model to its fixed form; else they leave it alone."""
    (project / "pyproject.toml").write_text(f"[tool.ldlm-lint]\n{settings}")
    run("--fix", "--unsafe-fixes", *flags, ".")
    text = (project / "model.py").read_bytes()
    assert text in (MODEL, FIXED)
    return text == FIXED


@pytest.mark.parametrize(
    ("flags", "settings"),
    [
        ([], ""),
        (["--select", "ALL"], ""),
        (["--select", "75"], ""),
        (["--select", "R7"], ""),
        (["--extend-select", "R75"], ""),
        ([], 'select = ["ALL"]\n'),
        ([], 'extend-select = ["75"]\n'),
        # A select of the command line takes the place of the configuration's.
        (["--select", "ALL"], f'select = ["{RULE}"]\n'),
    ],
)
def test_a_bulk_run_makes_no_trade(project: Path, run: Run, flags: list[str], settings: str) -> None:
    assert not after(project, run, *flags, settings=settings)


@pytest.mark.parametrize(
    ("flags", "settings"),
    [
        (["--select", RULE], ""),
        (["--select", CODE], ""),
        (["--select", CODE.lower()], ""),
        (["--extend-select", RULE], ""),
        (["--select", f"ALL,{RULE}"], ""),
        ([], f'select = ["ALL", "{RULE}"]\n'),
        ([], f'extend-select = ["{CODE}"]\n'),
        (["--extend-select", "72"], f'extend-select = ["{CODE}"]\n'),
    ],
)
def test_a_rule_selected_by_its_own_name_makes_its_trade(project: Path, run: Run, flags: list[str], settings: str) -> None:
    assert after(project, run, *flags, settings=settings)


def test_interactive_offers_a_trade_and_says_so(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO("y\n"))
    main(["--fix", "--interactive", "."])
    assert (project / "model.py").read_bytes() == FIXED
    assert "\ntrade: speed for memory\n" in capsys.readouterr().out


def test_a_patch_and_a_buffer_hold_no_trade(project: Path, run: Run) -> None:
    assert run("--diff", "--unsafe-fixes", ".")[1] == ""
    assert "use_reentrant=False" in run("--diff", "--unsafe-fixes", "--select", RULE, ".")[1]


def test_reports_count_no_trade_as_fixable(project: Path, run: Run) -> None:
    out = run("--unsafe-fixes", ".")[1]
    assert NOTE in out
    assert "[*]" not in out
    assert "1 trading speed for memory (--fix --interactive)." in out
    assert "decide on each fix (1 finding)" in out
    asked = run("--unsafe-fixes", "--select", RULE, ".")[1]
    assert NOTE not in asked
    assert "[*] 1 fixable with --fix --unsafe-fixes." in asked


def test_json_and_sarif_name_the_trade(project: Path, run: Run) -> None:
    found = json.loads(run("--format", "json", ".")[1])
    assert found["findings"][0]["fix"]["trade"] == "speed for memory"
    assert found["summary"]["fixable"] == {"safe": 0, "unsafe": 0}
    asked = json.loads(run("--format", "json", "--select", RULE, ".")[1])
    assert "trade" not in asked["findings"][0]["fix"]
    assert asked["summary"]["fixable"] == {"safe": 0, "unsafe": 1}
    sarif = json.loads(run("--format", "sarif", ".")[1])
    assert sarif["runs"][0]["results"][0]["fixes"][0]["properties"]["trade"] == "speed for memory"


def test_bench_compares_no_trade_that_nobody_named(project: Path, tmp_path: Path) -> None:
    from ldlm_lint.bench.trees import BenchError, fixed

    with pytest.raises(BenchError, match="no fix to apply"):
        fixed(project, tmp_path / "bulk", (), select=["ALL"], unsafe=True)
    trees = fixed(project, tmp_path / "named", (), select=[RULE], unsafe=True)
    assert trees.fixes == {RULE: 1}


def test_the_last_select_decides_who_is_named() -> None:
    assert by_name(ALL, [Layer(select=(RULE,))]) == {RULE}
    assert by_name(ALL, [Layer(extend=(CODE,)), Layer(extend=("72",))]) == {RULE}
    assert by_name(ALL, [Layer(select=(RULE,)), Layer(select=("ALL",))]) == frozenset()


def test_a_trade_is_an_unsafe_fix_that_says_what_it_gives_up() -> None:
    for rule in ALL:
        if rule.trade:
            assert rule.applicability is Applicability.UNSAFE
            assert rule.trade in rule.fix_safety


def test_the_configuration_of_each_file_decides_about_its_trades(enter: Enter, run: Run) -> None:
    root = enter({
        "pyproject.toml": "[tool.ldlm-lint]\n",
        "plain/model.py": MODEL,
        "named/model.py": MODEL,
        "named/ldlm-lint.toml": f'extend-select = ["{RULE}"]\n',
    })
    run("--fix", "--unsafe-fixes", ".")
    assert (root / "plain" / "model.py").read_bytes() == MODEL
    assert (root / "named" / "model.py").read_bytes() == FIXED
