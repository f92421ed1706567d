"""What the site's search finds first: for an identifier, the rule that is about it.

Sphinx ranks the entries of an index above words of a text. Each identifier that the texts of a rule hold in backquotes, and
each name with an underscore in a line of its example that is reported or changed, is such an entry of the rule; the rules
that name it are ranked by `relevance`.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import gen_docs

from ldlm_lint.model import Rule
from ldlm_lint.rules import ALL, by_symbol
from ldlm_lint.rules.relevance import named, relevance
from website.rules import PREFIX

if TYPE_CHECKING:
    from docutils import nodes
    from sphinx.application import Sphinx

DESCRIPTIONS = "descriptions.js"
_LONGEST_DESCRIPTION = 220


@cache
def ranking() -> Mapping[str, list[Rule]]:
    """For each identifier the rules that name it, first the one that is most about it; of equal ones the one with the worst consequence."""
    found: dict[str, list[Rule]] = defaultdict(list)
    for rule in gen_docs.ranked(ALL):
        for identifier in named(rule):
            found[identifier].append(rule)
    return {identifier: sorted(rules, key=lambda rule: -relevance(rule, identifier)) for identifier, rules in found.items()}


def entry(identifier: str, place: int) -> str:
    """The index entry of an identifier at the rule in a place of its ranking.

    Sphinx scores an entry by the share of it that was typed, and drops one of which less than half was: each place costs a character.

    >>> entry("fused", 0), entry("fused", 2), entry("fused", 9)
    ('fused', 'fused..', 'fused.....')
    """
    return identifier + "." * min(place, len(identifier))


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
    entries = [("single", entry(name, ranking()[name].index(rule)), "", "main", None) for name in sorted(named(rule))]
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
