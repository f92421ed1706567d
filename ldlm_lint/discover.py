"""Finds the files to lint below the given paths; respects ``.gitignore`` and ``exclude``, follows no link out of the
root.

As in git, ignore files do not apply to tracked files.

A path named by the user is always walked: ignore files do not apply to the path itself, and no component of it is
matched against a pattern (a checkout below ``build/`` is a checkout like any other). Only ``exclude`` applies to it.
"""

from __future__ import annotations

import os
import stat
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from ldlm_lint.config import JOURNAL, Config, Configured, marked_root, may_be_project, project_root
from ldlm_lint.config_files import NAMES
from ldlm_lint.configs.detect import MAX_BYTES, config_kind, is_of_tools
from ldlm_lint.ignores import CACHE_TAG, FILE_NAME, Level, Note, ignored, level, levels_above, note_nothing
from ldlm_lint.model import Problem
from ldlm_lint.patterns import lazily
from ldlm_lint.shell.detect import is_shell
from ldlm_lint.source import Kind
from ldlm_lint.tomlfile import ConfigError
from ldlm_lint.tracked import Tracked

TOOL_DIRECTORIES = frozenset(
    (
        *(".git", ".hg", ".svn", ".tox", ".nox", ".venv", "venv", ".eggs", "site-packages", "node_modules"),
        *("__pycache__", ".mypy_cache", ".ruff_cache", ".pytest_cache", ".ipynb_checkpoints", JOURNAL),
    )
)
PYTHON_SUFFIXES = frozenset((".py", ".pyi", ".pyw", ".ipynb"))
_PYTHON_SHEBANG = lazily(rb"#![ \t]*(?:/\S*/)?(?:env[ \t]+(?:-S[ \t]+)?)?(?:/\S*/)?python[\d.]*(?:\s|$)")
_HEAD_BYTES = 256
_NO_INPUT = "neither Python nor a shell script nor a configuration file, not checked"
NOTHING_OVERLAID: Mapping[str, bytes] = MappingProxyType({})


class Discovery(NamedTuple):
    """The files to lint, sorted by path, each once.

    ``problems`` are the named paths that could not be walked or contained nothing to lint, and the errors of
    configurations, whose files are left out; ``excluded`` counts the named paths that ``exclude`` takes out, and those
    that configure another tool or contain data. ``warnings`` are those of the configurations.
    """

    files: tuple[tuple[Path, Kind], ...] = ()
    problems: tuple[Problem, ...] = ()
    excluded: int = 0
    warnings: tuple[Problem, ...] = ()


class _Spread(Enum):
    """Which directories below a named one are looked into."""

    ALL = "all of them"
    OWN = "those that hold no checkout of their own"
    FLAT = "none"


@dataclass(slots=True)
class _Walk:
    """The state of one call of `discover`; links are handled after every real file is known."""

    configured: Configured
    note: Note
    spread: _Spread = _Spread.ALL
    files: dict[str, tuple[Path, Kind]] = field(default_factory=dict)
    links: list[tuple[Path, tuple[Level, ...], Path]] = field(default_factory=list)
    directories: set[str] = field(default_factory=set)
    problems: list[Problem] = field(default_factory=list)
    asked: set[str] = field(default_factory=set)
    left_out: list[str] = field(default_factory=list)
    """What a configuration excludes, the outermost folders only."""
    tracked: Tracked = field(init=False)

    def __post_init__(self) -> None:
        self.tracked = Tracked(self.note)

    def add(self, path: Path, kind: Kind, real: str = "") -> None:
        """Take a file, unless the same file is known under another path; ``real`` is its real path, if known."""
        self.files.setdefault(real or os.path.realpath(path), (path, kind))

    def excludes(self, path: str, is_directory: bool) -> bool:
        """Whether a path (absolute, forward slashes) is excluded, wherever its configuration is."""
        folder = path if is_directory else path.rpartition("/")[0]
        if folder not in self.asked:
            self.asked.add(folder)
            for kind, place in self.configured.looks(folder):
                self.note(kind, place)
        return self.configured.excludes(path, is_directory)

    def config_of(self, directory: str) -> Config:
        """The configuration of the files in a directory; without patterns where that cannot be used."""
        try:
            return self.configured.of_folder(directory)
        except ConfigError:
            return Config()

    def problem(self, path: Path, message: str) -> None:
        """Record why a path could not be read."""
        self.problems.append(Problem(path.as_posix(), 1, message))


def discover(
    paths: Sequence[Path],
    configured: Configured,
    root: Path,
    overlay: Mapping[str, bytes] = NOTHING_OVERLAID,
    note: Note = note_nothing,
) -> Discovery:
    """The files below ``paths`` (absolute) that can be linted, each under its own configuration.

    A link is followed only where it stays inside ``root``, for a path outside of it inside that path's own project. A
    named path with contents in ``overlay`` (by path with forward slashes) need not exist. ``note`` is called for every
    file system look-up: while all of them give the same answers, the result stays valid.
    """
    return _usable(_walked(paths, configured, root, overlay, note), configured)


def _usable(found: Discovery, configured: Configured) -> Discovery:
    """The found files except those whose configuration is unusable; its errors are reported once."""
    folders = [path.as_posix().rpartition("/")[0] for path, _ in found.files]
    errors: dict[str, ConfigError] = {}
    for folder in dict.fromkeys(folders):
        try:
            configured.of_folder(folder)
        except ConfigError as error:
            errors[folder] = error
    warnings = dict.fromkeys(warning for folder in dict.fromkeys(folders) for warning in configured.warnings(folder))
    found = found._replace(warnings=tuple(sorted(warnings)))
    if not errors:
        return found
    broken = {error.path: error for error in errors.values()}
    left_out = Counter(errors[folder].path for folder in folders if folder in errors)
    return found._replace(
        files=tuple(file for file, folder in zip(found.files, folders, strict=True) if folder not in errors),
        problems=(*found.problems, *(one for path in sorted(broken) for one in _told(broken[path], left_out[path]))),
    )


def _told(error: ConfigError, count: int) -> Iterator[Problem]:
    """The errors of a configuration as problems, and how many files are not checked for them."""
    for one in error.errors:
        yield Problem(one.path, one.line, one.what, usage=True)
    files = "1 file is" if count == 1 else f"{count} files are"
    yield Problem(error.path, 0, f"{files} not checked, because this configuration is invalid", usage=True)


def _walked(
    paths: Sequence[Path],
    configured: Configured,
    root: Path,
    overlay: Mapping[str, bytes] = NOTHING_OVERLAID,
    note: Note = note_nothing,
    spread: _Spread = _Spread.ALL,
) -> Discovery:
    """As `discover`, with the files whose configuration cannot be used."""
    excluded = 0
    walk = _Walk(configured, note, spread)
    directories: list[Path] = []
    for path in dict.fromkeys(paths):
        held = overlay.get(path.as_posix())
        if walk.excludes(path.as_posix(), held is None and path.is_dir()) or set_aside(path, held):
            excluded += 1
            continue
        if held is not None:
            _take_overlaid(walk, path, held)
            continue
        before = len(walk.problems)
        _note_named(note, path)
        _take_named(walk, path, _boundary(path, root, note))
        if len(walk.problems) == before and path.is_dir():
            directories.append(path)
    while walk.links:
        pending, walk.links = sorted(walk.links, key=lambda link: link[0].as_posix()), []
        for link, levels, boundary in pending:
            _take_link(walk, link, levels, boundary)
    for path in directories:
        if not _holds_any(walk, path):
            below = path.as_posix().rstrip("/") + "/"
            if any(one.startswith(below) for one in walk.left_out):
                excluded += 1
            else:
                walk.problem(path, "no Python file, shell script or configuration file to check here")
    files = sorted(walk.files.values(), key=lambda item: item[0].as_posix())
    return Discovery(tuple(files), tuple(walk.problems), excluded)


def project_files(root: Path, configured: Configured, note: Note = note_nothing) -> Discovery:
    """The files of the project at a root (absolute), which answers about one of them depend on; ``note`` as for
    `discover`.

    An unmarked directory is a project with everything below it, except other checkouts. Directly in a home directory or
    a file system root, only the siblings of a file belong to its project.
    """
    spread = _Spread.ALL
    if marked_root(root, note) is None:
        spread = _Spread.OWN if may_be_project(root) else _Spread.FLAT
    return _walked([root], configured, root, note=note, spread=spread)


def set_aside(path: Path, held: bytes | None) -> str:
    """Why a named file is skipped (it belongs to another tool or contains data); empty if it is linted.

    pre-commit names every file with a suffix that it knows. The journal is skipped too: its old bytes are for undo
    only. ``held`` are contents that replace those on disk.
    """
    if JOURNAL in path.parts:
        return "it belongs to the journal of `ldlm-lint undo`"
    if held is None and not path.is_file():
        return ""
    if is_of_tools(path):
        return "it is a file of another tool"
    kind = config_kind(path)
    is_data = _is_data(path, kind) if held is None else kind is not None and len(held) > MAX_BYTES
    return f"it is larger than {MAX_BYTES // 1_000_000} MB, so it holds data" if is_data else ""


def _is_data(path: Path, kind: Kind | None) -> bool:
    return kind not in (None, Kind.PYTHON, Kind.SHELL) and path.stat().st_size > MAX_BYTES


def kind_of(path: Path, note: Note = note_nothing) -> Kind | None:
    """The front end for a file, by its suffix or, without a suffix, by its first line; raises OSError.

    A file with any other suffix is not opened: a data directory may contain millions of them.
    """
    kind = kind_of_name(path)
    if kind is not None or path.suffix:
        return kind
    note("head", path.as_posix())
    with path.open("rb") as file:
        return kind_of_head(path, file.read(_HEAD_BYTES))


def kind_of_head(path: Path, head: bytes) -> Kind | None:
    """The front end for a file by how it begins."""
    if _PYTHON_SHEBANG.match(head):
        return Kind.PYTHON
    return Kind.SHELL if is_shell(path, head) else None


def kind_of_name(path: Path | str) -> Kind | None:
    """The front end for a file judged by its name alone."""
    path = path if isinstance(path, Path) else Path(path)
    if path.suffix.lower() in PYTHON_SUFFIXES:
        return Kind.PYTHON
    return Kind.SHELL if is_shell(path, b"") else config_kind(path)


def _note_named(note: Note, path: Path) -> None:
    for kind in ("target", "listing", "head", "size"):
        note(kind, path.as_posix())


def _boundary(path: Path, root: Path, note: Note) -> Path:
    inside = path == root or root in path.parents
    boundary = root if inside else project_root(path, note)
    note("target", boundary.as_posix())
    return Path(os.path.realpath(boundary))


def _take_named(walk: _Walk, path: Path, boundary: Path) -> None:
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        broken = path.is_symlink()
        walk.problem(path, "broken symbolic link" if broken else "no such file or directory")
        return
    except OSError as error:
        # A link that leads to itself ends here too, as ELOOP.
        walk.problem(path, f"cannot be read: {error.strerror or error}")
        return
    if not _inside(path, boundary):
        walk.problem(path, f"symbolic link to a place outside {boundary.as_posix()}, not followed")
    elif stat.S_ISDIR(mode):
        _take_directory(walk, path, levels_above(path, walk.note), boundary)
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
        kind = kind_of_head(path, data[:_HEAD_BYTES])
    if kind is None:
        walk.problem(path, _NO_INPUT)
    else:
        walk.add(path, kind)


def _take_directory(walk: _Walk, top: Path, levels: tuple[Level, ...], boundary: Path) -> None:
    # Without links in between, the real path follows from that of the top.
    named = top.as_posix()
    stack = [(named, os.path.realpath(top), levels)]
    while stack:
        directory, real, above = stack.pop()
        if real in walk.directories:
            continue
        walk.directories.add(real)
        if directory != named and _is_cache(walk, directory):
            continue
        walk.note("listing", directory)
        try:
            entries = sorted(os.scandir(directory), key=lambda entry: entry.name)
        except OSError as error:
            walk.problem(Path(directory), f"cannot be read: {error.strerror or error}")
            continue
        if directory != named and walk.spread is _Spread.OWN and any(entry.name == ".git" for entry in entries):
            continue
        prefix = f"{directory.rstrip('/')}/"
        here = above
        if any(entry.name == FILE_NAME for entry in entries):
            walk.note("file", prefix + FILE_NAME)
            here = (*above, *level(directory))
        for entry in entries:
            if entry.name in NAMES:
                walk.note("file", prefix + entry.name)
        config = walk.config_of(directory)
        for entry in entries:
            name = prefix + entry.name
            is_directory = entry.is_dir(follow_symlinks=False)
            if _is_of_no_project(config, name, is_directory):
                if entry.name not in TOOL_DIRECTORIES:
                    walk.left_out.append(name)
                continue
            if ignored(name, is_directory, here):
                if not entry.is_symlink():
                    _take_tracked(walk, name, os.path.join(real, entry.name))
                continue
            if entry.is_symlink():
                walk.links.append((Path(name), here, boundary))
            elif is_directory and walk.spread is not _Spread.FLAT:
                stack.append((name, os.path.join(real, entry.name), here))
            elif entry.is_file(follow_symlinks=False):
                _take_found_file(walk, Path(name), os.path.join(real, entry.name))


def _take_tracked(walk: _Walk, name: str, real: str) -> None:
    """Take the tracked files at or below an ignored path; the other files, which can be millions, are not read."""
    if walk.spread is _Spread.FLAT:
        return
    for path in walk.tracked.at(name):
        inner = path[len(name) :]
        if not TOOL_DIRECTORIES.isdisjoint(inner.split("/")[:-1]) or walk.excludes(path, False):
            continue
        walk.note("exists", path)
        walk.note("target", path)
        # Where one of the directories was replaced by a link, that is followed as little as any other.
        if os.path.isfile(path) and os.path.realpath(path) == os.path.join(real, *inner.split("/")).rstrip("/"):
            _take_found_file(walk, Path(path), os.path.realpath(path))


def _is_cache(walk: _Walk, directory: str) -> bool:
    """Whether a directory is marked as a cache (https://bford.info/cachedir/), as ours may be."""
    tag = f"{directory}/{CACHE_TAG}"
    walk.note("exists", tag)
    return os.path.exists(tag)


def _take_found_file(walk: _Walk, path: Path, real: str = "") -> None:
    try:
        kind = kind_of(path, walk.note)
        is_data = _is_data(path, kind)
    except OSError:
        # Its name is neither Python nor shell and its contents cannot be read, so it is not an input.
        return
    if is_data:
        walk.note("size", path.as_posix())
    elif kind is not None:
        walk.add(path, kind, real)


def _take_link(walk: _Walk, link: Path, levels: tuple[Level, ...], boundary: Path) -> None:
    walk.note("target", link.as_posix())
    walk.note("exists", link.as_posix())
    target = Path(os.path.realpath(link))
    if not _inside(link, boundary) or any(part in TOOL_DIRECTORIES for part in target.relative_to(boundary).parts):
        return
    if target.is_dir():
        if walk.spread is _Spread.FLAT or (walk.spread is _Spread.OWN and (target / ".git").exists()):
            return
        if not _skipped(walk.config_of(link.parent.as_posix()), link.as_posix(), True, levels):
            _take_directory(walk, link, levels, boundary)
    elif target.is_file():
        _take_found_file(walk, link)


def _inside(path: Path, boundary: Path) -> bool:
    real = Path(os.path.realpath(path))
    return real == boundary or boundary in real.parents


def _skipped(config: Config, path: str, is_directory: bool, levels: Sequence[Level]) -> bool:
    return _is_of_no_project(config, path, is_directory) or ignored(path, is_directory, levels)


def _is_of_no_project(config: Config, path: str, is_directory: bool) -> bool:
    """Whether a path belongs to a tool or is excluded by the configuration."""
    return (is_directory and path.rpartition("/")[2] in TOOL_DIRECTORIES) or config.excludes(path, is_directory)


def _holds_any(walk: _Walk, path: Path) -> bool:
    real = os.path.realpath(path)
    prefix = os.path.join(real, "")
    shown = path.as_posix().rstrip("/") + "/"
    return any(file.startswith(prefix) or found.as_posix().startswith(shown) for file, (found, _) in walk.files.items())
