"""``ldlm-lint`` in this process, and a project that it is called in: what the fixtures ``run`` and ``enter`` give to tests."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from ldlm_lint.cli import main
from ldlm_lint.commands.table import COMMANDS, parser_of

Run = Callable[..., tuple[int, str, str]]
"""What is called with words, and gives the exit code and both streams."""

Enter = Callable[[Mapping[str, "str | bytes"]], Path]
"""What is called with files by their paths, and gives the folder that they were written to and that is entered."""

# What says of a terminal or a service that it is there, and would change what is printed.
SURROUNDINGS = ("NO_COLOR", "FORCE_COLOR", "GITHUB_WORKSPACE", "CI_PROJECT_DIR")


def calling(capsys: pytest.CaptureFixture[str], *first: str) -> Run:
    """``ldlm-lint`` with these words before those of each call."""

    def call(*arguments: object) -> tuple[int, str, str]:
        code = main([*first, *map(str, arguments)])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return call


def entered(root: Path, files: Mapping[str, str | bytes], monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project of these files, the working directory of a test that has 80 columns and no surroundings."""
    for name, content in files.items():
        place = root / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(content if isinstance(content, bytes) else content.encode())
    monkeypatch.chdir(root)
    for variable in SURROUNDINGS:
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("COLUMNS", "80")
    return root


def every_parser() -> Iterator[argparse.ArgumentParser]:
    """The parsers of all commands and of their forms."""
    waiting = [parser_of([one.name for one in COMMANDS])]
    while waiting:
        parser = waiting.pop()
        for action in parser._actions:
            if isinstance(action, argparse._SubParsersAction):
                waiting += action.choices.values()
        if parser.prog != "ldlm-lint":
            yield parser
