"""Which files of the given paths are linted: ``.gitignore`` and ``exclude`` honoured, no link followed out of the root.

A path that the user names is taken at its word: ignore files do not apply to it, and of its own components none is
matched against anything (a checkout below ``build/`` is a checkout like any other). Only ``exclude`` holds for it.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

from pathspec import GitIgnoreSpec

from ldlm_lint.config import JOURNAL, Config, project_root, relative_to
from ldlm_lint.configs.detect import MAX_BYTES, config_kind, is_of_tools
from ldlm_lint.model import Problem
from ldlm_lint.shell.detect import is_shell
from ldlm_lint.source import Kind

TOOL_DIRECTORIES = frozenset(
    (
        *(".git", ".hg", ".svn", ".tox", ".nox", ".venv", "venv", ".eggs", "site-packages", "node_modules"),
        *("__pycache__", ".mypy_cache", ".ruff_cache", ".pytest_cache", JOURNAL),
    )
)
PYTHON_SUFFIXES = frozenset((".py", ".pyi", ".pyw"))
_PYTHON_SHEBANG = re.compile(rb"#![ \t]*(?:/\S*/)?(?:env[ \t]+(?:-S[ \t]+)?)?(?:/\S*/)?python[\d.]*(?:\s|$)")
_HEAD_BYTES = 256
_NO_INPUT = "neither Python nor a shell script nor a configuration file, not checked"
NOTHING_OVERLAID: Mapping[str, bytes] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Discovery:
    """The files to lint, sorted by path, each once.

    ``problems`` are the named paths that could not be walked or held nothing to lint; ``excluded`` counts the named
    paths that ``exclude`` takes out, and those that configure another tool or hold data.
    """

    files: tuple[tuple[Path, Kind], ...] = ()
    problems: tuple[Problem, ...] = ()
    excluded: int = 0


@dataclass(frozen=True, slots=True)
class _Level:
    """The ignore patterns of one directory."""

    directory: str
    spec: GitIgnoreSpec


@dataclass(slots=True)
class _Walk:
    """What one call of `discover` has gathered so far; links wait until every real file is known."""

    exclude: Callable[[str, bool], bool]
    files: dict[str, tuple[Path, Kind]] = field(default_factory=dict)
    links: list[tuple[Path, tuple[_Level, ...], Path]] = field(default_factory=list)
    directories: set[str] = field(default_factory=set)
    problems: list[Problem] = field(default_factory=list)

    def add(self, path: Path, kind: Kind) -> None:
        """Take a file, unless the same file is known under another path."""
        self.files.setdefault(os.path.realpath(path), (path, kind))

    def problem(self, path: Path, message: str) -> None:
        """Note what kept a path from being looked at."""
        self.problems.append(Problem(path.as_posix(), 1, message))


def discover(
    paths: Sequence[Path], config: Config, root: Path, overlay: Mapping[str, bytes] = NOTHING_OVERLAID
) -> Discovery:
    """The files below ``paths`` (absolute) that can be linted.

    A link is followed only where it stays inside ``root``, for a path outside of it inside that path's own project.
    A named path with contents in ``overlay`` (by path with forward slashes) need not exist.
    """
    excluded = 0
    walk = _Walk(_excluder(config))
    directories: list[Path] = []
    for path in dict.fromkeys(paths):
        held = overlay.get(path.as_posix())
        if walk.exclude(path.as_posix(), held is None and path.is_dir()) or _says_nothing(path, held):
            excluded += 1
            continue
        if held is not None:
            _take_overlaid(walk, path, held)
            continue
        before = len(walk.problems)
        _take_named(walk, path, _boundary(path, root))
        if len(walk.problems) == before and path.is_dir():
            directories.append(path)
    while walk.links:
        pending, walk.links = sorted(walk.links, key=lambda link: link[0].as_posix()), []
        for link, levels, boundary in pending:
            _take_link(walk, link, levels, boundary)
    for path in directories:
        if not _holds_any(walk, path):
            walk.problem(path, "no Python file, shell script or configuration file to check here")
    files = sorted(walk.files.values(), key=lambda item: item[0].as_posix())
    return Discovery(tuple(files), tuple(walk.problems), excluded)


def _says_nothing(path: Path, held: bytes | None) -> bool:
    """Whether a named file is another tool's or holds data: pre-commit names every file with a suffix that it knows.

    Nor is anything said of the journal, whose old bytes are of no use to anybody but undo. ``held`` are contents that
    take the place of those on disk.
    """
    if JOURNAL in path.parts:
        return True
    if held is not None:
        kind = config_kind(path)
        return is_of_tools(path) or (kind is not None and len(held) > MAX_BYTES)
    return path.is_file() and (is_of_tools(path) or _is_data(path, config_kind(path)))


def _is_data(path: Path, kind: Kind | None) -> bool:
    return kind not in (None, Kind.PYTHON, Kind.SHELL) and path.stat().st_size > MAX_BYTES


def kind_of(path: Path) -> Kind | None:
    """The front end for a file, by its suffix or, where it has none, by its first line; raises OSError.

    A file with any other suffix is not opened: a data directory may hold millions of them.
    """
    kind = kind_of_name(path)
    if kind is not None or path.suffix:
        return kind
    with path.open("rb") as file:
        return _kind_of_head(path, file.read(_HEAD_BYTES))


def _kind_of_head(path: Path, head: bytes) -> Kind | None:
    if _PYTHON_SHEBANG.match(head):
        return Kind.PYTHON
    return Kind.SHELL if is_shell(path, head) else None


def kind_of_name(path: Path | str) -> Kind | None:
    """The front end for a file as far as its name tells."""
    path = Path(path)
    if path.suffix.lower() in PYTHON_SUFFIXES:
        return Kind.PYTHON
    return Kind.SHELL if is_shell(path, b"") else config_kind(path)


def _boundary(path: Path, root: Path) -> Path:
    inside = path == root or root in path.parents
    return Path(os.path.realpath(root if inside else project_root(path)))


def _excluder(config: Config) -> Callable[[str, bool], bool]:
    """Whether ``exclude`` takes out a path (absolute, forward slashes), given whether it is a directory."""
    if not config.exclude:
        return lambda path, is_directory: False
    spec = GitIgnoreSpec.from_lines(config.exclude)

    def excluded(path: str, is_directory: bool) -> bool:
        relative = relative_to(path, config.root)
        return relative is not None and spec.match_file(relative + "/" if is_directory else relative)

    return excluded


def _take_named(walk: _Walk, path: Path, boundary: Path) -> None:
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        broken = path.is_symlink()
        walk.problem(path, "link that leads nowhere" if broken else "no such file or directory")
        return
    except OSError as error:
        # A link that leads to itself ends here too, as ELOOP.
        walk.problem(path, f"cannot be read: {error.strerror or error}")
        return
    if not _inside(path, boundary):
        walk.problem(path, f"link that leads out of {boundary.as_posix()}, not followed")
    elif stat.S_ISDIR(mode):
        _take_directory(walk, path, _levels_above(path), boundary)
    elif stat.S_ISREG(mode):
        _take_named_file(walk, path)
    else:
        walk.problem(path, "neither a file nor a directory")


def _take_named_file(walk: _Walk, path: Path) -> None:
    try:
        kind = kind_of(path)
    except OSError as error:
        walk.problem(path, f"cannot be read: {error.strerror or error}")
        return
    if kind is None:
        walk.problem(path, _NO_INPUT)
    else:
        walk.add(path, kind)


def _take_overlaid(walk: _Walk, path: Path, data: bytes) -> None:
    kind = kind_of_name(path)
    if kind is None and not path.suffix:
        kind = _kind_of_head(path, data[:_HEAD_BYTES])
    if kind is None:
        walk.problem(path, _NO_INPUT)
    else:
        walk.add(path, kind)


def _take_directory(walk: _Walk, top: Path, levels: tuple[_Level, ...], boundary: Path) -> None:
    stack = [(top, levels)]
    while stack:
        directory, above = stack.pop()
        real = os.path.realpath(directory)
        if real in walk.directories:
            continue
        walk.directories.add(real)
        try:
            entries = sorted(os.scandir(directory), key=lambda entry: entry.name)
        except OSError as error:
            walk.problem(directory, f"cannot be read: {error.strerror or error}")
            continue
        here = (*above, *_level(directory, ".gitignore"))
        for entry in entries:
            path = Path(entry.path)
            is_directory = entry.is_dir(follow_symlinks=False)
            if _skipped(walk, path, is_directory, here):
                continue
            if entry.is_symlink():
                walk.links.append((path, here, boundary))
            elif is_directory:
                stack.append((path, here))
            elif entry.is_file(follow_symlinks=False):
                _take_found_file(walk, path)


def _take_found_file(walk: _Walk, path: Path) -> None:
    try:
        kind = kind_of(path)
        is_data = _is_data(path, kind)
    except OSError:
        # By its name it is neither Python nor shell, and what it holds nobody can tell: not an input.
        return
    if kind is not None and not is_data:
        walk.add(path, kind)


def _take_link(walk: _Walk, link: Path, levels: tuple[_Level, ...], boundary: Path) -> None:
    target = Path(os.path.realpath(link))
    if not _inside(link, boundary) or any(part in TOOL_DIRECTORIES for part in target.relative_to(boundary).parts):
        return
    if target.is_dir():
        if not _skipped(walk, link, True, levels):
            _take_directory(walk, link, levels, boundary)
    elif target.is_file():
        _take_found_file(walk, link)


def _inside(path: Path, boundary: Path) -> bool:
    real = Path(os.path.realpath(path))
    return real == boundary or boundary in real.parents


def _skipped(walk: _Walk, path: Path, is_directory: bool, levels: Sequence[_Level]) -> bool:
    if is_directory and path.name in TOOL_DIRECTORIES:
        return True
    name = path.as_posix()
    return _ignored(name, is_directory, levels) or walk.exclude(name, is_directory)


def _ignored(path: str, is_directory: bool, levels: Sequence[_Level]) -> bool:
    """Whether git ignores a path, the deepest ignore file that says something about it deciding."""
    for level in reversed(levels):
        relative = relative_to(path, level.directory)
        if relative is not None:
            verdict = level.spec.check_file(relative + "/" if is_directory else relative).include
            if verdict is not None:
                return verdict
    return False


def _level(directory: Path, name: str, *, below: Path | None = None) -> Iterator[_Level]:
    """The patterns of an ignore file, without those that match ``below``, a directory that the user named."""
    try:
        text = (directory / name).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return
    patterns = []
    for line in text.splitlines():
        try:
            patterns += GitIgnoreSpec.from_lines([line]).patterns
        except ValueError:
            # git itself passes over a line that is not a pattern.
            continue
    relative = relative_to(below.as_posix(), directory.as_posix()) if below else None
    if relative is not None:
        patterns = [one for one in patterns if not one.include or one.match_file(relative + "/") is None]
    yield _Level(directory.as_posix(), GitIgnoreSpec(patterns))


def _levels_above(path: Path) -> tuple[_Level, ...]:
    """The ignore files that git reads for what lies in a directory, from the top of its repository downwards."""
    chain = (path, *path.parents)
    repository = next((one for one in chain if (one / ".git").exists()), project_root(path))
    levels = list(_level(repository, ".git/info/exclude", below=path))
    for directory in reversed(chain[1 : chain.index(repository) + 1]):
        levels += _level(directory, ".gitignore", below=path)
    return tuple(levels)


def _holds_any(walk: _Walk, path: Path) -> bool:
    real = os.path.realpath(path)
    prefix = os.path.join(real, "")
    shown = path.as_posix().rstrip("/") + "/"
    return any(file.startswith(prefix) or found.as_posix().startswith(shown) for file, (found, _) in walk.files.items())
