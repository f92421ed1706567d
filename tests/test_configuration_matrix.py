"""Each file has the configuration that is nearest to it, in every host: the same findings, however it is asked for."""

from __future__ import annotations

import contextlib
import io
import json
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

import pytest
from editor import Editor
from pylint.lint import Run
from pylint.reporters import CollectingReporter

from ldlm_lint.cli import main
from ldlm_lint.rules import by_symbol

TRAINING = '''\
"""Trains."""

import os

import torch

os.environ["TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC"] = "5000"


def load(path):
    """What is at a path."""
    return torch.load(path)


def train(model, batches):
    """Steps."""
    model = model.cuda()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    for batch in batches:
        optimizer.zero_grad()
        model(batch).backward()
        optimizer.step()


def scaler():
    """Scales."""
    return torch.cuda.amp.GradScaler()
'''
FUSED, LOAD, AMP, BEAT = "optimizer-not-fused", "checkpoint-load-unspecified", "deprecated-amp-api", "excessive-heartbeat-timeout"
FILES = ("train.py", "gen/made.py", "a/train.py", "a/gen/made.py", "b/train.py", "b/deep/train.py")
USUAL = (FUSED, LOAD, AMP)
Found = Mapping[str, tuple[str, ...]]
"""The rules that are found in each file, by its path below the root; a file without findings is left out."""


class Cell(NamedTuple):
    """What the root project, ``a`` (a table in pyproject.toml) and ``b`` (ldlm-lint.toml) say, and what is then found."""

    root: str
    a: str
    b: str
    found: Found


CELLS = {
    "select": Cell(
        f'select = ["{LOAD}"]',
        f'select = ["{AMP}", "73"]',
        "",
        {**dict.fromkeys(FILES[:2], (LOAD,)), **dict.fromkeys(FILES[2:4], (AMP, FUSED)), **dict.fromkeys(FILES[4:], USUAL)},
    ),
    "ignore": Cell(
        f'ignore = ["{LOAD}"]',
        'ignore = ["73", "W7801"]',
        'extend-select = ["W7801"]',
        {**dict.fromkeys(FILES[:2], (AMP, FUSED)), **dict.fromkeys(FILES[2:4], (LOAD,)), **dict.fromkeys(FILES[4:], USUAL)},
    ),
    "level": Cell(
        'level = "warning"',
        'level = "error"',
        'level = "refactor"',
        {**dict.fromkeys(FILES[:2], (AMP, LOAD)), **dict.fromkeys(FILES[4:], USUAL)},
    ),
    "exclude": Cell(
        'exclude = ["/gen/", "deep"]',
        'exclude = ["train.py"]',
        "",
        {one: USUAL for one in ("train.py", "a/gen/made.py", "b/train.py", "b/deep/train.py")},
    ),
    "exclude-a-nested-project": Cell('exclude = ["b/"]', "", "", dict.fromkeys(FILES[:4], USUAL)),
    "per-file-ignores": Cell(
        f'per-file-ignores = {{"gen/" = ["{LOAD}"], "b/**" = ["ALL"]}}',
        f'per-file-ignores = {{"/train.py" = ["{AMP}"]}}',
        f'per-file-ignores = {{"deep/" = ["{FUSED}", "W78"]}}',
        {
            "train.py": USUAL,
            "gen/made.py": (AMP, FUSED),
            "a/train.py": (LOAD, FUSED),
            "a/gen/made.py": USUAL,
            "b/train.py": USUAL,
            "b/deep/train.py": (LOAD,),
        },
    ),
    "thresholds": Cell(
        "heartbeat-limit = 4000",
        "heartbeat-limit = 5000",
        "heartbeat-limit = 4999",
        {one: USUAL if one.startswith("a/") else (*USUAL, BEAT) for one in FILES},
    ),
}


@pytest.fixture(scope="module", params=CELLS)
def case(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Cell]:
    """A repository with two nested projects, and the cell that it stands for."""
    root, cell = tmp_path_factory.mktemp("matrix") / "repository", CELLS[request.param]
    for name in FILES:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(TRAINING)
    (root / ".git").mkdir()
    (root / "pyproject.toml").write_text(f'[project]\nname = "all"\n\n[tool.ldlm-lint]\n{cell.root}\n')
    (root / "a" / "pyproject.toml").write_text(f"[tool.ldlm-lint]\n{cell.a}\n")
    (root / "b" / "ldlm-lint.toml").write_text(f"{cell.b}\n")
    # One without our table holds nothing, and is passed over.
    (root / "gen" / "pyproject.toml").write_text("[tool.other]\n")
    return root, cell


def command(folder: Path, *words: object, text: str | None = None) -> list[dict[str, str]]:
    """The findings of a run of the program in a folder."""
    said, given = io.StringIO(), io.TextIOWrapper(io.BytesIO((text or "").encode()))
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(said):
        patch.chdir(folder)
        patch.setattr(sys, "stdin", given)
        assert main(["--format", "json", *map(str, words)]) in (0, 1)
    return [{"path": str(folder / one["path"]), "rule": one["rule"]} for one in json.loads(said.getvalue())["findings"]]


def from_the_root(root: Path, elsewhere: Path) -> list[dict[str, str]]:
    """``ldlm-lint .``"""
    return command(root)


def again_from_the_root(root: Path, elsewhere: Path) -> list[dict[str, str]]:
    """``ldlm-lint .``, by what the first run has left in the cache."""
    return command(root, "--statistics", "--fail-level", "error")


def in_several_processes(root: Path, elsewhere: Path) -> list[dict[str, str]]:
    """``ldlm-lint --jobs 2 .``"""
    return command(root, "--no-cache", "--jobs", "2")


def named_from_elsewhere(root: Path, elsewhere: Path) -> list[dict[str, str]]:
    """``ldlm-lint /repository/a/train.py …`` in another folder."""
    return command(elsewhere, *(root / name for name in FILES))


def each_from_elsewhere(root: Path, elsewhere: Path) -> list[dict[str, str]]:
    """``ldlm-lint`` with one file at a time."""
    return [one for name in FILES for one in command(elsewhere, root / name)]


def as_pre_commit(root: Path, elsewhere: Path) -> list[dict[str, str]]:
    """As pre-commit calls it: the names of some files, relative to the root."""
    return [one for names in (FILES[:3], FILES[3:]) for one in command(root, *names)]


def from_stdin(root: Path, elsewhere: Path) -> list[dict[str, str]]:
    """As an editor without the language server calls it."""
    return [one for name in FILES for one in command(root, "-", "--stdin-filename", name, text=TRAINING)]


def in_pylint(root: Path, elsewhere: Path) -> list[dict[str, str]]:
    """``pylint --load-plugins ldlm_lint``, what pylint itself has to say left aside."""
    reporter = CollectingReporter()
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(root)
        Run(["--rcfile=", "--persistent=n", "--clear-cache-post-run=y", "--load-plugins=ldlm_lint", *FILES], reporter=reporter, exit=False)
    return [{"path": one.abspath, "rule": one.symbol} for one in reporter.messages if one.symbol in by_symbol]


def in_the_server(root: Path, elsewhere: Path) -> list[dict[str, str]]:
    """The diagnostics of an editor that opens every file."""
    editor = Editor()
    editor.start(root)
    found = [{"path": str(root / name), "rule": str(one.code)} for name in FILES for one in editor.open(root / name)]
    assert editor.leave() == 0
    return found


HOSTS: tuple[Callable[[Path, Path], list[dict[str, str]]], ...] = (
    from_the_root,
    again_from_the_root,
    in_several_processes,
    named_from_elsewhere,
    each_from_elsewhere,
    as_pre_commit,
    from_stdin,
    in_pylint,
    in_the_server,
)


@pytest.mark.parametrize("host", HOSTS, ids=lambda host: host.__name__)
def test_every_host_finds_the_same(case: tuple[Path, Cell], host: Callable[..., list[dict[str, str]]], tmp_path: Path) -> None:
    root, cell = case
    assert by_file(host(root, tmp_path), root) == {name: tuple(sorted(rules)) for name, rules in cell.found.items()}


def by_file(found: Iterable[Mapping[str, str]], root: Path) -> Found:
    rules: dict[str, list[str]] = defaultdict(list)
    for one in found:
        rules[Path(one["path"]).resolve().relative_to(root.resolve()).as_posix()].append(one["rule"])
    return {name: tuple(sorted(names)) for name, names in rules.items()}
