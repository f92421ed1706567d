"""What the site adds to the pages of rules: a list of rules with the same consequence, and marks on what was reported."""

from __future__ import annotations

from typing import TYPE_CHECKING

import gen_docs

from ldlm_lint.rules import ALL, by_symbol

if TYPE_CHECKING:
    from docutils import nodes
    from sphinx.application import Sphinx

PREFIX = f"{gen_docs.PAGES}/"


def setup(app: Sphinx) -> None:
    """Mark up the pages when they are read, and give templates the rules of the same consequence."""
    app.connect("doctree-read", _marked_up)
    app.connect("html-page-context", _related)


def _marked_up(app: Sphinx, tree: nodes.document) -> None:
    from docutils import nodes

    page = app.env.docname
    if not page.startswith(PREFIX):
        return
    for block in tree.findall(nodes.literal_block):
        reported = [number for number, line in enumerate(block.astext().splitlines(), 1) if line.endswith(gen_docs.MARK)]
        if reported:
            block.setdefault("highlight_args", {})["hl_lines"] = reported
    for quote in tree.findall(nodes.block_quote):
        quote["classes"].append("message")
    for emphasis in tree.findall(nodes.emphasis):
        if len(emphasis.parent) == 1:
            emphasis.parent["classes"].append("brief")


def _related(app: Sphinx, page: str, template: str, context: dict[str, object], tree: nodes.document | None) -> None:
    rule = by_symbol.get(page.removeprefix(PREFIX)) if page.startswith(PREFIX) else None
    if rule is not None:
        context["consequence"] = rule.consequence.value
        context["related"] = [other.symbol for other in gen_docs.ranked(ALL) if other.consequence is rule.consequence]
