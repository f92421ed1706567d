"""Everything that is known about a rule, as Markdown: for `explain --format markdown` and the pages of docs/rules/."""

from __future__ import annotations

import difflib
from collections.abc import Iterator

from ldlm_lint.examples import Small, example, small
from ldlm_lint.model import Rule
from ldlm_lint.report.common import rule_url
from ldlm_lint.report.page import default, fix_level, probe

_LANGUAGES = {"py": "python", "sh": "bash", "yaml": "yaml", "yml": "yaml", "toml": "toml", "json": "json"}
_FENCE = "````"


def markdown(rule: Rule) -> str:
    """The page of a rule: every text of it, its examples and its sources."""
    return "\n\n".join(_parts(rule)) + "\n"


def sections(rule: Rule) -> Iterator[tuple[str, str]]:
    """The texts of a rule in the order of its page: title, Markdown. A text that the rule does not have is left out."""
    texts = (
        ("Why it costs", rule.rationale),
        ("Cost", rule.cost_text),
        ("When not to follow it", rule.exceptions),
        ("Fix safety", rule.fix_safety),
        ("Versions", rule.versions),
        ("Options", "\n".join(f"- `{option.name} = {option.default}`: {option.help}" for option in rule.options)),
        ("How to verify", "\n\n".join([rule.verification, *([f"*Probe*: {probe(rule.probe)}"] if rule.probe else [])])),
        ("Silence it on a line", f"```text\n# ldlm-lint: ignore[{rule.symbol}] reason\n```"),
        ("Sources", "\n".join(f"- [{source.title}]({source.url})" for source in rule.references)),
    )
    return ((title, text) for title, text in texts if text)


def change(file: Small) -> str:
    """A small example as a patch with all of its lines, without the header; empty where the two versions are the same."""
    old, new = file.bad.splitlines(keepends=True), file.fixed.splitlines(keepends=True)
    return "".join(list(difflib.unified_diff(old, new, n=len(old) + len(new)))[3:])


def code(name: str, text: str) -> str:
    """A file as fenced code in the language of its suffix."""
    return f"{_FENCE}{_LANGUAGES.get(name.rpartition('.')[2], 'text')}\n{text}{_FENCE}"


def diff(text: str) -> str:
    """A patch as fenced code."""
    return f"{_FENCE}diff\n{text}{_FENCE}"


def _parts(rule: Rule) -> Iterator[str]:
    yield f"# {rule.symbol} ({rule.code})"
    yield rule.summary
    facts = (rule.consequence.value, rule.severity.label, f"confidence {rule.confidence.label}", default(rule))
    yield f"*{' · '.join((*facts, f'fix: {fix_level(rule)}'))}* · [documentation]({rule_url(rule.symbol)})"
    for file in small(rule.symbol):
        changed = change(file)
        yield diff(changed) if changed else code(file.name, file.bad)
    yield from (f"## {title}\n\n{text}" for title, text in sections(rule))
    for title, kind in (("Bad", "bad"), ("Good", "good"), ("Bad, fixed", "bad.fixed")):
        for name, text in example(rule.symbol, kind).items():
            if text:
                yield f"## {title} (`{name}`)\n\n{code(name, text)}"
