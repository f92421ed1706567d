"""What is shown where the pointer rests: the pages of the rules that speak there, or that a comment names there."""

from __future__ import annotations

import re
from pathlib import PurePath

from lsprotocol import types

from ldlm_lint.server.convert import diagnostics_at, range_of
from ldlm_lint.server.papers import Paper
from ldlm_lint.server.positions import character, units

_LINE_END = re.compile(r"\r\n|\r|\n")
_MOST_PAGES = 3


def at(paper: Paper, cell: int | None, place: types.Position, encoding: str, markdown: bool) -> types.Hover | None:
    """The pages for a place of a buffer, or of a cell in it, None where no rule has to do with it."""
    from ldlm_lint.report.page import page
    from ldlm_lint.rules import by_symbol
    from ldlm_lint.server.pages import markdown as written

    shown = written if markdown else page
    kind = types.MarkupKind.Markdown if markdown else types.MarkupKind.PlainText
    named = _named(paper, cell, place, encoding)
    if named is not None:
        symbol, where = named
        return types.Hover(types.MarkupContent(kind, shown(by_symbol[symbol])), where)
    here = [one for _, one in diagnostics_at(paper.diagnosis, types.Range(place, place), cell)]
    if not here:
        return None
    pages = [shown(by_symbol[symbol]) for symbol in list(dict.fromkeys(one["code"] for one in here))[:_MOST_PAGES]]
    return types.Hover(types.MarkupContent(kind, "\n---\n\n".join(pages)), range_of(here[0]["range"]))


def _named(paper: Paper, cell: int | None, place: types.Position, encoding: str) -> tuple[str, types.Range] | None:
    """The rule that a comment or the settings name at a place, and where its name stands."""
    from ldlm_lint.server.pages import rule_in_line

    lines = _LINE_END.split(paper.text if cell is None else paper.cells[cell - 1].text)
    if place.line >= len(lines):
        return None
    line = lines[place.line]
    settings = PurePath(paper.path).name == "pyproject.toml"
    found = rule_in_line(line, character(line, place.character, encoding), configuration=settings)
    if found is None:
        return None
    rule, start, end = found
    columns = [types.Position(place.line, units(line[:at], encoding)) for at in (start, end)]
    return rule.symbol, types.Range(*columns)
