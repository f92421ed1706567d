"""What an editor shows of a rule: what matters of it in a few lines where the pointer rests, and its whole page."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator, Sequence

from ldlm_lint.model import Rule
from ldlm_lint.report.cells import clean
from ldlm_lint.report.common import rule_url
from ldlm_lint.report.page import default, fix_level
from ldlm_lint.rules import ALL

MOST_LINES = 25
WIDTH = 80
"""Characters of a line in a hover; what is longer, an editor continues on the next line."""
_BRIEF = 14
_WORD = re.compile(r"[A-Za-z0-9-]+")
_SPEAKS_OF_RULES = re.compile(r"#\s*(?:ldlm-lint|pylint):")
_MARKUP = re.compile(r"([\\`*_{}\[\]()<>#+!|~&])")
_SENTENCE = re.compile(r"(?<=[.!?])\s+(?=[A-Z`])")


def short_page(rule: Rule, fixes: Sequence[str], lines: int, *, markdown: bool) -> str:
    """A rule in at most ``lines`` lines of `WIDTH` characters: what is wrong, how the ``fixes`` may change a run, why,
    and a link.

    Longer texts are cut to as many whole sentences as fit.
    """
    brief = lines < _BRIEF
    head, end = list(_brief(rule, markdown) if brief else _head(rule, markdown)), [] if brief else [_link(rule, markdown)]
    room = lines - _height([*head, *end])
    # A fix may quote code of the repository, which is plain text here.
    quoted = [_MARKUP.sub(r"\\\1", clean(one)) if markdown else clean(one) for one in fixes]
    texts = [("Fix", one) for one in quoted] + [("Why", rule.rationale), ("Cost", rule.cost_text), ("When not to follow it", rule.exceptions)]
    for title, text in texts:
        name = f"**{title}**" if markdown else title
        fitting = _fitting(f"{name}: {text}", room)
        if fitting != f"{name}:":
            head.append(fitting)
            room -= _height([fitting]) + 1
    return "\n\n".join([*head, *end]) + "\n"


def full_page(name: str) -> dict[str, str]:
    """The page of a rule as Markdown, with its name, code and address; raises SelectorError for a name that no rule has."""
    from ldlm_lint.report.rule_markdown import markdown
    from ldlm_lint.select import find

    rule = find(ALL, name)
    return {"name": rule.symbol, "code": rule.code, "url": rule_url(rule.symbol), "markdown": markdown(rule)}


def rule_list() -> list[dict[str, str]]:
    """All rules for a menu: those with the worst consequence first, each with its summary."""
    chosen = sorted(ALL, key=lambda rule: (rule.consequence.rank, rule.symbol))
    return [
        {"name": rule.symbol, "code": rule.code, "consequence": rule.consequence.value, "summary": rule.summary} for rule in chosen
    ]


def _head(rule: Rule, markdown: bool) -> Iterator[str]:
    facts = (rule.consequence.value, rule.severity.label, default(rule), f"fix: {fix_level(rule)}")
    yield f"### {rule.symbol} ({rule.code})" if markdown else f"{rule.symbol} ({rule.code})"
    yield f"*{' · '.join(facts)}*" if markdown else " · ".join(facts)
    yield rule.summary


def _brief(rule: Rule, markdown: bool) -> Iterator[str]:
    """The heading when several rules share the lines."""
    yield f"### [{rule.symbol}]({rule_url(rule.symbol)})" if markdown else f"{rule.symbol}: {rule_url(rule.symbol)}"
    yield f"{rule.consequence.value}: {rule.summary}"


def _link(rule: Rule, markdown: bool) -> str:
    return f"[The rule's page]({rule_url(rule.symbol)})" if markdown else f"The rule's page: {rule_url(rule.symbol)}"


def _height(paragraphs: Sequence[str]) -> int:
    """The lines that paragraphs take, the empty ones between them included."""
    return sum(len(textwrap.wrap(one, WIDTH, break_on_hyphens=False)) for one in paragraphs) + len(paragraphs) - 1


def _fitting(text: str, room: int) -> str:
    """The whole sentences of a text that fit into so many lines below an empty one; its name alone if none fits."""
    name, _, rest = text.partition(": ")
    fitting = f"{name}:"
    for sentence in _SENTENCE.split(rest):
        if _height([f"{fitting} {sentence}"]) + 1 > room:
            break
        fitting = f"{fitting} {sentence}"
    return fitting


def rule_in_line(line: str, character: int, *, configuration: bool = False) -> tuple[Rule, int, int] | None:
    """The rule that a comment for a linter names at a character, and the character range of its name.

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
