"""docs/rules.md and docs/rules/ are what scripts/gen_docs.py makes of the rules and their fixtures."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from collected import for_every
from harness import cases, contents

from ldlm_lint.examples import small
from ldlm_lint.model import Consequence
from ldlm_lint.report.common import HOME, rule_url
from ldlm_lint.report.page import page
from ldlm_lint.rules import ALL, by_symbol

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "scripts"))

import gen_docs  # noqa: E402

SCRIPT = ROOT / "scripts" / "gen_docs.py"
DOCS = ROOT / "docs"
INDEX = (DOCS / "rules.md").read_text(encoding="utf-8")

every_rule = for_every("rule", ALL, lambda rule: rule.symbol)


def generate(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, str(SCRIPT), *arguments], capture_output=True, text=True, check=False)


def read(symbol: str) -> str:
    """The page of one rule."""
    return (DOCS / "rules" / f"{symbol}.md").read_text(encoding="utf-8")


def section(text: str, title: str) -> str:
    """The text below a heading of the second level, to the next one outside of code."""
    return text.partition(f"\n## {title}\n")[2].partition("\n## ")[0]


def test_the_rules_pages_are_up_to_date():
    done = generate("--check")
    assert done.stderr == ""
    assert done.returncode == 0


def test_pages_that_are_missing_stale_or_of_no_rule_are_told_with_the_command_that_mends_them(tmp_path, monkeypatch, capsys):
    wanted = gen_docs.pages()
    monkeypatch.setattr(gen_docs, "pages", lambda: wanted)
    assert gen_docs.main(["--output", str(tmp_path)]) == 0
    assert gen_docs.main(["--check", "--output", str(tmp_path)]) == 0
    (tmp_path / "rules.md").write_text("# Rules\n")
    (tmp_path / "rules" / "optimizer-not-fused.md").unlink()
    (tmp_path / "rules" / "rule-that-is-gone.md").write_text("# rule-that-is-gone\n")

    assert gen_docs.main(["--check", "--output", str(tmp_path)]) == 1
    told = re.findall(r"(\S+) is out of date: run `python scripts/gen_docs.py`", capsys.readouterr().err)
    assert [Path(path).name for path in told] == ["rules.md", "optimizer-not-fused.md", "rule-that-is-gone.md"]

    assert gen_docs.main(["--output", str(tmp_path)]) == 0
    assert gen_docs.main(["--check", "--output", str(tmp_path)]) == 0
    assert not (tmp_path / "rules" / "rule-that-is-gone.md").exists()


def test_the_index_has_each_rule_once_the_worst_consequence_first():
    rows = re.findall(r'^\| ([\w-]+) \| <a id="([\w-]+)"></a>\[\2\]\(rules/\2\.md\) \|', INDEX, re.M)
    assert sorted(symbol for _, symbol in rows) == sorted(by_symbol)
    ranks = [Consequence(word).rank for word, _ in rows]
    assert ranks == sorted(ranks)
    assert all(by_symbol[symbol].consequence.value == word for word, symbol in rows)
    assert all(f" {rule.summary.replace('|', chr(92) + '|')} |" in INDEX for rule in ALL)


@every_rule
def test_every_rule_has_a_page_that_findings_link_to(rule):
    assert rule_url(rule.symbol) == f"{HOME}/blob/main/docs/rules/{rule.symbol}.md"
    text = read(rule.symbol)
    assert text.startswith(f"# {rule.symbol}\n")
    for part in (rule.summary, rule.rationale, rule.cost, rule.exceptions, rule.fix_safety, rule.versions, rule.verification):
        assert part in text
    assert all(option.name in section(text, "Options") for option in rule.options)
    assert all(reference.url in section(text, "Sources") for reference in rule.references)
    assert f"# ldlm-lint: ignore[{rule.symbol}] reason" in text
    assert f"| {rule.code} | {rule.consequence.value} | {rule.severity.label} |" in section(text, "Facts")


@for_every("case", [case for case in cases() if case.path.stem == "bad_short"], lambda case: case.symbol)
def test_a_page_starts_with_a_marked_example_its_message_and_its_fix(case):
    text = read(case.symbol)
    headings = re.findall(r"^## (.*)$", re.sub(r"^````.*?^````$", "", text, flags=re.M | re.S), re.M)
    assert headings[:4] == ["Example", "Fix", "Why it costs", "Cost"]
    example = section(text, "Example")
    for file in small(case.symbol):
        marked = [line.removesuffix("  # <-- here") for line in example.splitlines() if line.endswith("  # <-- here")]
        assert {file.bad.splitlines()[number - 1] for number in file.reported} <= set(marked)
    message = by_symbol[case.symbol].message
    for constant in re.split(r"%\(\w+\)[a-z]|%%", message):
        assert constant in example
    assert "\n> **" in example
    assert re.search(r"^`ldlm-lint --fix.*` writes:$|made by hand:$", section(text, "Fix"), re.M)


@for_every("case", [case for case in cases() if case.path.stem in ("bad", "good")], lambda case: case.name)
def test_the_long_examples_are_shown_without_the_comments_of_the_harness(case):
    text = read(case.symbol)
    assert "# expect:" not in text
    own = section(text, "Longer example").partition("**With the defect**" if case.bad else "**Not reported**")[2]
    first = next(iter(contents(case.path).values())).decode(errors="backslashreplace").splitlines()[0]
    assert first.partition("  # expect")[0] in own
    assert ("````diff\n" in own) == case.fixed.exists() if case.bad else True


@every_rule
def test_explain_needs_the_rule_alone(rule):
    text = page(rule)
    words = " ".join(text.split())
    for part in (rule.summary, rule.rationale, rule.cost, rule.exceptions, rule.fix_safety, rule.verification):
        assert " ".join(part.split()) in words
    assert all(reference.url in text for reference in rule.references)
    assert rule.code in text.splitlines()[0]
