"""Once a program is settled no question changes the answer to another one: in any order, and alone, queries find the same."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from pathlib import Path

import pytest
from related_places import context_of

import ldlm_lint
from ldlm_lint.budget import deep
from ldlm_lint.checkers.queries import Query, queries
from ldlm_lint.model import Finding
from ldlm_lint.program.solver import GrownError, Solver
from ldlm_lint.rules import ALL

DEFAULTS = {option.name: option.default for rule in ALL for option in rule.options}
FIXTURES = Path(__file__).parent / "fixtures"
FOLDERS = sorted({one.parent for one in FIXTURES.glob("*/*/*.py")} | {one.parent.parent for one in FIXTURES.glob("*/*/*/*.py")})

PARTS = 8
"""In so many parts the projects are looked at, side by side."""


def found_by(root: Path, asked: Iterable[Query]) -> dict[str, list[str]]:
    """What each query finds in a project, by the file of the query; related places, fixes and claims are among it."""
    context = context_of(root)
    context.view.options_of = context.facts_of = lambda _: DEFAULTS
    with deep():
        return {query.find.__module__: sorted(map(_said, query.find(context.view))) for query in asked}


def _said(finding: Finding) -> str:
    return repr(finding._replace(fix=None)) + (finding.fix.title if finding.fix is not None else "")


def agree(root: Path) -> None:
    """Assert that all queries find the same forwards, backwards and each alone."""
    forwards = found_by(root, queries())
    assert found_by(root, reversed(queries())) == forwards, root
    for query in queries():
        name = query.find.__module__
        if forwards[name]:
            assert found_by(root, [query])[name] == forwards[name], root


@pytest.mark.parametrize("part", range(PARTS))
def test_queries_find_the_same_in_any_order(part):
    for folder in FOLDERS[part::PARTS]:
        agree(folder)


@pytest.mark.corpus
def test_queries_find_the_same_in_any_order_in_real_repositories():
    for root in sorted(Path(os.environ["LDLM_CORPUS"]).iterdir()):
        agree(root)


def test_a_value_that_grows_after_it_was_given_is_an_error(tmp_path):
    (tmp_path / "train.py").write_text("def step(loss):\n    loss.backward()\n\n\nstep(make())\n")
    context = context_of(tmp_path)
    program = context.program
    assert Solver.watches
    module = program.live[0]
    call = module.base | next(iter(module.table.sites))
    program.ask(call)
    with pytest.raises(GrownError):
        program.put(call, frozenset([1, 2, 3]))


def test_only_the_assumptions_add_to_the_values_of_a_program():
    package = Path(ldlm_lint.__file__).parent
    files = (path for folder in ("concepts", "checkers", "project") for path in (package / folder).rglob("*.py"))
    writing = re.compile(r"program\.(?:put|requeue|solve)\(|\.hooks\[.*\] = ")
    assert {path.name for path in files if writing.search(path.read_text())} == {"assumed_values.py"}
