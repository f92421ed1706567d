"""Everything that is known about a rule, as Markdown, for `explain --format markdown`."""

from __future__ import annotations

import difflib
from collections.abc import Iterator

from ldlm_lint.examples import example, small
from ldlm_lint.model import Rule
from ldlm_lint.report.common import rule_url
from ldlm_lint.report.page import default, fix_level, probe

_LANGUAGES = {"py": "python", "sh": "bash", "yaml": "yaml", "yml": "yaml", "toml": "toml", "json": "json"}
_FENCE = "````"


def markdown(rule: Rule) -> str:
    """The page of a rule: every text of it, its examples and its sources."""
    return "\n\n".join(_parts(rule)) + "\n"


def _parts(rule: Rule) -> Iterator[str]:
    yield f"# {rule.symbol} ({rule.code})"
    yield rule.summary
    facts = (rule.consequence.value, rule.severity.label, f"confidence {rule.confidence.label}", default(rule))
    yield f"*{' · '.join((*facts, f'fix: {fix_level(rule)}'))}* · [documentation]({rule_url(rule.symbol)})"
    yield from _small(rule)
    yield f"## Why\n\n{rule.rationale}"
    yield f"## What it costs\n\n{rule.cost_text}"
    yield f"## When not to follow it\n\n{rule.exceptions}"
    others = (("Versions", rule.versions), ("Fix safety", rule.fix_safety), ("How to verify", rule.verification))
    yield from (f"## {title}\n\n{text}" for title, text in others if text)
    if rule.probe:
        yield f"## Probe\n\n{probe(rule.probe)}"
    if rule.options:
        yield "## Options\n\n" + "\n".join(f"- `{one.name} = {one.default}`: {one.help}" for one in rule.options)
    yield from _long(rule)
    yield "## References\n\n" + "\n".join(f"- [{one.title}]({one.url})" for one in rule.references)


def _small(rule: Rule) -> Iterator[str]:
    for file in small(rule.symbol):
        old, new = file.bad.splitlines(keepends=True), file.fixed.splitlines(keepends=True)
        if old == new:
            yield _code(file.name, file.bad)
        else:
            change = list(difflib.unified_diff(old, new, n=len(old) + len(new)))[3:]
            yield f"{_FENCE}diff\n{''.join(change)}{_FENCE}"


def _long(rule: Rule) -> Iterator[str]:
    for title, kind in (("Bad", "bad"), ("Good", "good"), ("Bad, fixed", "bad.fixed")):
        for name, text in example(rule.symbol, kind).items():
            if text:
                yield f"## {title} (`{name}`)\n\n{_code(name, text)}"


def _code(name: str, text: str) -> str:
    return f"{_FENCE}{_LANGUAGES.get(name.rpartition('.')[2], '')}\n{text}{_FENCE}"
