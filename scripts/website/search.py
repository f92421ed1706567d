"""What the site's search finds first: for an identifier, the rule that is about it.

Sphinx ranks the entries of an index above words of a text. Each identifier that the texts of a rule hold in backquotes, and
each name with an underscore in a line of its example that is reported or changed, is such an entry of the rule; the rules
that name it are ranked by `relevance`.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import gen_docs

from ldlm_lint.examples import small
from ldlm_lint.model import Rule
from ldlm_lint.rules import ALL, by_symbol
from website.rules import PREFIX

if TYPE_CHECKING:
    from docutils import nodes
    from sphinx.application import Sphinx

DESCRIPTIONS = "descriptions.js"
_QUOTED = re.compile(r"`([^`]+)`")
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(?:\.[A-Za-z_][A-Za-z0-9_]*)*")
_SHORTEST = 4
_LONGEST_DESCRIPTION = 220


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
def ranking() -> Mapping[str, list[Rule]]:
    """For each identifier the rules that name it, first the one that is most about it; of equal ones the one with the worst consequence."""
    named: dict[str, list[Rule]] = defaultdict(list)
    for rule in gen_docs.ranked(ALL):
        for identifier in _named(rule):
            named[identifier].append(rule)
    return {identifier: sorted(rules, key=lambda rule: -relevance(rule, identifier)) for identifier, rules in named.items()}


def entry(identifier: str, place: int) -> str:
    """The index entry of an identifier at the rule in a place of its ranking.

    Sphinx scores an entry by the share of it that was typed, and drops one of which less than half was: each place costs a character.

    >>> entry("fused", 0), entry("fused", 2), entry("fused", 9)
    ('fused', 'fused..', 'fused.....')
    """
    return identifier + "." * min(place, len(identifier))


def _named(rule: Rule) -> set[str]:
    texts = (rule.summary, rule.message, rule.rationale, rule.cost, rule.exceptions, rule.versions, rule.fix_safety, rule.verification)
    concerned = {name for name in _concerned(rule) if "_" in name}
    return concerned.union(*map(identifiers, texts)) - {"True", "False", "None"}


def setup(app: Sphinx) -> None:
    """Put the entries on the pages of rules, and write what results show of each page."""
    app.connect("doctree-read", _add_entries)
    app.connect("build-finished", _write_descriptions)


def _add_entries(app: Sphinx, tree: nodes.document) -> None:
    from sphinx import addnodes

    page = app.env.docname
    if not page.startswith(PREFIX):
        return
    rule = by_symbol[page.removeprefix(PREFIX)]
    entries = [("single", entry(name, ranking()[name].index(rule)), "", "main", None) for name in sorted(_named(rule))]
    tree.insert(0, addnodes.index(entries=entries))


def _write_descriptions(app: Sphinx, failure: Exception | None) -> None:
    """Results get their text from this file: nothing can be fetched where the site is read from a disk."""
    from docutils import nodes

    if failure is not None:
        return
    found = {}
    for page in sorted(app.env.found_docs):
        paragraphs = (" ".join(node.astext().split()) for node in app.env.get_doctree(page).findall(nodes.paragraph))
        text = next((text for text in paragraphs if text), "")
        found[page] = text if len(text) <= _LONGEST_DESCRIPTION else text[:_LONGEST_DESCRIPTION].rpartition(" ")[0] + " …"
    script = f"window.PAGE_DESCRIPTIONS = {json.dumps(found, ensure_ascii=False, indent=0)};\n"
    Path(app.outdir, "_static", DESCRIPTIONS).write_text(script, encoding="utf-8", newline="\n")
