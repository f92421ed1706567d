"""Formats that are shown beside the file of a notebook: its own lines, and fixes that a viewer can apply to them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from calling import Enter, Run
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft4Validator

from ldlm_lint.model import Edit, Span
from ldlm_lint.notebooks.document import read
from ldlm_lint.notebooks.rewrite import rewritten
from ldlm_lint.notebooks.stored import Stored
from ldlm_lint.region import Region
from ldlm_lint.source import Kind, Source

SARIF = json.loads((Path(__file__).parent / "schemas" / "sarif-schema-2.1.0.json").read_text(encoding="utf-8"))
IMPORT = "%matplotlib inline\nfrom torch.utils.data import DataLoader"
LOADER = "%%time\ns = 'é😀\"\\\\\\t'; loader = DataLoader(dataset, prefetch_factor=4)\n"
CALL = "DataLoader(dataset, prefetch_factor=4)"
STYLES: dict[str, dict[str, Any]] = {
    "as Jupyter writes it": {"indent": 1, "ensure_ascii": False},
    "escaped": {"indent": 2},
    "in one line": {"separators": (",", ":")},
}


def notebook(*cells: str, listed: bool = True, **style: Any) -> bytes:
    """The bytes of a notebook with a title and these code cells."""
    title = {"cell_type": "markdown", "metadata": {}, "source": ["# é\n", "title"]}
    code: dict[str, Any] = {"cell_type": "code", "execution_count": 1, "metadata": {}, "outputs": [{"text": ["2\n"]}]}
    made = [{**code, "source": text.splitlines(keepends=True) if listed else text} for text in cells]
    return json.dumps({"cells": [title, *made], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}, **style).encode()


def stored(data: bytes) -> Stored:
    return Stored(Source.from_bytes("/p/a.ipynb", data, Kind.PYTHON), read(data))


def replaced(data: bytes, changes: list[tuple[Region, str]]) -> bytes:
    """The file after what a viewer is told to replace, once by lines and columns, once by bytes; they say the same."""
    text = data.decode("utf-8-sig")
    lines = [0, *(at + 1 for at, letter in enumerate(text) if letter == "\n")]
    for region, new in sorted(changes, reverse=True):
        start, end = lines[region.line - 1] + region.column - 1, lines[region.end_line - 1] + region.end_column - 1
        text = text[:start] + new + text[end:]
        data = data[: region.start] + new.encode() + data[region.end :]
    assert data.decode("utf-8-sig") == text
    return data


@pytest.fixture
def project(enter: Enter) -> Path:
    return enter({"pyproject.toml": ""})


@pytest.mark.parametrize("style", STYLES.values(), ids=STYLES)
@pytest.mark.parametrize("listed", [True, False], ids=["lines", "string"])
def test_places_and_fixes_are_those_of_the_file(project: Path, run: Run, style: dict[str, Any], listed: bool) -> None:
    path = project / "a.ipynb"
    before = notebook(IMPORT, LOADER, listed=listed, **style)
    path.write_bytes(before)
    log = json.loads(run("--format", "sarif")[1])
    assert not list(Draft4Validator(SARIF).iter_errors(log))
    (result,) = log["runs"][0]["results"]
    (location,) = result["locations"]
    assert location["logicalLocations"] == [
        {"name": "cell 3", "fullyQualifiedName": "cell 3:2:25", "kind": "notebookCell"}
    ]
    region = region_of(location["physicalLocation"]["region"])
    assert before[region.start : region.end].decode() == CALL
    assert replaced(before, [(region, CALL)]) == before
    (change,) = result["fixes"][0]["artifactChanges"]
    changes = [(region_of(one["deletedRegion"]), one["insertedContent"]["text"]) for one in change["replacements"]]
    line = f"line={region.line},col={region.column},endLine={region.end_line},endColumn={region.end_column}::"
    assert line in run("--format", "github")[1]
    (issue,) = json.loads(run("--format", "gitlab")[1])
    assert issue["description"].startswith("cell 3:2: ")
    assert issue["location"]["lines"] == {"begin": region.line, "end": region.end_line}
    run("--fix", "--unsafe-fixes")
    assert path.read_bytes() == replaced(before, changes) != before


def region_of(found: dict[str, int]) -> Region:
    start = found["byteOffset"]
    lines = (found[name] for name in ("startLine", "startColumn", "endLine", "endColumn"))
    return Region(*lines, start, start + found["byteLength"])


def test_a_file_that_changed_meanwhile_has_no_place() -> None:
    """Such as one that stdin holds another text of."""
    from ldlm_lint.notebooks import stored as room

    source = Source.from_bytes("/nowhere/a.ipynb", notebook("x = 1"), Kind.PYTHON)
    assert room.stored(source) is None


TEXT = st.text(st.sampled_from("a\n\"\\é😀\t\u2028'"), max_size=12)


@given(st.lists(TEXT, min_size=1, max_size=3), st.booleans(), st.sampled_from(list(STYLES.values())), st.data())
def test_every_stretch_of_every_cell_is_found(
    cells: list[str], listed: bool, style: dict[str, Any], data: st.DataObject
) -> None:
    sources = [f"'''{text} '''" if "'" not in text else "x" for text in cells]
    file = b"\xef\xbb\xbf" + notebook(*sources, listed=listed, **style)
    found = stored(file)
    part = data.draw(st.sampled_from(found.source.parts))
    code = found.source.data[part.start : part.end].decode()[:-1]
    start = data.draw(st.integers(0, len(code)))
    end = data.draw(st.integers(start, len(code)))
    first = part.start + len(code[:start].encode())
    span = Span("/p/a.ipynb", first, first + len(code[start:end].encode()), part.number)
    region = found.region(span)
    assert region is not None
    if len((code[start:end] + "x").splitlines()) == 1:
        # Within one string of the file.
        piece = file[region.start : region.end].decode()
        assert json.loads(f'"{piece}"') == code[start:end]
    assert replaced(file, [(region, file[region.start : region.end].decode())]) == file
    edit = Edit(span, "y")
    changed = found.source.data[: span.start] + b"y" + found.source.data[span.end :]
    assert replaced(file, found.replacements([edit])) == rewritten(file, changed)
