"""What an editor shows where the pointer rests: the page of a rule, as Markdown."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ldlm_lint.examples import example
from ldlm_lint.model import Rule
from ldlm_lint.report.common import rule_url
from ldlm_lint.report.page import default, fix_level, probe
from ldlm_lint.rules import ALL

_LANGUAGES = {"py": "python", "sh": "bash", "yaml": "yaml", "yml": "yaml", "toml": "toml", "json": "json"}
_WORD = re.compile(r"[A-Za-z0-9-]+")
_SPEAKS_OF_RULES = re.compile(r"#\s*(?:ldlm-lint|pylint):")
_FENCE = "````"


def markdown(rule: Rule) -> str:
    """Everything that is known about a rule."""
    return "\n\n".join(_parts(rule)) + "\n"


def rule_in_line(line: str, character: int, *, configuration: bool = False) -> tuple[Rule, int, int] | None:
    """The rule that a comment for a linter names at a character, and the characters between which its name stands.

    In a file with the settings (``configuration``) any line may name rules.
    """
    comment = _SPEAKS_OF_RULES.search(line)
    if comment is None and not configuration:
        return None
    for word in _WORD.finditer(line, 0 if comment is None else comment.end()):
        if word.start() <= character <= word.end() and (rule := _named(word.group())) is not None:
            return rule, word.start(), word.end()
    return None


def _named(name: str) -> Rule | None:
    return next((rule for rule in ALL if name in (rule.symbol, rule.code, *rule.old_names)), None)


def _parts(rule: Rule) -> Iterator[str]:
    yield f"### {rule.symbol} ({rule.code})"
    yield rule.summary
    facts = (rule.severity.label, f"confidence {rule.confidence.label}", default(rule), f"fix: {fix_level(rule)}")
    yield f"*{' · '.join(facts)}* · [documentation]({rule_url(rule.symbol)})"
    yield f"**Why**: {rule.rationale}"
    yield f"**What it costs**: {rule.cost_text}"
    yield from _examples(rule)
    for title, text in (
        ("When not to follow it", rule.exceptions),
        ("Versions", rule.versions),
        ("Fix safety", rule.fix_safety),
        ("How to verify", rule.verification),
        ("Probe", probe(rule.probe) if rule.probe else ""),
    ):
        if text:
            yield f"**{title}**: {text}"
    if rule.options:
        yield "\n".join(f"- `{one.name} = {one.default}`: {one.help}" for one in rule.options)
    yield "\n".join(f"- [{one.title}]({one.url})" for one in rule.references)


def _examples(rule: Rule) -> Iterator[str]:
    for title, kind in (("Bad", "bad"), ("Good", "good")):
        for name, text in example(rule.symbol, kind).items():
            if text:
                language = _LANGUAGES.get(name.rpartition(".")[2], "")
                yield f"**{title}** (`{name}`)\n\n{_FENCE}{language}\n{text}{_FENCE}"
