"""``.env`` files: one variable per line, as Docker, python-dotenv, DeepSpeed and ``source`` read them.

Read by hand: the parsers on PyPI return values without positions, and the readers of these files agree only on this
subset.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from ldlm_lint.configs.removal import ConfigEditor, Holder, Place, whole_lines
from ldlm_lint.configs.variables import Written, is_diagnostic_name, settings_of, without_comments
from ldlm_lint.model import Edit, Finding, Span
from ldlm_lint.patterns import lazily
from ldlm_lint.rules.environment_decisions import decide, is_relevant
from ldlm_lint.rules.environment_view import Scene
from ldlm_lint.rules.settings import Removal, Setting, Surroundings, Twin
from ldlm_lint.source import Source
from ldlm_lint.wording import remark_at

# A quoted value may span several lines; after it only a comment is allowed.
_VARIABLE = lazily(
    r"""^(?P<head>[ \t]*(?:export[ \t]+)?)(?P<name>[A-Za-z_]\w*)[ \t]*=[ \t]*"""
    r"""(?P<raw>'[^']*'|"(?:\\.|[^"\\])*"|[^\r\n]*?)(?=[ \t]*(?:[ \t]\#[^\r\n]*)?(?:\r?\n|\Z))""",
    re.M | re.S,
)


def findings(source: Source, options: Mapping[str, object]) -> Iterator[Finding]:
    """The findings about the variables of the file."""
    found = list(variables(source))
    if not found:
        return
    settings = settings_of(source, found)
    places = {}
    for one in found:
        lines = whole_lines(source, source.data.rfind(b"\n", 0, one.span.start) + 1 or source.bom, one.span.end)
        if lines is not None and one.text is not None:
            places[settings[one.span]] = Place(Holder((one.span,), (lines,), free=True), 0)
    scene = Scene(is_diagnostic_name(source.path), text=without_comments(source).decode(errors="replace"))
    yield from decide(tuple(settings.values()), options, _LineEditor(source, ConfigEditor(places)), scene)


def variables(source: Source) -> Iterator[Written]:
    """The relevant variables of the file; of several lines with one name the last one counts."""
    for match in sorted((some[-1] for some in _lines(source).values()), key=lambda one: one.start()):
        yield _written(source, match)


class _LineEditor(NamedTuple):
    """Takes a variable out with all lines above that set it, too: of those the last one would count then."""

    source: Source
    inner: ConfigEditor

    def removals(self, groups: Mapping[Setting, str]) -> dict[Setting, Removal]:
        """See `ldlm_lint.rules.settings.Editor`."""
        lines = _lines(self.source)
        plans = {}
        for one, plan in self.inner.removals(groups).items():
            above = [_whole(self.source, match) for match in lines[one.name][:-1]]
            if None not in above:
                plans[one] = plan._replace(edits=(*(Edit(span, "") for span in above if span is not None), *plan.edits))
        return plans


def _lines(source: Source) -> dict[str, list[re.Match[str]]]:
    """The lines of each relevant variable: of several the last one counts."""
    found: dict[str, list[re.Match[str]]] = {}
    for match in _VARIABLE.finditer(source.text):
        if is_relevant(match["name"]):
            found.setdefault(match["name"], []).append(match)
    return found


def _whole(source: Source, match: re.Match[str]) -> Span | None:
    start, end = (source.offset_of_character(match.start("name")), source.offset_of_character(match.end("raw")))
    return whole_lines(source, source.data.rfind(b"\n", 0, start) + 1 or source.bom, end)


def _written(source: Source, match: re.Match[str]) -> Written:
    def span(start: int, end: int) -> Span:
        return source.span(source.offset_of_character(start), source.offset_of_character(end))

    raw = match["raw"]
    start, end = match.span("raw")
    text: str | None = raw
    quoted = raw[:1] in ("'", '"') and len(raw) > 1
    if quoted:
        start, end, text = start + 1, end - 1, raw[1:-1]
    if (quoted and "\\" in raw) or (not quoted and re.search(r"[\s\"'\\]", raw)):
        # An escape, or `export A=1 B=2`, which a shell splits: the meaning depends on the reader.
        text = None
    whole = span(match.start("name"), match.end("raw"))
    line_end = source.data.find(b"\n", whole.end)
    line_end = len(source.data) if line_end < 0 else line_end - (source.data[line_end - 1 : line_end] == b"\r")
    beside = Span(source.path, line_end, line_end)
    return Written(
        name=match["name"],
        span=whole,
        key=span(*match.span("name")),
        text=text,
        inner=span(start, end) if text is not None else None,
        raw=raw,
        outer=span(*match.span("raw")),
        twin=Twin(beside, source.newline + match["head"], f"={raw}"),
        literal=raw.startswith("'"),
        place=Surroundings(remark=remark_at(source, whole.start, whole.end)),
    )
