"""A scratch working copy of a project, so that files written by the program do not change the original.

It contains the tracked and the unignored files; without git all except hidden folders and environments. Ignored files
(data, checkpoints, environments) are not copied or linked by default, since a program that writes to a link writes to
the original; the user names the needed ones.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

MOST_BYTES = 2_000_000_000
_SKIPPED = frozenset({"__pycache__", "node_modules", "venv", "env", "site-packages"})


class CopyError(Exception):
    """A copy that failed; the text says why, and what to do."""


@dataclass(frozen=True, slots=True)
class Copy:
    """A copy at ``root``: how many files and bytes it has, and the ignored paths that stayed after."""

    root: Path
    files: int
    bytes: int
    left_out: tuple[str, ...] = ()


def make(project: Path, root: Path, links: Sequence[str] = (), most_bytes: int = MOST_BYTES) -> Copy:
    """Copy the project at ``project`` to ``root`` (new or empty); ``links`` are relative paths to be linked instead.

    Symbolic links stay links; a relative one that leads out of the project leads to the same place. Raises CopyError,
    and OSError if reading or writing fails.
    """
    if root.exists() and any(root.iterdir()):
        raise CopyError(f"{root}: not empty")
    inside = project == root or project in root.resolve().parents
    if inside and not _is_ignored(project, root):
        raise CopyError(f"{root}: inside the project; choose a folder outside")
    linked = [Path(link) for link in links]
    missing = next((link for link in linked if not (project / link).exists()), None)
    if missing is not None:
        raise CopyError(f"{missing}: nothing to link in {project}")
    paths = [path for path in _files(project) if not any(link == path or link in path.parents for link in linked)]
    size = sum((project / path).lstat().st_size for path in paths)
    if size > most_bytes:
        raise CopyError(
            f"{project}: {size:,} bytes to copy are more than {most_bytes:,}; name large folders with --link"
        )
    for path in paths:
        _copy(project / path, root / path, project)
    for link in linked:
        (root / link).parent.mkdir(parents=True, exist_ok=True)
        (root / link).symlink_to((project / link).resolve())
    left = tuple(one for one in _ignored(project) if Path(one.rstrip("/")) not in linked)
    return Copy(root, len(paths), size, left)


def _copy(source: Path, target: Path, project: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    if not source.is_symlink():
        shutil.copy2(source, target)
        return
    goes = os.readlink(source)
    outside = not os.path.isabs(goes) and not (source.parent / goes).resolve().is_relative_to(project)
    target.symlink_to(os.path.normpath(source.parent / goes) if outside else goes)


def _is_ignored(project: Path, root: Path) -> bool:
    return _git(project, "check-ignore", "-q", str(root)) is not None


def _files(project: Path) -> list[Path]:
    """The files to copy, relative; a submodule is copied in its current state."""
    listed = _git(project, "ls-files", "-z", "--cached", "--others", "--exclude-standard")
    if listed is None:
        return sorted(_walked(project, project))
    found = [Path(os.fsdecode(name)) for name in listed.split(b"\0") if name]
    return sorted(path for one in found for path in _expanded(project, one))


def _expanded(project: Path, path: Path) -> Iterable[Path]:
    full = project / path
    if full.is_dir() and not full.is_symlink():
        return _walked(full, project)
    return [path] if os.path.lexists(full) else []


def _walked(folder: Path, project: Path) -> Iterator[Path]:
    for place, folders, names in os.walk(folder):
        folders[:] = [
            one
            for one in folders
            if not one.startswith(".") and one not in _SKIPPED and not Path(place, one, "pyvenv.cfg").exists()
        ]
        links = [one for one in folders if Path(place, one).is_symlink()]
        yield from (Path(place, name).relative_to(project) for name in (*names, *links))


def _ignored(project: Path) -> list[str]:
    """The ignored files of git, whole folders as one; without those that every project has."""
    listed = _git(project, "ls-files", "-z", "--others", "--ignored", "--exclude-standard", "--directory") or b""
    names = [os.fsdecode(name) for name in listed.split(b"\0") if name]
    folders = tuple(one for one in names if one.endswith("/"))
    inner = {one for one in names if one.startswith(tuple(folder for folder in folders if folder != one))}
    return [one for one in names if not _is_clutter(one) and one not in inner]


def _is_clutter(path: str) -> bool:
    parts = Path(path).parts
    return any(part in _SKIPPED or part.startswith(".") or part.endswith((".pyc", ".egg-info")) for part in parts)


def _git(project: Path, *arguments: str) -> bytes | None:
    """The output of git in the project; None if there is none or the folder is not a repository."""
    try:
        done = subprocess.run(["git", "-C", str(project), *arguments], capture_output=True, check=False)
    except OSError:
        return None
    return done.stdout if done.returncode == 0 else None
