"""How much a rule is about an identifier, such as ``weights_only``: for the search of the site and for `explain`."""

from __future__ import annotations

from functools import cache

from ldlm_lint.examples import small
from ldlm_lint.model import Rule
from ldlm_lint.patterns import lazily

_QUOTED = lazily(r"`([^`]+)`")
_IDENTIFIER = lazily(r"[A-Za-z_][A-Za-z0-9_]*(?:\.[A-Za-z_][A-Za-z0-9_]*)*")
_SHORTEST = 4


def identifiers(text: str) -> set[str]:
    """The identifiers in the backquotes of a text; of a dotted one also its last part.

    >>> sorted(identifiers("pass `fused=True` to `torch.optim.AdamW`, not to lr"))
    ['AdamW', 'True', 'fused', 'torch.optim.AdamW']
    """
    found = {name for quoted in _QUOTED.findall(text) for name in _IDENTIFIER.findall(quoted)}
    return {name for name in found | {name.rpartition(".")[2] for name in found} if len(name) >= _SHORTEST}


def relevance(rule: Rule, identifier: str) -> float:
    """How much a rule is about an identifier: most if its fix writes or removes it, least if its longer texts name it."""
    name = identifier.lower().replace("_", "-").strip("-")
    score = 8.0 * (identifier in _changed(rule)) + 4.0 * (identifier in _concerned(rule)) + 6.0 * (f"-{name}-" in f"-{rule.symbol}-")
    score += 4.0 * (identifier in identifiers(rule.summary)) + 3.0 * (identifier in identifiers(rule.message))
    texts = (rule.rationale, rule.cost, rule.exceptions, rule.versions, rule.fix_safety, rule.verification)
    return score + sum(0.5 for text in texts if identifier in identifiers(text))


@cache
def _changed(rule: Rule) -> frozenset[str]:
    """The identifiers that the change of a rule's small example writes or removes."""
    return frozenset(name for file in small(rule.symbol) for name in _names(file.bad) ^ _names(file.fixed))


@cache
def _concerned(rule: Rule) -> frozenset[str]:
    """The identifiers in the lines of a rule's small example that are reported or changed."""
    found: set[str] = set()
    for file in small(rule.symbol):
        before, after = file.bad.splitlines(), file.fixed.splitlines()
        lines = {line for number, line in enumerate(before, 1) if number in file.reported} | set(before) ^ set(after)
        found = found.union(*map(_names, lines))
    return frozenset(found)


def _names(code: str) -> set[str]:
    """The identifiers in code, of a dotted one the whole and its last part."""
    return {name for whole in _IDENTIFIER.findall(code) for name in (whole, whole.rpartition(".")[2])}


@cache
def named(rule: Rule) -> frozenset[str]:
    """The identifiers that the texts of a rule have in backquotes, and names with an underscore of its example."""
    texts = (rule.summary, rule.message, rule.rationale, rule.cost, rule.exceptions, rule.versions, rule.fix_safety, rule.verification)
    concerned = {name for name in _concerned(rule) if "_" in name}
    return frozenset(concerned.union(*map(identifiers, texts)) - {"True", "False", "None"})
