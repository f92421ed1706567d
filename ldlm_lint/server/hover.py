"""Hover texts: the rules that report something at a position, or that a comment names there."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePath

from lsprotocol import types

from ldlm_lint.config_files import NAMES
from ldlm_lint.server.convert import diagnostics_at, range_of
from ldlm_lint.server.papers import Paper
from ldlm_lint.server.positions import character, units

_LINE_END = re.compile(r"\r\n|\r|\n")
_MOST_PAGES = 3
_BETWEEN = "\n---\n\n"


def at(
    paper: Paper, cell: int | None, place: types.Position, encoding: str, markdown: bool, is_outdated: bool = False
) -> types.Hover | None:
    """What is shown for a place of a buffer, or of a cell in it, None where no rule has to do with it.

    Findings that are about an older text (``is_outdated``) are left out: their places are wrong.
    """
    kind = types.MarkupKind.Markdown if markdown else types.MarkupKind.PlainText
    named = _named(paper, cell, place, encoding)
    if named is not None:
        symbol, where = named
        return types.Hover(types.MarkupContent(kind, _pages({symbol: []}, markdown)), where)
    here = [] if is_outdated else list(diagnostics_at(paper.diagnosis, types.Range(place, place), cell))
    if not here:
        return None
    fixes: dict[str, list[str]] = {}
    for index, one in here:
        fixes.setdefault(one["code"], []).extend(_fixes_of(paper, index))
    return types.Hover(types.MarkupContent(kind, _pages(fixes, markdown)), range_of(here[0][1]["range"]))


def _pages(fixes: Mapping[str, Sequence[str]], markdown: bool) -> str:
    """The first of these rules, each with what its fixes may change, in the lines that fit into a hover."""
    from ldlm_lint.rules import by_symbol
    from ldlm_lint.server.pages import MOST_LINES, short_page

    shown = list(fixes.items())[:_MOST_PAGES]
    lines = (MOST_LINES - (len(shown) - 1) * (_BETWEEN.count("\n"))) // len(shown)
    return _BETWEEN.join(short_page(by_symbol[rule], list(dict.fromkeys(own)), lines, markdown=markdown) for rule, own in shown)


def _fixes_of(paper: Paper, index: int) -> Iterator[str]:
    """The fixes of a diagnostic, with how safe each of them is and why."""
    for fix in paper.diagnosis["fixes"]:
        if index in fix["diagnostics"]:
            level = "display, only shown" if fix["level"] == "display" else f"{fix['level']}{', trades ' + fix['trade'] if fix['trade'] else ''}"
            yield f"{fix['title']} ({level}){'. ' + fix['reason'] if fix['reason'] else ''}"


def _named(paper: Paper, cell: int | None, place: types.Position, encoding: str) -> tuple[str, types.Range] | None:
    """The rule that a comment or the settings name at a place, and the position of its name."""
    from ldlm_lint.server.pages import rule_in_line

    lines = _LINE_END.split(paper.text if cell is None else paper.cells[cell - 1].text)
    if place.line >= len(lines):
        return None
    line = lines[place.line]
    settings = PurePath(paper.path).name in NAMES
    found = rule_in_line(line, character(line, place.character, encoding), configuration=settings)
    if found is None:
        return None
    rule, start, end = found
    columns = [types.Position(place.line, units(line[:at], encoding)) for at in (start, end)]
    return rule.symbol, types.Range(*columns)
