"""How much of a program is computed before a rule asks: in counts, which are the same on every machine."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from related_places import context_of

from ldlm_lint.budget import deep
from ldlm_lint.program.program import Program

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

BUDGETS = tomllib.loads((Path(__file__).parent / "computations.toml").read_text(encoding="utf-8"))
BENCHMARKS = Path(__file__).parent.parent / "benchmarks"
PER_CALL = 6.5
"""Computations for each call of a library behind scripts; 6.2 for 250 modules, 5.9 for a thousand."""


def program_of(root: Path) -> Program:
    with deep():
        return context_of(root).program


@pytest.mark.corpus
@pytest.mark.parametrize("name", BUDGETS)
def test_no_more_is_computed_of_a_repository_than_is_written(name: str) -> None:
    root = Path(os.environ["LDLM_CORPUS"]) / name
    if not root.is_dir():
        pytest.skip(f"no checkout of {BUDGETS[name]['repository']} at {BUDGETS[name]['commit'][:8]}")
    program = program_of(root)
    assert len(program.values) <= BUDGETS[name]["keys"]
    assert program.evaluations <= BUDGETS[name]["evaluations"]


@pytest.mark.parametrize("modules", [250, 1000])
def test_a_library_behind_sixty_scripts_takes_the_same_for_each_call(modules: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    import synthetic

    synthetic.write_files(tmp_path, synthetic.library(modules))
    program = program_of(tmp_path)
    assert len(program.live) == modules + synthetic.SCRIPTS + 2
    assert program.evaluations / sum(len(module.table.sites) for module in program.live) < PER_CALL
