"""The journal's record of one run, as values and as JSON.

A journal comes with the project, and a project may be untrusted. So every path is checked: it must be below the root
and outside of the folders of tools (a `.git/config` with known bytes could run a program), and its target is checked
before anything is written (see `ldlm_lint.autofix.transaction`).
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import PurePath
from typing import Any

from ldlm_lint.patterns import lazily

SCHEMA = "ldlm-lint-run/1"
MOST_FILES = 100_000
_HASH = lazily(r"[0-9a-f]{64}")
_ID = lazily(r"([0-9]{6,18})-[0-9a-f]{12}")
_TIME = lazily(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC", re.ASCII)
_WORD = lazily(r"[\w.=-]{1,80}", re.ASCII)


class RunError(ValueError):
    """An invalid journal; the text says why."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A file of a run: its path relative to the root, with forward slashes, and the hashes of its bytes."""

    path: str
    before: str
    after: str


@dataclass(frozen=True, slots=True)
class Run:
    """The written files, the time and the command.

    ``options`` are those of the command line, ``rules`` the number of fixed findings by rule; ``undoes`` is the run
    that this one undoes (empty: it is not an undo).
    """

    id: str
    time: str
    options: tuple[str, ...]
    rules: Mapping[str, int]
    files: tuple[Entry, ...]
    undoes: str = ""


def digest(data: bytes) -> str:
    """The hash of the bytes of a file."""
    return hashlib.sha256(data).hexdigest()


def is_id(name: str) -> bool:
    """Whether a run can be called so."""
    return bool(_ID.fullmatch(name))


def number_of(identifier: str) -> int:
    """The place of a run in the order of runs; ``identifier`` must be one."""
    return int(identifier.partition("-")[0])


def render(run: Run) -> bytes:
    """The journal of a run: ASCII, names that are not text included."""
    return (json.dumps({"schema": SCHEMA, **asdict(run)}, indent=1, sort_keys=True) + "\n").encode("ascii")


def parse(data: bytes, identifier: str) -> Run:
    """The run in a journal; raises RunError if it is not a journal of the run ``identifier``."""
    try:
        document = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise RunError(f"is not valid JSON: {error}") from error
    if not isinstance(document, dict) or document.get("schema") != SCHEMA:
        raise RunError(f'must be an object with "schema": "{SCHEMA}"')
    if document.get("id") != identifier:
        raise RunError("belongs to another run")
    undoes = _text(document, "undoes")
    if undoes and not is_id(undoes):
        raise RunError('"undoes" must be a run')
    if not _TIME.fullmatch(_text(document, "time")):
        raise RunError('"time" must be like 2026-01-31 12:00:00 UTC')
    return Run(identifier, document["time"], _options(document), _rules(document), _files(document), undoes)


def _text(document: Mapping[str, Any], key: str) -> str:
    value = document.get(key)
    if not isinstance(value, str):
        raise RunError(f'"{key}" must be a string')
    return value


def _options(document: Mapping[str, Any]) -> tuple[str, ...]:
    options = document.get("options")
    if not isinstance(options, list) or not all(isinstance(one, str) and _WORD.fullmatch(one) for one in options):
        raise RunError('"options" must be a list of options')
    return tuple(options)


def _rules(document: Mapping[str, Any]) -> dict[str, int]:
    rules = document.get("rules")
    if not isinstance(rules, dict) or not all(
        _WORD.fullmatch(name) and type(count) is int and count >= 0 for name, count in rules.items()
    ):
        raise RunError('"rules" must be an object of counts')
    return dict(rules)


def _files(document: Mapping[str, Any]) -> tuple[Entry, ...]:
    entries = document.get("files")
    if not isinstance(entries, list) or len(entries) > MOST_FILES:
        raise RunError('"files" must be a list')
    files = tuple(map(_entry, entries))
    if len({entry.path for entry in files}) < len(files):
        raise RunError("names a file twice")
    return files


def _entry(entry: object) -> Entry:
    if not isinstance(entry, dict) or not all(isinstance(entry.get(key), str) for key in ("path", "before", "after")):
        raise RunError("a file must be an object with path, before and after")
    if not _HASH.fullmatch(entry["before"]) or not _HASH.fullmatch(entry["after"]):
        raise RunError("before and after must be hashes")
    if not is_inside(entry["path"]):
        raise RunError(f"{entry['path']!a} is not a path of a file in the project")
    return Entry(entry["path"], entry["before"], entry["after"])


def is_inside(path: str) -> bool:
    """Whether a path, relative and with forward slashes, names a file below the root that no other tool owns."""
    # Imported here, since a check that only asks for a state must not wait for it.
    from ldlm_lint.discover import TOOL_DIRECTORIES

    try:
        os.fsencode(path)
    except UnicodeEncodeError:
        return False
    parts = path.split("/")
    # Anchors, drives, empty parts, single dots and, on Windows, backslashes make a difference here.
    if "\0" in path or ".." in parts or PurePath(path).parts != tuple(parts):
        return False
    return not any(part.casefold().rstrip(". ") in TOOL_DIRECTORIES for part in parts)
