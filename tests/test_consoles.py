"""The script that runs the commands of the pages again: what it keeps of a block, and that it knows every page."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest
from collected import for_every

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "scripts"))

import update_consoles  # noqa: E402

# A GPU's memory, and the size of this machine's cache.
OF_A_MACHINE = {"docs/memory.md", "docs/speed.md"}


def test_every_page_with_a_session_is_known() -> None:
    pages = [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]
    shown = {path.relative_to(ROOT).as_posix() for path in pages if "\n```console\n" in path.read_text(encoding="utf-8")}
    assert shown == update_consoles.PAGES.keys() | OF_A_MACHINE


@for_every(
    "old, new, expected",
    [
        pytest.param("a\nb\n", "a\nc\n", "a\nc\n", id="all-of-it"),
        pytest.param("a\n...\nd\n", "a\nb\nc\nd\n", "a\n...\nd\n", id="left-out"),
        pytest.param("a\nold\n...\nd\n", "a\nnew\nb\nc\nd\n", "a\nnew\n...\nd\n", id="changed-beside-what-is-left-out"),
        pytest.param("a\nb\n...\nd\n", "a\nmore\nb\nc\nd\n", "a\nmore\nb\n...\nd\n", id="a-new-line-inside-a-part"),
        pytest.param(
            "run of 2026-01-02 03:04:05 UTC\n", "run of 2027-11-12 13:14:15 UTC\n", "run of 2026-01-02 03:04:05 UTC\n", id="the-time-stays"
        ),
        pytest.param("a\n", "a  \nb\t\n", "a\nb\n", id="no-blanks-where-there-were-none"),
        pytest.param("a \n", "b \n", "b \n", id="blanks-that-are-shown"),
    ],
)
def test_what_is_shown_of_a_new_output(old: str, new: str, expected: str) -> None:
    assert update_consoles._shown(old, new) == expected


def test_a_page_is_run_where_its_commands_belong(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "page.md").write_text("text\n\n```console\n$ ls *.ipynb\nold\n```\n\n```json\n{}\n```\n")
    monkeypatch.setattr(update_consoles, "ROOT", tmp_path)
    monkeypatch.setitem(update_consoles.PAGES, "page.md", update_consoles.PAGES["docs/notebooks.md"])
    text = update_consoles.updated("page.md")
    assert re.findall(r"(?s)```console\n(.*?)```", text) == ["$ ls *.ipynb\ntune.ipynb\n"]
