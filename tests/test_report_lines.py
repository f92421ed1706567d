"""Lines of a report: plain text is written without rich, and reads as what rich would write in colour without its codes."""

from __future__ import annotations

import io
import re

import pytest
from collected import for_every
from rich.cells import cell_len, set_cell_size

from ldlm_lint.report.cells import clean, cut, width
from ldlm_lint.report.lines import line, stripped, write

BLOCKS = (
    (line(("E7101", "bold red"), " ", ("a-rule", "bold"), ": [not] :smile: [bold]markup[/]"), line(), line("x" * 300)),
    (line(("  1 |", "blue"), " ", ("größe = 數據", "yellow")), line(("", "red"))),
)


def written(*, colour: bool) -> str:
    stream = io.StringIO()
    write(BLOCKS, stream, colour=colour)
    return stream.getvalue()


def test_colours_are_all_that_rich_adds() -> None:
    coloured = written(colour=True)
    assert "\x1b[1;31mE7101\x1b[0m" in coloured
    assert re.sub(r"\x1b\[[\d;]*m", "", coloured) == written(colour=False)
    assert written(colour=False).count("\n") == 5


@pytest.mark.parametrize(
    ("pieces", "expected"),
    [
        (("a ", " ", ("  ", "red")), (("a", ""),)),
        ((" ", ("b ", "red")), ((" ", ""), ("b", "red"))),
        ((" ", ""), ()),
        ((), ()),
    ],
)
def test_blanks_at_the_end_go_whatever_piece_they_are_in(pieces: tuple[str, ...], expected: object) -> None:
    assert stripped(line(*pieces)) == expected


@for_every("text", ["", "plain", "a\tb", "größe", "數據", "\x1b[31m", "e\u0301", "x" * 20])
def test_cells_are_those_of_rich(text: str) -> None:
    shown = clean(text)
    assert width(text) == cell_len(shown)
    assert [cut(shown, cells) for cells in range(12)] == [set_cell_size(shown, cells) for cells in range(12)]
