"""``ldlm-lint init``: writes a commented configuration into the project's pyproject.toml or a separate file."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Mapping
from pathlib import Path

from ldlm_lint.arguments import UsageError
from ldlm_lint.commands.output import FAILURE, OK, fail, write_file
from ldlm_lint.config_files import OWN_NAMES, PYPROJECT

_EPILOG = (
    "exit codes: 0 written, or printed; 2 invalid usage, a configuration exists already, or pyproject.toml cannot be "
    "read; 3 the file could not be written"
)


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``init``."""
    parser.epilog = _EPILOG
    parser.add_argument("path", nargs="?", default=".", metavar="PATH", help="the folder of the project (default: .)")
    parser.add_argument("--stdout", action="store_true", help="print the configuration, write nothing")


def run(arguments: argparse.Namespace) -> int:
    """Write the configuration, say where it is, and return the exit code."""
    from ldlm_lint.rules import ALL
    from ldlm_lint.starter import starter

    folder = Path(os.path.abspath(arguments.path))
    if not folder.is_dir():
        raise UsageError(f"{arguments.path}: not a folder")
    shared = folder / PYPROJECT
    place = shared if os.path.lexists(shared) else folder / OWN_NAMES[-1]
    text = starter(ALL, header=place == shared)
    if arguments.stdout:
        sys.stdout.write(text)
        return OK
    shown = os.path.relpath(place)
    if place.is_symlink():
        raise UsageError(f"{shown} is a symbolic link and is not changed; `ldlm-lint init --stdout` prints the configuration")
    data = _appended(place, text, shown) if place == shared else text.encode()
    _refuse_second(folder)
    try:
        write_file(str(place), data)
    except OSError as error:
        return fail(FAILURE, f"{shown}: {error.strerror or error}")
    what = "Added [tool.ldlm-lint] to" if place == shared else "Wrote"
    print(f"{what} {shown}: every key with its default, commented out. `ldlm-lint --show-settings` prints the current settings.")
    return OK


def _refuse_second(folder: Path) -> None:
    """Raise UsageError if a configuration exists already: one of two would be ignored."""
    for name in OWN_NAMES:
        if os.path.lexists(folder / name):
            raise UsageError(f"{os.path.relpath(folder / name)} exists already and is not changed")


def _appended(path: Path, text: str, shown: str) -> bytes:
    """The bytes of a pyproject.toml with our table after them; raises UsageError if it has one, or is not TOML."""
    from ldlm_lint.tomlfile import SECTION, line_of, read_text
    from ldlm_lint.untrusted_toml import loads

    before = read_text(path)
    tool, ours = SECTION
    found = _parsed(before, shown).get(tool, {})
    if isinstance(found, Mapping) and ours in found:
        raise UsageError(f"{shown}:{line_of(before, SECTION)} has [tool.ldlm-lint] already and is not changed")
    newline = "\r\n" if "\r\n" in before else "\n"
    gap = "" if not before else newline if before.endswith("\n") else newline * 2
    after = before + gap + text.replace("\n", newline)
    try:
        loads(after)
    except ValueError as error:
        raise UsageError(f"{shown}: cannot append a table ({error}); `ldlm-lint init --stdout` prints it") from error
    return path.read_bytes() + (gap + text.replace("\n", newline)).encode()


def _parsed(text: str, shown: str) -> Mapping[str, object]:
    from ldlm_lint.untrusted_toml import loads

    try:
        return loads(text)
    except ValueError as error:
        raise UsageError(f"{shown}: invalid TOML: {error}") from error
