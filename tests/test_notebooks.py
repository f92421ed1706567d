"""Notebooks as files: how their cells are read, what of them is written, and that nothing else changes."""

from __future__ import annotations

import ast
import json
import random
from pathlib import Path
from typing import Any

import pytest
from collected import for_every
from hypothesis import given
from hypothesis import strategies as st

from ldlm_lint.notebooks import magics
from ldlm_lint.notebooks.document import NotebookError, read
from ldlm_lint.notebooks.rewrite import rewritten
from ldlm_lint.notebooks.text import cell_texts, frozen, parts, python_text, untouched
from ldlm_lint.source import Kind, Source, UnreadableError

PATH = "/p/a.ipynb"


def cell(source: str | list[str], kind: str = "code", **more: Any) -> dict[str, Any]:
    own = {"execution_count": 3, "outputs": [{"data": {"image/png": "iVBO" * 9}}]} if kind == "code" else {}
    return {"cell_type": kind, "id": "a1", "metadata": {}, **own, "source": source, **more}


def notebook(*cells: dict[str, Any], language: str | None = "python", **more: Any) -> dict[str, Any]:
    metadata = {} if language is None else {"kernelspec": {"language": language, "name": "x"}}
    return {"cells": list(cells), "metadata": metadata, "nbformat": 4, "nbformat_minor": 5, **more}


def stored(*sources: str, **style: Any) -> bytes:
    """The bytes of a notebook with these code cells, written as Jupyter writes it."""
    cells = [cell(source.splitlines(keepends=True)) for source in sources]
    return (json.dumps(notebook(*cells), **{"indent": 1, "ensure_ascii": False, **style}) + "\n").encode()


def texts(data: bytes) -> dict[int, str]:
    return cell_texts(python_text(data))


def edited(data: bytes, old: str, new: str) -> bytes:
    """The file after an edit of the joined text."""
    return rewritten(data, python_text(data).replace(old.encode(), new.encode()))


@for_every(
    "text, masked",
    [
        pytest.param("!pip install torch", "{}!pip install torch", id="shell"),
        pytest.param("%matplotlib inline\nx = 1", "{}%matplotlib inline\nx = 1", id="line-magic"),
        pytest.param("if x:\n    !ls\n    y = 1", "if x:\n    {}!ls\n    y = 1", id="indented"),
        pytest.param("files = !ls *.py\n", "files = {}!ls *.py\n", id="assigned-shell"),
        pytest.param("a, b = %time f()", "a, b = {}%time f()", id="assigned-magic"),
        pytest.param("!cat a \\\n  b\nx = 1", "{}!cat a \\\n#\x02  b\nx = 1", id="continued"),
        pytest.param("torch.load?", "{}torch.load?", id="help"),
        pytest.param("?torch.load", "{}?torch.load", id="help-first"),
        pytest.param("torch.load??\n", "{}torch.load??\n", id="source"),
        pytest.param("%%time\nx = 1\n", "#\x02%%time\nx = 1\n", id="python-cell-magic"),
        pytest.param("%%capture out\n%%time\n!ls\nx = 1", "#\x02%%capture out\n#\x02%%time\n{}!ls\nx = 1", id="two"),
        pytest.param("%%bash\nls $X\n", "#\x02%%bash\n#\x02ls $X\n", id="other-cell-magic"),
        pytest.param("%sql\nSELECT 1", "#\x02%sql\n#\x02SELECT 1", id="another-language"),
        pytest.param("x = (1\n % 2)", "x = (1\n % 2)", id="modulo-in-brackets"),
        pytest.param('t = """\n%time\n!ls\n"""\n!ls', 't = """\n%time\n!ls\n"""\n{}!ls', id="text"),
        pytest.param("x = 'it' # ?\n!ls", "x = 'it' # ?\n{}!ls", id="comment"),
        pytest.param("x = [\n  1,  # [\n]\n%cd a", "x = [\n  1,  # [\n]\n{}%cd a", id="bracket-in-a-comment"),
        pytest.param("f('''\n(''')\n%cd a", "f('''\n(''')\n{}%cd a", id="bracket-in-a-text"),
        pytest.param("ls -l a.txt", "{}ls -l a.txt", id="unsigned"),
        pytest.param("x = 1\npip install torch\n", "x = 1\n{}pip install torch\n", id="unsigned-command"),
        pytest.param("run = 3\nrun (1)\n%cd a", "run = 3\nrun (1)\n{}%cd a", id="name-of-a-magic"),
        pytest.param("await f();", "await f();", id="await"),
        pytest.param("", "", id="empty"),
    ],
)
def test_what_is_no_python_is_put_aside(text, masked):
    assert magics.masked(text) == masked.replace("{}", "get_ipython()#\x02")
    assert magics.parses(magics.masked(text))
    assert magics.restored(magics.masked(text)) == text


@given(st.text(st.sampled_from("x=1 !%?#'\"\\\n\r()[]:\tabé"), max_size=60))
def test_any_cell_is_read_back_as_it_is(text):
    data = stored("x = 1", text, "y = 2")
    assert texts(data) == {1: "x = 1", 2: text, 3: "y = 2"}
    ast.parse(python_text(data).decode())
    assert rewritten(data, python_text(data)) == data


def test_cells_are_counted_with_those_that_hold_no_code():
    data = json.dumps(
        notebook(cell("# A", "markdown"), cell("x = 1"), cell("raw", "raw"), cell(["y = 2\n", "z = 3"]))
    ).encode()
    assert texts(data) == {2: "x = 1", 4: "y = 2\nz = 3"}
    source = Source.from_bytes(PATH, data, Kind.PYTHON)
    at = source.data.index(b"z = 3")
    assert source.span(at, at + 5).cell == 4
    assert source.shown(at) == (2, 1)


def test_a_cell_that_is_no_python_is_hidden_and_the_others_are_not():
    data = python_text(stored("x = 1", "y = (", "z = 2"))
    assert [(part.number, part.error_line, bool(part.error)) for part in parts(data)] == [
        (1, 0, False),
        (2, 1, True),
        (3, 0, False),
    ]
    assert ast.dump(ast.parse(data)) == ast.dump(ast.parse("x = 1\nz = 2"))


@pytest.mark.parametrize("language, found", [("python", 1), (None, 1), ("Python", 1), ("R", 0), ("julia", 0)])
def test_notebooks_in_other_languages_hold_no_code_for_us(language, found):
    assert len(texts(json.dumps(notebook(cell("x <- 1"), language=language)).encode())) == found


def test_an_indented_cell_is_passed_over_without_an_error():
    data = python_text(stored("    x = 1\n    y = 2", "z = 3"))
    assert [part.error for part in parts(data)] == ["", ""]
    assert texts(data) == {1: "    x = 1\n    y = 2", 2: "z = 3"}


def test_a_cell_in_another_language_holds_no_code_for_us():
    other = cell("SELECT 1", metadata={"vscode": {"languageId": "sql"}})
    assert texts(json.dumps(notebook(other, cell("x = 1"))).encode()) == {2: "x = 1"}


def test_worksheets_of_the_old_format_are_read_and_written():
    old = {"cell_type": "code", "input": ["x = 1\n", "y = 2"], "language": "python", "outputs": []}
    data = json.dumps({"metadata": {}, "nbformat": 3, "worksheets": [{"cells": [old]}, {"cells": [old]}]}).encode()
    assert texts(data) == {1: "x = 1\ny = 2", 2: "x = 1\ny = 2"}
    assert edited(data, "y = 2", "y = 3") == data.replace(b"y = 2", b"y = 3")


@for_every(
    "data, message, line",
    [
        (b"", "not valid JSON", 1),
        (b'{\n"cells": [}', "not valid JSON", 2),
        (b"[]", "not an object", 1),
        (b"{}", "no list of cells", 1),
        (b'{"cells": 3}', "no list of cells", 1),
        (b'{"cells": []} x', "Extra data", 1),
        (b'{"cells": [{"cell_type": "code",\n"source": 3}]}', "cell 1 is not text", 2),
        (b'{"cells": [{"cell_type": "code", "source": [1]}]}', "cell 1 is not text", 1),
        (b'{"cells": [\n"\xff"]}', "not valid utf-8", 2),
        (b'{"cells": [{"cell_type": "code", "source": "\\ud800"}]}', "surrogate", 1),
        (b'{"cells": [{"cell_type": "code", "source": "\\u0001"}]}', "control characters", 1),
        (b'{"metadata": ' + b"[" * 100_000, "nested too deeply", 1),
        (b'<<<<<<< HEAD\n{"cells": []}', "not valid JSON", 1),
    ],
)
def test_what_is_no_notebook_says_why(data, message, line):
    with pytest.raises(UnreadableError, match=message) as caught:
        Source.from_bytes(PATH, data, Kind.PYTHON)
    assert caught.value.line == line


@for_every("odd", [3, None, "x", [], {}, {"cell_type": 4}, {"cell_type": "code"}, {"source": "x"}])
def test_odd_cells_are_counted_and_passed_over(odd):
    assert texts(json.dumps({"cells": [odd, cell("x = 1")]}).encode()) == {2: "x = 1"}


def test_thousands_of_digits_are_not_turned_into_a_number():
    assert texts(b'{"a": ' + b"9" * 9_000 + b', "cells": []}') == {}


def test_a_large_notebook_is_judged_by_its_code(tmp_path):
    path = tmp_path / "big.ipynb"
    path.write_bytes(json.dumps(notebook(cell("x = 1", outputs=[{"image": "A" * 6_000_000}]))).encode())
    assert b"x = 1" in Source.read(path, Kind.PYTHON).data
    path.write_bytes(json.dumps(notebook(cell("x = 1\n" * 900_000))).encode())
    with pytest.raises(UnreadableError, match="its code is larger"):
        Source.read(path, Kind.PYTHON)


@for_every(
    "style",
    [
        pytest.param({}, id="jupyter"),
        pytest.param({"indent": None}, id="one-line"),
        pytest.param({"indent": 4, "sort_keys": True}, id="wide-and-sorted"),
        pytest.param({"indent": "\t"}, id="tabs"),
        pytest.param({"ensure_ascii": True}, id="escaped"),
        pytest.param({"separators": (",", ":"), "indent": None}, id="compact"),
    ],
)
def test_a_changed_line_is_written_in_the_style_of_the_file(style):
    sources = ("print('é')\nx = 1\ny = 2", "!ls\nz = 3")
    data = stored(*sources, **style)
    assert edited(data, "x = 1\n", "x = 'ü'\nw = \"\\\\\"\n") == stored(
        sources[0].replace("x = 1\n", "x = 'ü'\nw = \"\\\\\"\n"), sources[1], **style
    )
    assert edited(data, "y = 2\n", "") == stored("print('é')\nx = 1\n".rstrip("\n"), sources[1], **style)
    assert edited(data, "z = 3\n", "z = 3\nv = 4\n") == stored(sources[0], "!ls\nz = 3\nv = 4", **style)


def test_a_source_in_one_string_stays_one():
    data = json.dumps(notebook(cell("x = 1\ny = 2"), cell("z"))).encode()
    assert edited(data, "y = 2", "y = 3") == data.replace(b"y = 2", b"y = 3")


def test_lines_that_do_not_change_keep_their_spelling():
    data = rb'{"cells": [{"cell_type": "code", "source": ["a = \"\u0041\/\"\n",   "b = 1\n" ,"c = 2"]}]}'
    assert edited(data, "c = 2", "c = 3") == data.replace(b"c = 2", b"c = 3").replace(b' ,"c', b',   "c')


@pytest.mark.parametrize(
    "data",
    [
        stored("x = 1\r\ny = 2"),
        b"\xef\xbb\xbf" + stored("x = 1\ny = 2"),
        stored("x = 1\ny = 2").replace(b"\n", b"\r\n"),
    ],
)
def test_line_ends_and_byte_order_marks_stay(data):
    assert edited(data, "y = 2", "y = 3") == data.replace(b"y = 2", b"y = 3")


def test_empty_cells_take_lines_too():
    data = stored("", "x = 1")
    begin = parts(python_text(data))[0].start
    text = python_text(data)
    new = json.loads(rewritten(data, text[:begin] + b"import os\n" + text[begin:]))
    assert "".join(new["cells"][0]["source"]) == "import os\n"
    assert new["cells"][1]["source"] == ["x = 1"]


def test_cells_that_do_not_fit_are_refused():
    data = stored("x = 1", "y = 2")
    with pytest.raises(NotebookError):
        rewritten(data, python_text(stored("x = 1")))


@given(
    st.lists(
        st.lists(st.sampled_from(["x = 1", "!ls", "é = '\\\\'", "", "    y = 2", "%%time"]), max_size=4),
        min_size=1,
        max_size=4,
    ),
    st.randoms(),
    st.booleans(),
)
def test_only_the_sources_of_edited_cells_change(cells, choice, escaped):
    data = stored(*("\n".join(lines) for lines in cells), ensure_ascii=escaped)
    number = choice.randint(1, len(cells))
    part = next(one for one in parts(python_text(data)) if one.number == number)
    text = python_text(data)
    new = rewritten(data, text[: part.end] + b"z = 3\n" + text[part.end :])
    before, after = json.loads(data), json.loads(new)
    assert "".join(after["cells"][number - 1]["source"]) == texts(data)[number] + "\nz = 3"
    after["cells"][number - 1]["source"] = before["cells"][number - 1]["source"]
    assert after == before and list(after["cells"][0]) == list(before["cells"][0])
    assert [cell.text for cell in read(data).cells if cell.number != number] == [
        c.text for c in read(new).cells if c.number != number
    ]


def test_a_command_may_end_with_a_backslash():
    command, after = "!python run.py --speed \\\n    --models a \\\n", "x = 1"
    data = python_text(stored(command, after))
    assert b"not parsed" not in data and b"x = 1" in data
    assert cell_texts(data) == {1: command, 2: after}
    assert b"not parsed" in python_text(stored("x = 1 + \\\n", after))


def test_bounds_and_commands_are_frozen():
    data = python_text(stored("%%time\nx = 1", "!ls\ny = 2"))
    for piece in ("[cell 1]", "%%time", "!ls"):
        at = data.index(piece.encode())
        assert not untouched(data, at, at + 1)
        assert frozen(data.replace(piece.encode(), piece.encode() + b" ")) != frozen(data)
    top, first, second = parts(data)[0].start, data.index(b"x = 1"), data.index(b"y = 2")
    assert not untouched(data, top, top)
    assert frozen(data[:top] + b"import os\n" + data[top:]) != frozen(data)
    assert untouched(data, first, first + 5) and untouched(data, first, first) and untouched(data, second, second)
    assert frozen(data[:first] + b"import os\n" + data[first:]) == frozen(data)
    assert not untouched(data, first, second)


def test_real_notebooks_keep_their_bytes(tmp_path: Path):
    """A hundred made-up notebooks in random styles, each with one more line in one cell."""
    choice = random.Random(7)
    for _ in range(100):
        style = {"indent": choice.choice([None, 1, 2, "\t"]), "ensure_ascii": choice.random() < 0.5}
        sources = [
            "\n".join(choice.choices(["a = 1", "!ls", "# ü", "b = 'x'  "], k=choice.randint(0, 5))) for _ in range(4)
        ]
        data = stored(*sources, **style)
        new = edited(data, "a = 1\n", "a = 2\n")
        assert new == stored(*(source.replace("a = 1", "a = 2") for source in sources), **style)
