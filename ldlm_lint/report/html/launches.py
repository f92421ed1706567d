"""The launch graph as drawn on a page: scripts, launches, programs, and their configuration, in columns joined by
curves."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from ldlm_lint.graph import Graph, Launch, Shown, Where
from ldlm_lint.report.cells import clean
from ldlm_lint.report.common import shown_path
from ldlm_lint.report.graph import texts
from ldlm_lint.report.html.excerpts import cut
from ldlm_lint.report.summary import count

KINDS = ("script", "launch", "program", "setting")
TITLES = ("Scripts", "Launches", "Programs", "Configuration and settings")
WIDTH, HEIGHT, GAP, SPACE = 212, 40, 12, 56
"""Pixels: a box is WIDTH x HEIGHT, GAP below it, SPACE to the next column."""
TOP = 30
LETTERS, SMALL_LETTERS = 27, 33
"""How many letters of each of a box's fonts fit into it."""

Links = Mapping[tuple[str, int], str]
"""Keys of findings by the shown path and line where they are."""
Node = tuple[int, str]
"""The column of a box and its name there."""


class Box(NamedTuple):
    """A node: its texts, the address that it links to (empty: none), and its upper left corner in pixels."""

    kind: str
    title: str
    text: str
    below: str
    href: str
    x: int
    y: int


class Curve(NamedTuple):
    """An edge as the path of an SVG; ``key`` is the launch that it belongs to."""

    key: str
    path: str


class Origin(NamedTuple):
    """A value and its place; ``finding`` is the key of a finding on that line, empty without one."""

    value: str
    place: str
    finding: str


class Setting(NamedTuple):
    """A setting with the effective value and those that it overrides, the strongest first."""

    key: str
    winner: Origin
    shadows: Sequence[Origin]


class Row(NamedTuple):
    """One launch as text, with its settings; ``findings`` are keys of findings on the launch's own line."""

    key: str
    place: str
    launcher: str
    counts: str
    program: str
    known: bool
    called: Sequence[str]
    configs: Sequence[tuple[str, str]]
    settings: Sequence[Setting]
    complete: bool
    finding: str


class Drawing(NamedTuple):
    """The whole graph: boxes and curves in a picture of ``width`` x ``height`` pixels, and a row for each launch."""

    boxes: Sequence[Box]
    curves: Sequence[Curve]
    rows: Sequence[Row]
    columns: Sequence[tuple[str, int]]
    width: int
    height: int
    words: str


def drawing(graph: Graph, base: Path, links: Links) -> Drawing:
    """The picture and the rows of a graph; paths are shown relative to ``base``."""
    found = [_row(f"launch-{number}", launch, base, links) for number, launch in enumerate(graph.launches, 1)]
    layout = _Layout()
    for row, launch in zip(found, graph.launches, strict=True):
        layout.add(row, launch, base)
    layout.place()
    boxes = [box for column in layout.columns for box in column.values()]
    used = [number for number, column in enumerate(layout.columns) if column]
    return Drawing(
        boxes=boxes,
        curves=list(layout.curves()),
        rows=found,
        columns=[(TITLES[number], _x(number)) for number in used],
        width=_x(max(used, default=0)) + WIDTH,
        height=max((box.y for box in boxes), default=TOP) + HEIGHT + GAP,
        words=_words(graph),
    )


class _Layout:
    """Boxes in columns, each name once per column; a box is next to the middle of those that lead to it."""

    def __init__(self) -> None:
        self.columns: list[dict[str, Box]] = [{} for _ in KINDS]
        self._edges: dict[tuple[str, Node, Node], None] = {}

    def add(self, row: Row, launch: Launch, base: Path) -> None:
        """The boxes of one launch and the edges between them."""
        script = clean(shown_path(launch.where.path, base))
        here = f"#{row.key}"
        line = ", ".join(filter(None, (f"line {launch.where.line}", row.counts)))
        start = self._box(0, script, script)
        middle = self._box(1, row.key, row.launcher, line, here)
        program = self._box(2, row.program, row.program, "" if row.known else "not in this project")
        ends = [self._box(3, path, path) for path, _why in row.configs]
        if row.settings:
            shadowed = sum(bool(setting.shadows) for setting in row.settings)
            below = f"{shadowed} of them set more than once" if shadowed else f"of line {launch.where.line}"
            ends.append(self._box(3, row.key, count(len(row.settings), "setting"), below, here))
        for left, right in ((start, middle), (middle, program), *((program, end) for end in ends)):
            self._edges[row.key, left, right] = None

    def _box(self, column: int, name: str, text: str, below: str = "", href: str = "") -> Node:
        box = Box(KINDS[column], text, _end(text), _beginning(below), href, _x(column), 0)
        self.columns[column].setdefault(name, box)
        return column, name

    def place(self) -> None:
        """Give every box its height: launches one below the other, the others where their edges are shortest."""
        self._stack(1, {name: number for number, name in enumerate(self.columns[1])})
        self._stack(0, self._middles(0, side=0))
        self._stack(2, self._middles(2, side=1))
        self._stack(3, self._middles(3, side=1, by_launch=True))

    def _middles(self, column: int, side: int, by_launch: bool = False) -> dict[str, float]:
        """The mean height of the boxes connected to each box of a column at its left (``side`` 1) or right, or of its
        launches."""
        heights: dict[str, list[int]] = {}
        for key, *ends in self._edges:
            if ends[side][0] == column:
                other = self.columns[1][key] if by_launch else self._at(ends[1 - side])
                heights.setdefault(ends[side][1], []).append(other.y)
        return {name: sum(found) / len(found) for name, found in heights.items()}

    def _stack(self, column: int, wanted: Mapping[str, float]) -> None:
        """Place the boxes of a column in the order of their preferred heights, without overlap."""
        free = float(TOP)
        for name in sorted(wanted, key=lambda name: wanted[name]):
            top = max(free, wanted[name])
            self.columns[column][name] = self.columns[column][name]._replace(y=round(top))
            free = top + HEIGHT + GAP

    def _at(self, node: Node) -> Box:
        column, name = node
        return self.columns[column][name]

    def curves(self) -> Iterator[Curve]:
        """The edges, from the right side of one box to the left side of the next."""
        for key, *ends in self._edges:
            start, end = map(self._at, ends)
            x, y, to_x, to_y = start.x + WIDTH, start.y + HEIGHT // 2, end.x, end.y + HEIGHT // 2
            bend = (to_x - x) // 2
            yield Curve(key, f"M{x} {y} C{x + bend} {y} {to_x - bend} {to_y} {to_x} {to_y}")


def _x(column: int) -> int:
    return column * (WIDTH + SPACE)


def _end(text: str) -> str:
    """The end of a text that is too long for a box: the end of a path is its distinctive part."""
    return text if len(text) <= LETTERS else f"…{text[1 - LETTERS :]}"


def _beginning(text: str) -> str:
    return text if len(text) <= SMALL_LETTERS else f"{text[: SMALL_LETTERS - 1]}…"


def _row(key: str, launch: Launch, base: Path, links: Links) -> Row:
    program = launch.program
    several = ((program.processes, "process", "processes"), (program.nodes, "node", "nodes"))
    counts = [f"{number} {noun if number == '1' else nouns}" for number, noun, nouns in several if number]
    # A script can hold a value of megabytes, which each of its launches gets.
    entry = clean(shown_path(program.entry, base)) if program.entry else cut(program.entry_text or "unknown")
    return Row(
        key=key,
        place=_place(launch.where, base),
        launcher=cut(" ".join(program.launchers)),
        counts=cut(", ".join(counts)),
        program=entry,
        known=bool(program.entry),
        called=[_place(where, base) for where in launch.called],
        configs=[(clean(shown_path(read.path, base)), clean(read.why)) for read in launch.configs],
        settings=[
            Setting(cut(value.key), _origin(value.winner, base, links), [_origin(shadow, base, links) for shadow in value.shadows])
            for value in launch.values
        ],
        complete=program.complete,
        finding=_finding(launch.where, base, links),
    )


def _origin(shown: Shown, base: Path, links: Links) -> Origin:
    return Origin(cut(texts(shown)), _place(shown.where, base), _finding(shown.where, base, links))


def _finding(where: Where, base: Path, links: Links) -> str:
    return links.get((shown_path(where.path, base), where.line), "")


def _place(where: Where, base: Path) -> str:
    return clean(f"{shown_path(where.path, base)}:{where.line}")


def _words(graph: Graph) -> str:
    """The picture as a sentence, for readers who cannot see it."""
    entries = len({launch.program.entry for launch in graph.launches if launch.program.entry})
    launched = count(len(graph.launches), "launch", "launches")
    scripts = count(graph.scripts, "script")
    if not entries:
        return f"{launched} from {scripts}, of programs that are not in this project"
    return f"{launched} of {count(entries, 'program')} of this project, from {scripts}"
