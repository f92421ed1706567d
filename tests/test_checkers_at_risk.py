"""Checkers look for the rules at risk alone, and say of those what they say where every rule is at risk."""

from __future__ import annotations

from pathlib import Path

import pytest
from collected import for_every

from ldlm_lint.checkers import CHECKERS, host
from ldlm_lint.config import Config
from ldlm_lint.model import Rule
from ldlm_lint.source import Kind, Source

FIXTURES = Path(__file__).parent / "fixtures"
SEVERAL = [(checker, rule) for checker in CHECKERS if len(checker.rules) > 1 for rule in checker.rules]


@for_every(("checker", "rule"), SEVERAL, ids=lambda one: getattr(one, "symbol", ""))
def test_a_rule_alone_is_found_as_among_others(checker: type, rule: Rule) -> None:
    for path in sorted((FIXTURES / rule.symbol).rglob("*.py")):
        source = Source.read(path, Kind.PYTHON)
        every, alone = (host.lint(source, "module", Config().facts, risk) for risk in (None, {rule.symbol}))
        wanted = [one for one in every.findings if one.rule == rule.symbol]
        assert [one for one in alone.findings if one.rule == rule.symbol] == wanted, path


@pytest.mark.parametrize("checker", [one for one in CHECKERS if one.finds], ids=lambda one: one.__name__)
def test_visitors_that_look_for_some_rules_are_visitors_of_these(checker: type) -> None:
    assert set(checker.finds) <= {name for name in dir(checker) if name.startswith(("visit_", "leave_"))}
    assert all(rules and set(rules) <= set(checker.rules) for rules in checker.finds.values())
    risky = next(iter(checker.finds.values()))[0]
    source = Source.from_bytes("x.py", b"", Kind.PYTHON)
    idle = checker(host.Host(source, {}, at_risk=()))
    wary = checker(host.Host(source, {}, at_risk={risky.symbol}))
    every = checker(host.Host(source, {}))
    assert all(idle.is_idle(name) for name in checker.finds)
    assert [name for name in checker.finds if not wary.is_idle(name)] == [name for name, rules in checker.finds.items() if risky in rules]
    assert not any(every.is_idle(name) for name in checker.finds)
