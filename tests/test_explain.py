"""`ldlm-lint explain NAME`: one screen with a small example, or everything; from a checkout and from an installed wheel."""

from __future__ import annotations

import itertools
import json
import os
import re
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest
from collected import for_every
from harness import Case, cases, contents, expected

from ldlm_lint import examples
from ldlm_lint.cli import main
from ldlm_lint.model import Rule
from ldlm_lint.report.page import fixing, page
from ldlm_lint.report.rule_screen import essential, screen
from ldlm_lint.rules import ALL, by_symbol
from ldlm_lint.rules.linter import HOST_RULES

ROOT = Path(__file__).parent.parent
KINDS = ("bad", "good", "bad.fixed")
EXAMPLES = [case for case in cases() if case.path.stem in ("bad", "good")]
SHORT = [case for case in cases() if case.path.stem in ("bad_short", "good_short")]
MOST_LINES = 12
SCREEN = 50
SECTIONS = ("Why", "What it costs", "When not to follow it", "Versions", "How to verify", "References")
every_rule = for_every("rule", ALL, lambda rule: rule.symbol)


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


@for_every("case", EXAMPLES, lambda case: case.name)
def test_a_page_shows_the_example_files_whole(case: Case):
    files = examples.example(case.symbol, case.path.stem)
    assert sorted(files) == sorted(contents(case.path))
    text = page(by_symbol[case.symbol])
    for name, code in files.items():
        assert "# expect:" not in code
        assert described(code) in described(text)
        assert not code or f"\n  {name}:\n" in text


@for_every("case", [case for case in EXAMPLES if case.fixed.exists()], lambda case: case.name)
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


def shown(rule: Rule, width: int) -> list[str]:
    """The screen of a rule, without styles."""
    return ["".join(text for text, _ in pieces) for pieces in screen(rule, width)]


@every_rule
def test_every_rule_that_a_file_can_show_has_a_small_example_and_its_fixed_form(rule):
    files = examples.small(rule.symbol)
    if rule in HOST_RULES:
        assert files == ()
        return
    kinds = {case.path.stem for case in SHORT if case.symbol == rule.symbol}
    applied = any(one.applied for one in files)
    assert kinds == ({"bad_short"} if applied else {"bad_short", "good_short"})
    assert any(one.reported for one in files)
    assert any(one.bad != one.fixed for one in files)
    for text in ("bad", "fixed"):
        assert 0 < sum(getattr(one, text).count("\n") for one in files) <= MOST_LINES


@every_rule
def test_a_small_example_is_reported_at_the_lines_that_are_marked(rule):
    # That these places are reported, and that the fix makes the fixed form, is what test_rules asks of every case.
    case = next((one for one in SHORT if one.symbol == rule.symbol and one.bad), None)
    marked = {(file.name, line) for file in examples.small(rule.symbol) for line in file.reported}
    places = {(path, line) for path, line, symbol in (expected(case) if case else ()) if symbol == rule.symbol}
    assert {line for _, line in marked} == {line for _, line in places}


@every_rule
@pytest.mark.parametrize("width", [80, 100, 160])
def test_a_rule_is_explained_on_one_screen(rule, width):
    lines = shown(rule, width)
    assert len(lines) <= SCREEN
    assert lines[0] == f"{rule.consequence.value} {rule.code} {rule.symbol}"
    fix, options = ["Fix"] if rule.fix_safety else [], ["Options"] if rule.options else []
    labels = ["Why", "Cost", "Exceptions", *fix, *options, "Sources", "Silence", "More"]
    assert [one[:12].rstrip() for one in lines if one[:12].rstrip() in labels and one[11] == " "] == labels
    assert all(reference.url in "\n".join(lines) for reference in rule.references)
    assert lines[-1].split(maxsplit=1) == ["More", f"ldlm-lint explain {rule.symbol} --full"]
    texts = itertools.takewhile(bool, lines)
    assert max(map(len, texts)) <= min(width, 100)


def test_the_two_versions_stand_beside_each_other_where_they_fit_and_else_as_a_patch():
    rule = by_symbol["checkpoint-load-unspecified"]
    wide, narrow = shown(rule, 100), shown(rule, 60)
    assert "  >     state = torch.load(path)     | +     state = torch.load(path, weights_only=True)" in wide
    assert "  >-     state = torch.load(path)" in narrow
    assert "   +     state = torch.load(path, weights_only=True)" in narrow
    assert not any(" | " in one for one in narrow)


def test_a_line_that_is_reported_and_one_that_is_changed_have_signs_of_their_own():
    lines = shown(by_symbol["pipeline-hides-failure"], 100)
    assert "  >  torchrun --nproc_per_node=8 train.py 2>&1 | tee train.log" in lines
    assert "   + set -o pipefail" in lines


def test_an_example_of_several_files_names_them(capsys):
    lines = shown(by_symbol["dead-config-key"], 100)
    assert lines.index("conf/train.yaml:") < lines.index("train.py:")
    assert "  >   residual_streams: 2 |" in lines
    assert "    def main(cfg):" in lines


@pytest.mark.parametrize(
    ("text", "most", "kept"),
    [
        ("One. Two. Three.", 100, "One. Two. Three."),
        ("One. Two. Three.", 9, "One. Two. ..."),
        ("Longer than that. Two.", 3, "Longer than that. ..."),
        ("In 2.6 e.g. torch. `x` follows.", 18, "In 2.6 e.g. torch. ..."),
    ],
)
def test_a_text_is_cut_behind_a_sentence(text, most, kept):
    assert essential(text, most) == kept


@pytest.mark.parametrize("name", ["nccl-blocking-wait", "W7207", "w7207", "7207"])
def test_explain_prints_the_screen_for_each_name(name, monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "100")
    assert main(["explain", name]) == 0
    assert capsys.readouterr().out == "\n".join(shown(by_symbol["nccl-blocking-wait"], 100)) + "\n"


def test_an_old_name_is_explained_too(monkeypatch, capsys):
    renamed = by_symbol["nccl-blocking-wait"]._replace(old_names=("blocking-wait",))
    monkeypatch.setattr("ldlm_lint.rules.ALL", (renamed,))
    assert main(["explain", "blocking-wait"]) == 0
    assert capsys.readouterr().out.startswith("slow W7207 nccl-blocking-wait\n")


def test_explain_prints_everything_on_request(capsys):
    assert main(["explain", "nccl-blocking-wait", "--full"]) == 0
    assert capsys.readouterr().out == page(by_symbol["nccl-blocking-wait"])


@every_rule
def test_the_markdown_page_has_every_text(rule, capsys):
    assert main(["explain", rule.symbol, "--format", "markdown"]) == 0
    text = capsys.readouterr().out
    parts = (rule.summary, rule.rationale, rule.cost, rule.exceptions, rule.versions, rule.fix_safety, rule.verification)
    assert [part for part in parts if part not in text] == []
    assert all(f"]({reference.url})" in text for reference in rule.references)
    assert "# expect:" not in text
    assert text.count("````") % 2 == 0


def test_the_example_is_in_the_json_document(capsys):
    assert main(["explain", "nccl-blocking-wait", "--format", "json"]) == 0
    (rule,) = json.loads(capsys.readouterr().out)["rules"]
    (file,) = rule["example"]
    assert file["lines"] == [1]
    assert file["applied"]
    assert file["bad"].startswith("export TORCH_NCCL_BLOCKING_WAIT=1\n")


def test_colour_is_a_choice(monkeypatch, capsys):
    assert main(["explain", "nccl-blocking-wait", "--color", "always"]) == 0
    coloured = capsys.readouterr().out
    assert coloured.startswith("\x1b[")
    monkeypatch.setenv("NO_COLOR", "1")
    assert main(["explain", "nccl-blocking-wait"]) == 0
    plain = capsys.readouterr().out
    assert "\x1b" not in plain
    assert re.sub(r"\x1b\[[\d;]*m", "", coloured) == plain


def test_a_narrow_terminal_gets_narrow_lines(monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "72")
    assert main(["explain", "nccl-blocking-wait"]) == 0
    texts = [one for one in capsys.readouterr().out.splitlines() if "http" not in one]
    assert max(map(len, texts)) <= 72


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
        for case in (*EXAMPLES, *SHORT)
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
    short = run(programs / "ldlm-lint", "explain", "optimizer-not-fused", cwd=tmp_path, env=clean)
    assert short == "\n".join(shown(by_symbol["optimizer-not-fused"], 100)) + "\n"
    explained = run(programs / "ldlm-lint", "explain", "optimizer-not-fused", "--full", cwd=tmp_path, env=clean)
    assert "\nBad\n  bad.py:\n" in explained
    assert run(programs / "ldlm-lint", "rules", cwd=tmp_path, env=clean).count("\n") == len(ALL) + 1


@pytest.mark.parametrize(
    ("word", "rule"),
    [
        ("weights_only", "checkpoint-load-unspecified"),
        ("TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC", "excessive-heartbeat-timeout"),
        ("find_unused_parameters", "ddp-find-unused-parameters"),
    ],
)
def test_a_name_of_code_leads_to_the_rules_about_it(word, rule, capsys):
    assert main(["explain", word]) == 2
    err = capsys.readouterr().err
    assert f'unknown rule "{word}"; rules that mention it: ' in err and rule in err


def test_a_word_that_no_rule_mentions_is_only_unknown(capsys):
    assert main(["explain", "no_such_name"]) == 2
    assert capsys.readouterr().err == 'ldlm-lint: error: unknown rule "no_such_name"\n'
