"""What an editor has little room for: titles of at most 80 characters, hovers of at most 25 lines."""

from __future__ import annotations

import textwrap

import pytest
from collected import for_every
from lsprotocol import types

from ldlm_lint.report.common import rule_url
from ldlm_lint.rules import ALL
from ldlm_lint.server import hover
from ldlm_lint.server.pages import MOST_LINES, WIDTH, short_page
from ldlm_lint.server.papers import Paper
from ldlm_lint.server.titles import LONGEST, fix_title, ignore_title

_GUARDED = "set prefetch_factor=4 if config.data.get('num_workers', 4) > 0 else None"
_PERSISTENT = "set persistent_workers=config.data.get('num_workers', 4) > 0"


def fix(title: str, level: str = "unsafe", trade: str = "") -> dict[str, object]:
    return {"title": title, "level": level, "reason": "because. " * 40, "trade": trade, "diagnostics": [0], "edits": []}


@for_every(
    ("given", "rules", "expected"),
    [
        (fix("set fused=True"), ["optimizer-not-fused"], "optimizer-not-fused: set fused=True (unsafe fix)"),
        (fix("set fused=True", "safe"), ["optimizer-not-fused"], "optimizer-not-fused: set fused=True (safe fix)"),
        # Without the rule, where the title leaves no room for it.
        (fix(_PERSISTENT), ["dataloader-without-persistent-workers"], f"{_PERSISTENT} (unsafe fix)"),
        # Several changes: those that fit, and how many more there are.
        (fix(f"{_PERSISTENT}; {_GUARDED}; set pin_memory=True", "safe"), ["a"], f"{_PERSISTENT}; 2 more (safe fix)"),
        (fix(_GUARDED), ["a"], "set prefetch_factor=4 if config.data.get('num_workers', 4) > 0 … (unsafe fix)"),
        (fix("do it", trade="speed for memory"), ["a-rule"], "a-rule: do it (unsafe fix, a trade)"),
        (fix("think about it", "display"), ["a-rule"], "a-rule: think about it"),
        (fix("x" * 200), ["a-rule"], "x" * (LONGEST - len(" … (unsafe fix)")) + " … (unsafe fix)"),
    ],
)
def test_a_title_has_whole_words_and_fits(given: dict[str, object], rules: list[str], expected: str) -> None:
    assert fix_title(given, rules) == expected
    assert len(expected) <= LONGEST


def test_the_title_of_every_ignore_action_fits() -> None:
    assert max(len(ignore_title(rule.symbol)) for rule in ALL) <= LONGEST


def height(text: str) -> int:
    """The lines that an editor shows, at a width of 80 characters."""
    return sum(max(len(textwrap.wrap(line, WIDTH, break_on_hyphens=False)), 1) for line in text.rstrip("\n").split("\n"))


@pytest.mark.parametrize("markdown", [True, False])
@for_every("rule", ALL, lambda rule: rule.symbol)
def test_a_page_fits_and_links_to_the_whole_one(rule, markdown: bool) -> None:
    page = short_page(rule, ["set it (unsafe). It may change a run."], MOST_LINES, markdown=markdown)
    assert height(page) <= MOST_LINES
    assert rule.symbol in page and rule.summary in page and rule.consequence.value in page
    assert rule_url(rule.symbol) in page
    assert "It may change a run." in page


def test_code_of_a_repository_is_no_markup() -> None:
    hostile = 'set x=args["[a](http://b) <img> `c`\x1b[31m"]'
    page = short_page(ALL[0], [f"{hostile} (unsafe). Because."], MOST_LINES, markdown=True)
    assert "\x1b" not in page and "[a](" not in page and "<img>" not in page.replace("\\<", "").replace("\\>", "")
    assert "\x1b" not in fix_title(fix(hostile), ["a"])


@pytest.mark.parametrize("number", [1, 2, 3, 5])
def test_a_hover_over_several_findings_fits(number: int) -> None:
    where = {"start": {"line": 0, "character": 0}, "end": {"line": 0, "character": 9}}
    longest = sorted(ALL, key=lambda rule: -len(rule.summary))[:number]
    found = [{"code": rule.symbol, "cell": None, "range": where} for rule in longest]
    fixes = [{**fix(f"fix {index}"), "diagnostics": [index]} for index in range(number)]
    paper = Paper("file:///a.py", "/a.py", 1, "import os\n", diagnosis={"diagnostics": found, "fixes": fixes, "problems": []})
    shown = hover.at(paper, None, types.Position(0, 3), "utf-16", True)
    assert shown is not None
    assert height(shown.contents.value) <= MOST_LINES
    assert all(rule.symbol in shown.contents.value for rule in longest[:3])


def test_a_rule_named_in_any_configuration_file_has_a_hover() -> None:
    for name in ("pyproject.toml", "ldlm-lint.toml", ".ldlm-lint.toml"):
        paper = Paper(f"file:///{name}", f"/{name}", 1, 'ignore = ["optimizer-not-fused"]\n')
        assert hover.at(paper, None, types.Position(0, 14), "utf-16", True) is not None
