"""`ldlm-lint explain NAME` shows everything, examples included, from a checkout and from an installed wheel."""

from __future__ import annotations

import os
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest
from harness import Case, cases, contents

from ldlm_lint import examples
from ldlm_lint.cli import main
from ldlm_lint.report.page import fixing, page
from ldlm_lint.rules import ALL, by_symbol

ROOT = Path(__file__).parent.parent
KINDS = ("bad", "good", "bad.fixed")
EXAMPLES = [case for case in cases() if case.path.stem in ("bad", "good")]
SECTIONS = ("Why", "What it costs", "When not to follow it", "Versions", "How to verify", "References")
every_rule = pytest.mark.parametrize("rule", ALL, ids=lambda rule: rule.symbol)


def described(text: str) -> str:
    return " ".join(text.split())


@every_rule
def test_a_page_has_every_section_of_its_rule(rule):
    lines = page(rule).splitlines()
    assert [title for title in SECTIONS if title not in lines] == []
    assert ("Fix safety" in lines) == (rule.applicability is not None)
    assert ("Options in [tool.ldlm-lint]" in lines) == bool(rule.options)
    shown = {case.path.stem for case in EXAMPLES if case.symbol == rule.symbol}
    assert ("Bad" in lines, "Good" in lines) == ("bad" in shown, "good" in shown)


@pytest.mark.parametrize("case", EXAMPLES, ids=lambda case: case.name)
def test_a_page_shows_the_example_files_whole(case: Case):
    files = examples.example(case.symbol, case.path.stem)
    assert sorted(files) == sorted(contents(case.path))
    text = page(by_symbol[case.symbol])
    for name, code in files.items():
        assert "# expect:" not in code
        assert described(code) in described(text)
        assert not code or f"\n  {name}:\n" in text


@pytest.mark.parametrize("case", [case for case in EXAMPLES if case.fixed.exists()], ids=lambda case: case.name)
def test_a_page_shows_what_the_fix_does(case: Case):
    change = page(by_symbol[case.symbol]).partition(f"\nWhat {fixing(by_symbol[case.symbol])} does to the bad example\n")[2]
    before, after = (examples.example(case.symbol, kind) for kind in ("bad", "bad.fixed"))
    new = {line for name in before for line in after[name].splitlines()}
    old = {line for name in before for line in before[name].splitlines()}
    for line in new - old:
        assert f"\n    +{line}\n" in change


def test_an_example_of_several_files_is_shown_by_their_paths(tmp_path, monkeypatch):
    folder = tmp_path / "some-rule" / "bad"
    (folder / "captions").mkdir(parents=True)
    (folder / "options.toml").write_text("heartbeat-limit = 1\n")
    (folder / "train.py").write_bytes(b"x = 1  # expect: some-rule\r\n")
    (folder / "captions" / "data.py").write_bytes(b"name = '\xff\0'")
    monkeypatch.setattr(examples, "_root", lambda: tmp_path)
    assert examples.example("some-rule", "bad") == {"captions/data.py": "name = '\\xff\\x00'\n", "train.py": "x = 1\n"}
    assert examples.example("some-rule", "good") == {}
    assert examples.example("other-rule", "bad") == {}


def test_explain_prints_the_page(capsys):
    assert main(["explain", "nccl-blocking-wait"]) == 0
    assert capsys.readouterr().out == page(by_symbol["nccl-blocking-wait"])


def run(*command: str | Path, **options) -> str:
    done = subprocess.run([str(one) for one in command], capture_output=True, encoding="utf-8", check=False, **options)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel that pip builds of this checkout."""
    folder = tmp_path_factory.mktemp("wheel")
    run(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", folder, ROOT)
    (built,) = folder.glob("*.whl")
    return built


@pytest.mark.slow
@pytest.mark.network
def test_the_wheel_holds_the_examples_as_text_and_no_other_fixture(wheel):
    names = [name for name in zipfile.ZipFile(wheel).namelist() if "_examples/" in name]
    wanted = {
        f"ldlm_lint/_examples/{path.relative_to(ROOT / 'tests' / 'fixtures').as_posix()}.txt"
        for case in EXAMPLES
        for example in {case.path, case.fixed}
        for path in ([example] if example.is_file() else example.rglob("*"))
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert set(names) == wanted


@pytest.mark.slow
@pytest.mark.network
def test_an_installed_wheel_explains_as_the_checkout_does(wheel, tmp_path):
    venv.create(tmp_path / "venv", with_pip=True)
    programs = tmp_path / "venv" / ("Scripts" if os.name == "nt" else "bin")
    run(programs / "python", "-m", "pip", "install", "--quiet", wheel)
    clean = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    ask = "from ldlm_lint.rules import ALL; from ldlm_lint.report.page import page; print(*map(page, ALL), sep='')"
    told = run(programs / "python", "-I", "-X", "utf8", "-c", ask, cwd=tmp_path, env=clean)
    assert told == "".join(map(page, ALL)) + "\n"
    explained = run(programs / "ldlm-lint", "explain", "optimizer-not-fused", cwd=tmp_path, env=clean)
    assert "\nBad\n  bad.py:\n" in explained
    assert run(programs / "ldlm-lint", "rules", cwd=tmp_path, env=clean).count("\n") == len(ALL) + 1
