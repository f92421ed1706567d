"""Asks git which lines changed since a revision; only the command does; the engine gets the result as values.

The repository is not trusted: no program that its configuration or attributes name is run (external diffs, text
conversions, clean filters, file system monitors, hooks, transports), and nothing is written to it.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path, PurePosixPath

from ldlm_lint.changes import WHOLE, Changes, FileChanges, between
from ldlm_lint.discover import PYTHON_SUFFIXES
from ldlm_lint.notebooks import is_notebook
from ldlm_lint.patterns import lazily
from ldlm_lint.shell.detect import SUFFIXES

_SETTINGS = {
    "core.fsmonitor": "false",
    "core.hooksPath": os.devnull,
    "core.quotePath": "false",
    "diff.relative": "false",
    "submodule.recurse": "false",
}
_DIFF = ("diff", "--no-color", "--no-ext-diff", "--no-textconv", "--ignore-submodules=all")
# Attributes of the repository could call a script binary, and settings join hunks or rename the sides.
_HUNKS = ("--unified=0", "--inter-hunk-context=0", "--text", "-M", "--src-prefix=a/", "--dst-prefix=b/")
_FILTER = r"^filter\..*\.(clean|smudge|process|required)$"
# Where the repository is, and how git behaves, is decided here and not by a hook that the linter may run in.
_KEPT = lazily(r"GIT_(CONFIG_|EXEC_PATH$|CEILING_DIRECTORIES$)")
_ENVIRONMENT = {
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_ALLOW_PROTOCOL": "none",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_LITERAL_PATHSPECS": "1",
    "LC_ALL": "C",
}
_MOST_CHARACTERS = 20_000
_HUNK = lazily(rb"@@ -\d+(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")
_QUOTED = lazily(rb"\\([0-7]{3}|.)")
_ESCAPES = {b"a": b"\a", b"b": b"\b", b"t": b"\t", b"n": b"\n", b"v": b"\v", b"f": b"\f", b"r": b"\r"}


class GitError(Exception):
    """Changes that cannot be determined; the text says why in one line."""


def changes_since(directory: Path, revision: str) -> Changes:
    """The lines that changed in the repository around ``directory`` since a revision, the working tree included.

    Raises GitError without git, outside of a repository, and for what is not a revision.
    """
    directory = next(one for one in (directory, *directory.parents) if one.is_dir())
    answer = _git(directory, _environment(), "rev-parse", "--show-toplevel")
    top = os.fsdecode(answer.stdout.removesuffix(b"\n"))
    if answer.returncode or not top:
        raise GitError(f"--since needs a git repository, but there is none at {directory.as_posix()}: {_complaint(answer)}")
    here, environment = Path(top), _without_filters(Path(top))
    tree = _tree(here, environment, revision)
    names = _output(here, environment, *_DIFF, "--name-only", "--no-renames", "-z", tree, "--").split(b"\0")
    files: dict[str, FileChanges] = {}
    for chunk in _chunks([os.fsdecode(name) for name in names if name]):
        hunks = _output(here, environment, *_DIFF, *_HUNKS, tree, "--", *chunk)
        files.update((f"{here.as_posix()}/{name}", changes) for name, changes in parse(hunks).items())
    files.update(_notebooks(here, environment, tree, files))
    tracked = _output(here, environment, "ls-files", "-z").split(b"\0")
    return Changes(files, frozenset(f"{here.as_posix()}/{os.fsdecode(name)}" for name in tracked if name))


def _notebooks(here: Path, environment: dict[str, str], tree: str, paths: Iterable[str]) -> dict[str, FileChanges]:
    """The changes of those files that are notebooks, in the lines of their code: what git compares is its JSON.

    A notebook that was renamed, or whose old version cannot be read, counts as entirely new.
    """
    found = {}
    for path in filter(is_notebook, paths):
        from ldlm_lint.notebooks.text import NotebookError, python_text

        try:
            now = python_text(Path(path).read_bytes())
            name = Path(path).relative_to(here).as_posix()
            before = python_text(_output(here, environment, "cat-file", "blob", f"{tree}:{name}"))
        except (OSError, GitError, NotebookError):
            found[path] = WHOLE
        else:
            found[path] = between(before, now)
    return found


def _tree(here: Path, environment: dict[str, str], revision: str) -> str:
    """The name of a revision's tree, which git cannot mistake for an option whatever the user wrote."""
    if not revision or revision.startswith("-") or not revision.isprintable():
        raise GitError(f'--since: "{revision}" is not a git revision')
    answer = _git(here, environment, "rev-parse", "--verify", "--quiet", f"{revision}^{{tree}}")
    tree = answer.stdout.decode("ascii", "replace").strip()
    if answer.returncode or not re.fullmatch(r"[0-9a-f]{40,64}", tree):
        shallow = _git(here, environment, "rev-parse", "--is-shallow-repository").stdout.strip() == b"true"
        hint = "; this is a shallow clone without older commits" if shallow else ""
        raise GitError(f'--since: "{revision}" is not a revision of {here.as_posix()}{hint}')
    return tree


def _environment() -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GIT_") or _KEPT.match(name)}
    return {**kept, **_ENVIRONMENT}


def _without_filters(here: Path) -> dict[str, str]:
    """The environment in which no filter of the configuration is run; ``-c`` could not name one with a ``=`` in it."""
    environment = _environment()
    answer = _git(here, environment, "config", "-z", "--name-only", "--get-regexp", _FILTER)
    keys = (os.fsdecode(key) for key in answer.stdout.split(b"\0") if key)
    filters = sorted({key.rpartition(".")[0] for key in keys})
    settings = [(f"{one}.{key}", value) for one in filters for key, value in (("clean", ""), ("process", ""))]
    settings += [(f"{one}.required", "false") for one in filters]
    count = environment.get("GIT_CONFIG_COUNT", "")
    first = int(count) if count.isdecimal() else 0
    for number, (key, value) in enumerate(settings, start=first):
        environment |= {f"GIT_CONFIG_KEY_{number}": key, f"GIT_CONFIG_VALUE_{number}": value}
    return {**environment, "GIT_CONFIG_COUNT": str(first + len(settings))}


def _output(here: Path, environment: dict[str, str], *arguments: str) -> bytes:
    answer = _git(here, environment, *arguments)
    if answer.returncode:
        raise GitError(f"--since: git {arguments[0]} failed: {_complaint(answer)}")
    return answer.stdout


def _git(here: Path, environment: dict[str, str], *arguments: str) -> subprocess.CompletedProcess[bytes]:
    settings = [part for key, value in _SETTINGS.items() for part in ("-c", f"{key}={value}")]
    try:
        return subprocess.run(
            ["git", *settings, *arguments],
            cwd=here,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
        )
    except OSError as error:
        raise GitError(f"--since needs git, but git cannot be run: {error.strerror or error}") from error


def _complaint(answer: subprocess.CompletedProcess[bytes]) -> str:
    lines = answer.stderr.decode("utf-8", "replace").splitlines()
    return lines[0].removeprefix("fatal: ") if lines else f"git exited with {answer.returncode}"


def _chunks(names: Sequence[str]) -> Iterator[list[str]]:
    """Those of the names that may be Python or shell, in portions that fit into a command line."""
    chunk: list[str] = []
    size = 0
    for name in names:
        if PurePosixPath(name).suffix.lower() not in {"", *PYTHON_SUFFIXES, *SUFFIXES}:
            continue
        if chunk and size + len(name) > _MOST_CHARACTERS:
            yield chunk
            chunk, size = [], 0
        chunk.append(name)
        size += len(name)
    if chunk:
        yield chunk


def parse(diff: bytes) -> dict[str, FileChanges]:
    """The changes of each file of a patch without context lines, by its new name relative to the repository."""
    found: dict[str, FileChanges] = {}
    name = ""
    content = 0
    for line in diff.split(b"\n"):
        if content:
            # A removed line may well read "++ b/other.py"; the counts tell how many lines are content.
            content -= line[:1] in (b"+", b"-")
        elif line.startswith(b"+++ "):
            name = _name(line[4:])
        elif name and (match := _HUNK.match(line)):
            removed, first, added = int(match[1] or 1), int(match[2]), int(match[3] or 1)
            content = removed + added
            before = found.get(name, FileChanges())
            if added:
                found[name] = FileChanges((*before.added, (first, first + added - 1)), before.removed)
            else:
                found[name] = FileChanges(before.added, (*before.removed, first))
    return found


def _name(written: bytes) -> str:
    """The name after ``+++``; git ends a name with a blank with a tab, and quotes odd ones as C does."""
    written = written.removesuffix(b"\t")
    if written.startswith(b'"'):
        written = _QUOTED.sub(_unescaped, written[1:-1])
    # A deleted file has no new name and no lines.
    return "" if written == b"/dev/null" else os.fsdecode(written.removeprefix(b"b/"))


def _unescaped(match: re.Match[bytes]) -> bytes:
    letters = match[1]
    return bytes((int(letters, 8),)) if len(letters) == 3 else _ESCAPES.get(letters, letters)
