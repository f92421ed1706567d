"""docs/rules.md is what scripts/gen_docs.py makes of the rules and their fixtures."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from harness import cases, contents

from ldlm_lint.report.common import rule_url
from ldlm_lint.report.page import page
from ldlm_lint.rules import ALL

ROOT = Path(__file__).parent.parent
SCRIPT = ROOT / "scripts" / "gen_docs.py"
RULES = ROOT / "docs" / "rules.md"


def generate(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, str(SCRIPT), *arguments], capture_output=True, text=True, check=False)


def section(text: str, symbol: str) -> str:
    """The page of one rule."""
    return text.partition(f"\n## {symbol}\n")[2].partition("\n## ")[0]


def test_the_rules_page_is_up_to_date():
    done = generate("--check")
    assert done.stderr == ""
    assert done.returncode == 0


@pytest.mark.parametrize("text", [None, "# Rules\n"], ids=["missing", "stale"])
def test_a_stale_page_is_told_with_the_command_that_mends_it(text, tmp_path):
    page = tmp_path / "rules.md"
    if text is not None:
        page.write_text(text)
    done = generate("--check", "--output", str(page))
    assert done.returncode == 1
    assert "is out of date: run `python scripts/gen_docs.py`" in done.stderr
    assert generate("--output", str(page)).returncode == 0
    assert generate("--check", "--output", str(page)).returncode == 0


@pytest.mark.parametrize("rule", ALL, ids=lambda rule: rule.symbol)
def test_every_rule_has_a_section_that_the_index_and_the_findings_link_to(rule):
    text = RULES.read_text(encoding="utf-8")
    assert len(re.findall(rf"^## {rule.symbol}$", text, re.M)) == 1
    assert f"| {rule.code} | [{rule.symbol}](#{rule.symbol}) |" in text
    assert rule_url(rule.symbol).endswith(f"docs/rules.md#{rule.symbol}")
    own = section(text, rule.symbol)
    for part in (rule.summary, rule.rationale, rule.cost, rule.exceptions, rule.fix_safety, rule.verification):
        assert part in own
    assert all(option.name in own for option in rule.options)
    assert all(reference.url in own for reference in rule.references)


@pytest.mark.parametrize(
    "case", [case for case in cases() if case.path.stem in ("bad", "good")], ids=lambda case: case.name
)
def test_the_examples_are_shown_without_the_comments_of_the_harness(case):
    text = RULES.read_text(encoding="utf-8")
    assert "# expect:" not in text
    own = section(text, case.symbol)
    title = "### Bad\n" if case.bad else "### Good\n"
    first = next(iter(contents(case.path).values())).decode(errors="backslashreplace").splitlines()[0]
    assert first.partition("  # expect")[0] in own.partition(title)[2].partition("\n### ")[0]
    assert ("```diff\n" in own) == case.fixed.exists() if case.bad else True


@pytest.mark.parametrize("rule", ALL, ids=lambda rule: rule.symbol)
def test_explain_needs_the_rule_alone(rule):
    text = page(rule)
    words = " ".join(text.split())
    for part in (rule.summary, rule.rationale, rule.cost, rule.exceptions, rule.fix_safety, rule.verification):
        assert " ".join(part.split()) in words
    assert all(reference.url in text for reference in rule.references)
    assert rule.code in text.splitlines()[0]
