"""How wide help is: what ``COLUMNS`` says, else the terminal, else 80, as the standard library tells it."""

from __future__ import annotations

import shutil

import pytest

from ldlm_lint import parsing
from ldlm_lint.commands.table import COMMANDS, parser_of


@pytest.mark.parametrize("told", ["", "0", "-3", "wide", "72", "300"])
def test_the_width_is_that_of_the_standard_library(told: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", told)
    assert parsing.columns() == shutil.get_terminal_size((80, 24)).columns


def test_a_parser_knows_the_command_that_is_named_or_all() -> None:
    def known(*named: str) -> list[str]:
        return list(parser_of(named)._subparsers._group_actions[0].choices)  # type: ignore[union-attr]

    assert known("graph") == ["graph"]
    assert known("--help") == [command.name for command in COMMANDS]
