"""The command over notebooks: what it reports, fixes, silences, knows and compares, and how it takes all of that back."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ldlm_lint.cli import main
from ldlm_lint.model import Finding
from ldlm_lint.notebooks.fixes import in_cells
from ldlm_lint.project.index import Project
from ldlm_lint.source import Kind, Source

IMPORTS = "%matplotlib inline\nimport torch\nfrom torch.utils.data import DataLoader"
LOADER = "loader = DataLoader(dataset, prefetch_factor=4)"
FIXED = "loader = DataLoader(dataset)"
TRAIN = """\
model = torch.nn.Linear(3, 3).cuda()
for epoch in range(9):
    for x in loader:
        loss = model(x.cuda()).sum()
        loss.backward()
    torch.save(model.state_dict(), f"model_{epoch}.pt")"""
SELECT = "--select=dataloader-worker-options-without-workers,unbounded-checkpoints,environment-set-too-late,unused-suppression"
Run = Callable[..., tuple[int, dict[str, Any]]]


def notebook(*sources: str, count: int | None = 3) -> str:
    """The text of a notebook with a title and these code cells."""
    cells: list[dict[str, Any]] = [{"cell_type": "markdown", "id": "m", "metadata": {}, "source": ["# é\n", "text"]}]
    for number, source in enumerate(sources):
        output = {"name": "stdout", "output_type": "stream", "text": ["10\n"]}
        own = {"cell_type": "code", "execution_count": count, "id": f"c{number}", "metadata": {"x": 1.50}}
        cells.append({**own, "outputs": [output], "source": source.splitlines(keepends=True)})
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    document = {"cells": cells, "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(document, indent=1, ensure_ascii=False) + "\n"


@pytest.fixture
def book(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    root = tmp_path / "repo"
    root.mkdir()
    monkeypatch.chdir(root)
    (root / "pyproject.toml").write_text("[tool.ldlm-lint]\n")
    path = root / "a.ipynb"
    path.write_text(notebook(IMPORTS, LOADER, TRAIN), encoding="utf-8")
    return path


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    def call(*arguments: str) -> tuple[int, dict[str, Any]]:
        code = main(["check", "--no-cache", "--format", "json", SELECT, *arguments])
        return code, json.loads(capsys.readouterr().out)

    return call


def places(document: dict[str, Any]) -> list[tuple[str, int, int]]:
    return [(one["code"], one["cell"], one["line"]) for one in document["findings"]]


def sources(path: Path) -> list[str]:
    return ["".join(one["source"]) for one in json.loads(path.read_text(encoding="utf-8"))["cells"][1:]]


def git(*arguments: str) -> None:
    identity = [
        "-c",
        "user.name=a",
        "-c",
        "user.email=a@b.c",
        "-c",
        "commit.gpgsign=false",
        "-c",
        "core.autocrlf=false",
    ]
    subprocess.run(["git", *identity, *arguments], check=True, capture_output=True)


def test_findings_have_the_line_of_their_cell(book, run):
    code, document = run()
    assert code == 1
    assert places(document) == [("E7104", 3, 1), ("W7601", 4, 6)]
    assert [one.get("cell") for one in document["findings"][1]["related"]] == [4]


def test_the_text_shows_cells_and_no_line_of_another_one(book, capsys):
    main(["check", "--no-cache", SELECT])
    out = capsys.readouterr().out
    assert "--> a.ipynb:cell 3:1:10" in out
    assert "a.ipynb:cell 4:2 this training loop runs it" in out
    assert "%%" not in out and "\x01" not in out and "get_ipython" not in out


def test_an_edit_of_the_report_is_one_of_the_cells_text(book, run):
    _, document = run()
    (edit,) = document["findings"][0]["fix"]["edits"]
    text = sources(book)[edit["cell"] - 2].encode()
    assert (text[: edit["start"]] + edit["text"].encode() + text[edit["end"] :]).decode() == FIXED


def test_fixing_changes_the_lines_alone_and_undo_takes_it_back(book, run, capsys):
    before = book.read_bytes()
    run("--fix")
    assert book.read_bytes() == before.replace(b", prefetch_factor=4", b"")
    assert main(["undo"]) == 0
    capsys.readouterr()
    assert book.read_bytes() == before


def test_a_diff_is_the_patch_of_a_fix(book, capsysbinary):
    git("init", "-q")
    main(["check", "--no-cache", SELECT, "--diff", "--unsafe-fixes"])
    patch = book.parent / "a.patch"
    patch.write_bytes(capsysbinary.readouterr().out)
    before = book.read_bytes()
    main(["check", "--no-cache", SELECT, "--fix", "--unsafe-fixes"])
    fixed = book.read_bytes()
    book.write_bytes(before)
    git("apply", str(patch))
    assert book.read_bytes() == fixed != before


ATOMIC = "--select=non-atomic-checkpoint"
OVERWRITING = TRAIN.replace('f"model_{epoch}.pt"', '"model_last.pt"')


def test_an_import_goes_to_an_earlier_cell_and_magics_stay(book, run):
    book.write_text(notebook(IMPORTS, LOADER, OVERWRITING), encoding="utf-8")
    run(ATOMIC, "--fix", "--unsafe-fixes")
    imports, _, train = sources(book)
    assert imports == "%matplotlib inline\nimport os\n\nimport torch\nfrom torch.utils.data import DataLoader"
    assert 'os.replace("model_last.pt.tmp", "model_last.pt")' in train and "import" not in train


def test_an_import_of_a_later_cell_comes_too_late(book, run):
    book.write_text(notebook(IMPORTS, LOADER, OVERWRITING, "import os"), encoding="utf-8")
    _, document = run(ATOMIC, "--unsafe-fixes")
    assert [one["fix"]["applicability"] for one in document["findings"] if one["rule"] == "non-atomic-checkpoint"] == ["display"]
    run(ATOMIC, "--fix", "--unsafe-fixes")
    assert sources(book)[2] == OVERWRITING


def test_a_fix_of_several_cells_is_only_shown(book, run):
    old = "from torch.cuda.amp import autocast"
    book.write_text(notebook("import torch\n" + old, "with autocast():\n    model(x)"), encoding="utf-8")
    before = book.read_bytes()
    _, document = run("--select=deprecated-amp-api")
    assert {one["fix"]["applicability"] for one in document["findings"]} == {"display"}
    run("--select=deprecated-amp-api", "--fix", "--unsafe-fixes")
    assert book.read_bytes() == before
    book.write_text(notebook(f"import torch\n{old}\nwith autocast():\n    model(x)"), encoding="utf-8")
    run("--select=deprecated-amp-api", "--fix", "--unsafe-fixes")
    assert "from torch.amp import autocast" in sources(book)[0]


def test_nobody_knows_which_cell_runs_first(book, run):
    group = "import os\nimport torch.distributed as dist\ndist.init_process_group('nccl')"
    late = 'os.environ["TORCH_NCCL_DUMP_ON_TIMEOUT"] = "1"'
    book.write_text(notebook(group, late), encoding="utf-8")
    assert places(run()[1]) == []
    book.write_text(notebook(f"{group}\n{late}"), encoding="utf-8")
    assert places(run()[1]) == [("W7223", 2, 4)]


@pytest.mark.parametrize(
    "cells, suppressed",
    [
        pytest.param([f"{LOADER}  # ldlm-lint: ignore[E7104]"], 1, id="line"),
        pytest.param([f"# ldlm-lint: ignore[E7104]\n{LOADER}"], 1, id="above"),
        pytest.param(["x = 1\n# ldlm-lint: ignore[E7104]", LOADER], 0, id="end-of-the-cell-before"),
        pytest.param(["x = 1  # ldlm-lint: ignore-file[E7104]", LOADER], 1, id="whole-notebook"),
        pytest.param([f"{LOADER}  # pylint: disable=E7104"], 1, id="pylint"),
    ],
)
def test_comments_silence_within_their_cell(cells, suppressed, book, run):
    book.write_text(notebook(IMPORTS, *cells), encoding="utf-8")
    _, document = run()
    assert document["summary"]["suppressed"] == suppressed
    assert any(code == "E7104" for code, *_ in places(document)) == (not suppressed)
    assert any(code == "I6805" for code, *_ in places(document)) == (not suppressed)


def test_ignore_comments_are_written_into_cells(book, run):
    run("--add-ignores")
    imports, loader, train = sources(book)
    assert imports == IMPORTS
    assert loader == f"# ldlm-lint: ignore[dataloader-worker-options-without-workers] reason: ...\n{LOADER}"
    assert train.endswith("# ldlm-lint: ignore[unbounded-checkpoints] reason: ...")
    assert places(run()[1]) == []


def test_a_baseline_holds_when_cells_come_and_outputs_change(book, run, capsys):
    main(["baseline", SELECT])
    capsys.readouterr()
    book.write_text(notebook("x = 1", IMPORTS, LOADER, TRAIN, count=None).replace("10\\n", "11\\n"), encoding="utf-8")
    _, document = run()
    assert places(document) == [] and document["summary"]["baselined"] == 2


def test_since_knows_lines_of_code(book, run):
    git("init", "-q")
    git("add", ".")
    git("commit", "-qm", "state")
    changed = TRAIN.replace('f"model_', 'f"new_')
    book.write_text(json.dumps(json.loads(notebook("x = 1", IMPORTS, LOADER, changed, count=9))), encoding="utf-8")
    _, document = run("--since", "HEAD")
    assert places(document) == [("W7601", 5, 6)]
    assert document["summary"]["unchanged"] == 1


def test_settings_for_files_hold(book, run):
    (book.parent / "pyproject.toml").write_text('[tool.ldlm-lint]\nper-file-ignores = {"*.ipynb" = ["E7104"]}\n')
    assert places(run()[1]) == [("W7601", 4, 6)]
    (book.parent / "pyproject.toml").write_text('[tool.ldlm-lint]\nexclude = ["*.ipynb"]\n')
    (book.parent / "b.py").write_text("x = 1\n")
    assert run()[1]["summary"]["files"] == 1


def test_copies_that_jupyter_makes_are_no_inputs(book, run):
    copies = book.parent / ".ipynb_checkpoints"
    copies.mkdir()
    (copies / "a-checkpoint.ipynb").write_bytes(book.read_bytes())
    assert {one["path"] for one in run()[1]["findings"]} == {"a.ipynb"}


def test_a_notebook_that_cannot_be_read_does_not_stop_the_others(book, run):
    (book.parent / "b.ipynb").write_text('{"cells": [\n', encoding="utf-8")
    code, document = run()
    assert code == 3
    assert [one["path"] for one in document["errors"]] == ["b.ipynb"]
    assert [code for code, *_ in places(document)] == ["E7104", "W7601", "E6803"]


def test_a_cell_that_is_no_python_is_said_and_the_others_are_checked(book, run):
    book.write_text(notebook(IMPORTS, "x = = 1", LOADER), encoding="utf-8")
    assert places(run()[1]) == [("E6802", 3, 1), ("E7104", 4, 1)]


def test_a_notebook_that_changed_meanwhile_is_left_alone(book, monkeypatch, run):
    from ldlm_lint import fixing

    contents = fixing.write_changed

    def late(*arguments: Any) -> Any:
        book.write_text(notebook("x = 1"), encoding="utf-8")
        return contents(*arguments)

    monkeypatch.setattr(fixing, "write_changed", late)
    code, document = run("--fix")
    assert code == 3 and "changed since it was read" in document["errors"][0]["message"]
    assert sources(book) == ["x = 1"]


@pytest.mark.parametrize(
    "last, trains",
    [
        pytest.param("from train import fit\nprint(Net()(data))", False, id="a-demonstration"),
        pytest.param("from train import fit\nNet()(data).sum().backward()", True, id="a-training"),
    ],
)
def test_a_notebook_that_imports_a_training_trains_only_if_it_does(last, trains, book):
    train = book.parent / "train.py"
    train.write_text("def fit(model, data):\n    model(data).sum().backward()\n")
    book.write_text(notebook(last), encoding="utf-8")
    project = Project(book.parent.as_posix(), [book.as_posix(), train.as_posix()])
    assert (book.as_posix() in project.trainers_of(train.as_posix())) is trains


def test_a_message_names_lines_of_cells(book):
    source = Source.read(book, Kind.PYTHON)
    here, there = source.data.index(b"loader ="), source.data.index(b"model =")
    line = source.position(there)[0]
    finding = Finding(
        "x", "W0000", source.span(here, here + 6), (("where", f"line {line}"), ("also", f"a.ipynb:{line}"), ("n", 3))
    )
    (told,) = in_cells([finding], {source.path: source})
    assert told.args == (("where", "line 1 of cell 4"), ("also", "line 1 of cell 4"), ("n", 3))
    finding = finding._replace(span=source.span(there, there + 5))
    assert in_cells([finding], {source.path: source})[0].args[0] == ("where", "line 1")


SAVES = """\
import torch
from accelerate import Accelerator, notebook_launcher

def train(model, loader, folder):
    accelerator = Accelerator()
    for x in loader:
        accelerator.backward(model(x).sum())
    torch.save(model.state_dict(), folder + "/model.pt")
"""


@pytest.mark.parametrize(
    ("start", "found"),
    [("train(model, loader, folder)", 0), ("notebook_launcher(train, (model, loader, folder), num_processes=4)", 1)],
)
def test_the_cells_of_a_notebook_run_in_one_process(book: Path, run: Run, start: str, found: int) -> None:
    book.write_text(notebook(SAVES, start), encoding="utf-8")
    _, report = run("--select=checkpoint-saved-by-every-rank", str(book))
    assert len(report["findings"]) == found
    # The same in a script is a training of as many processes as its launcher starts.
    script = book.with_suffix(".py")
    script.write_text(f"{SAVES}\n{start}\n", encoding="utf-8")
    assert len(run("--select=checkpoint-saved-by-every-rank", str(script))[1]["findings"]) == 1
