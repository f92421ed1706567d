"""The HTML format: one self-contained page with ranked findings, their code and fixes, and the launches of the project."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from ldlm_lint.report.cells import clean
from ldlm_lint.report.common import shown_path, unsaid
from ldlm_lint.report.html import launches
from ldlm_lint.report.html.findings import Card, Cards, Facet, Section, folders
from ldlm_lint.report.html.page import render
from ldlm_lint.report.next_steps import next_steps
from ldlm_lint.report.summary import FIXABLE, found
from ldlm_lint.report.summary import lines as summary_lines

if TYPE_CHECKING:
    from ldlm_lint.graph import Graph
    from ldlm_lint.report.view import View

FIXES = {
    "safe": "safe fix",
    "unsafe": "unsafe fix",
    "trade": "fix that is a trade",
    "none": "no fix that can be applied",
}
VERDICTS, UNMEASURED = ("verified", "refuted", "inconclusive"), "not measured"


def write(view: View, stream: TextIO) -> None:
    """Write the page of a check."""
    stream.write(document(view))


def document(view: View) -> str:
    """The page of a check; the launches are drawn if the view has them."""
    sections = Cards(view).sections()
    cards = [card for section in sections for card in section.cards]
    graph = view.launches() if view.launches is not None else None
    return render(
        "findings.html",
        styles=("findings.css", "launches.css"),
        scripts=("findings.js", "launches.js"),
        project=clean(Path(view.report.root).name or view.base.name),
        headline=found(view),
        sections=sections,
        rules=_rules(sections),
        folders=folders(cards),
        fixes=_choices(cards),
        verdicts=_verdicts(cards),
        total=len(cards),
        left_out=len(view.shown) - len(cards),
        steps=[] if view.quiet else list(next_steps(view)),
        summary=[clean(line).removeprefix(f"{FIXABLE} ") for line in summary_lines(view) if line != found(view)],
        problems=[_problem(one.path, one.line, one.message, view.base) for one in unsaid(view.report)],
        drawing=launches.drawing(graph, view.base, _links(cards)) if graph is not None and graph.launches else None,
    )


def graph_document(graph: Graph, base: Path, root: Path) -> str:
    """The page of ``ldlm-lint graph`` for the project at ``root``; paths are relative to ``base``."""
    return render(
        "graph.html",
        styles=("launches.css",),
        scripts=("launches.js",),
        project=clean(root.name or root.as_posix()),
        problems=[_problem(one.path, one.line, one.message, base) for one in graph.problems],
        drawing=launches.drawing(graph, base, {}),
        scripts_read=graph.scripts,
    )


def _rules(sections: Sequence[Section]) -> list[Facet]:
    counts = Counter(block.rule.symbol for section in sections for block in section.blocks for _ in block.cards)
    return sorted(Facet(symbol, findings) for symbol, findings in counts.items())


def _choices(cards: Sequence[Card]) -> list[tuple[str, Facet]]:
    """The choices of the fix filter with at least one finding, each with its text."""
    counts = Counter(card.fixable for card in cards)
    return [(words, Facet(value, counts[value])) for value, words in FIXES.items() if counts[value]]


def _verdicts(cards: Sequence[Card]) -> list[Facet]:
    """The verdicts of a probe on these findings and how many have each; empty without evidence."""
    counts = Counter(UNMEASURED if card.evidence is None else card.evidence.verdict for card in cards)
    if counts.keys() <= {UNMEASURED}:
        return []
    return [Facet(word, counts[word]) for word in (*VERDICTS, UNMEASURED) if counts[word]]


def _links(cards: Sequence[Card]) -> dict[tuple[str, int], str]:
    """The key of the first finding of each line, for the origins of values."""
    return {(card.path, card.line): card.key for card in reversed(cards)}


def _problem(path: str, line: int, message: str, base: Path) -> tuple[str, str]:
    return (clean(f"{shown_path(path, base)}:{max(line, 1)}") if path else "", clean(message))
