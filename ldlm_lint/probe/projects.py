"""Resolves the user's command and its project."""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

_SECRET = re.compile(r"token$|secret|passw|credential|api[-_]?key", re.IGNORECASE)
_MARKS = (".git", "pyproject.toml", "setup.py", "setup.cfg")


class CommandError(Exception):
    """A command that cannot be run; the text says why."""


def command_of(words: Sequence[str], cwd: Path) -> list[str]:
    """The command to run: a script gets an interpreter, ``python`` is ours if none is found.

    Raises CommandError for a program that is not found.
    """
    if not words:
        raise CommandError("no command: write it after --, as in: ldlm-lint probe run -- python train.py")
    command = list(words)
    if command[0].endswith(".py") and shutil.which(command[0], path=str(cwd)) is None:
        command.insert(0, "python")
    if command[0] in ("python", "python3") and shutil.which(command[0]) is None:
        command[0] = sys.executable
    if shutil.which(command[0]) is None and shutil.which(str(cwd / command[0])) is None:
        raise CommandError(f"{command[0]}: command not found")
    if command[0].rpartition("/")[2].startswith("python"):
        _script_exists(command, cwd)
    return command


def _script_exists(command: Sequence[str], cwd: Path) -> None:
    """The error of Python, raised before the user is asked whether to run it."""
    script = command[1] if len(command) > 1 else ""
    if script.endswith(".py") and not (cwd / script).is_file():
        raise CommandError(f"{script}: no such file")


def without_secrets(command: Sequence[str]) -> tuple[str, ...]:
    """The command as stored in evidence: values of options that are named like secrets are left out.

    >>> without_secrets(["train.py", "--api-key=abc", "--wandb_token", "abc", "--lr", "1"])
    ('train.py', '--api-key=***', '--wandb_token', '***', '--lr', '1')
    """
    shown: list[str] = []
    for word in command:
        name, equals, _ = word.partition("=")
        hidden = bool(shown) and shown[-1].startswith("-") and "=" not in shown[-1] and _SECRET.search(shown[-1])
        if hidden and not word.startswith("-"):
            shown.append("***")
        else:
            shown.append(f"{name}=***" if equals and _SECRET.search(name) else word)
    return tuple(shown)


def root_of(command: Sequence[str], cwd: Path) -> Path:
    """The project's root: of the first script that the command names, else of ``cwd``.

    It is the nearest folder upwards with a repository or a project file; without one, ``cwd``, or the script's folder
    if that is elsewhere.
    """
    script = next((path for path in map(cwd.joinpath, command) if path.suffix == ".py" and path.is_file()), None)
    start = script.resolve().parent if script else cwd.resolve()
    marked = (folder for folder in (start, *start.parents) if any((folder / mark).exists() for mark in _MARKS))
    found = next(marked, None)
    if found is not None:
        return found
    return cwd.resolve() if start.is_relative_to(cwd.resolve()) else start
