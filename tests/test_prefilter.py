"""The words of the rules, looked for quickly, are those that a plain search finds."""

from __future__ import annotations

from pathlib import Path

from collected import for_every

from ldlm_lint.model import Rule
from ldlm_lint.prefilter import rules_at_risk
from ldlm_lint.rules import ALL
from ldlm_lint.source import Kind

FIXTURES = Path(__file__).parent / "fixtures"


def _plainly(text: bytes) -> set[str]:
    """Every rule of which the text holds a word of each group and no silencer."""
    return {
        rule.symbol
        for rule in ALL
        if "py" in rule.reads and any(rule.triggers)
        if all(any(word in text for word in group) for group in (rule.triggers, *rule.requires))
        if not any(word in text for word in rule.silencers)
    }


def test_nothing_is_missed_in_the_examples() -> None:
    for path in sorted(FIXTURES.glob("*/bad.py")):
        text = path.read_bytes()
        bare = b"\n".join(line.partition(b"#")[0] for line in text.split(b"\n"))
        assert rules_at_risk(text, Kind.PYTHON) == _plainly(bare), path


@for_every("rule", [one for one in ALL if "py" in one.reads and any(one.triggers)], ids=lambda one: one.symbol)
def test_a_word_of_each_group_is_enough_and_none_is_not(rule: Rule) -> None:
    needed = [group[0] for group in rule.requires]
    for word in rule.triggers:
        text = b"\n".join((b"x", word, *needed, b"y"))
        assert rules_at_risk(text, Kind.PYTHON) == _plainly(text)
        assert rules_at_risk(b"_".join((b"x", word, b"y")), Kind.PYTHON) == _plainly(b"_".join((b"x", word, b"y")))
    assert rule.symbol not in rules_at_risk(b"import os\n", Kind.PYTHON)
