"""Determines the torch versions of a project from its own requirements and lock files.

Every file that bounds torch is a choice of versions, and the project can run on any of them: requirements for two
machines may differ. A file that names torch without bounds restricts nothing. A lock file states what most runs have,
so findings depend on it alone; users who install from another file do not use it, so a fix considers all files. Nothing
of the project is run: ``setup.py`` is searched as text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from ldlm_lint.patterns import lazily
from ldlm_lint.untrusted_toml import loads

if TYPE_CHECKING:
    from packaging.specifiers import SpecifierSet

OLDEST_TORCH, NEWEST_TORCH = "target-torch", "newest-torch"
"""The names under which rules are told the two ends of the range."""

TorchVersion = tuple[int, int]
TORCH_VERSIONS: tuple[TorchVersion, ...] = tuple((2, minor) for minor in range(14))
"""The versions (major, minor) that the rules know; as of torch 2.13."""

_FIRST_VERSIONS: tuple[TorchVersion, ...] = tuple((1, minor) for minor in range(14))
_BEFORE_KNOWN = "1.13.1"
_MICRO_VERSIONS = 4
_LARGEST = 8_000_000
# A requirement is quoted in the reason of a fix.
_SHOWN = 60
# No real version has such a part, and Python refuses to convert it.
_LONG_NUMBER = lazily(r"\d{300,}")
_LOCKS = ("uv.lock", "poetry.lock", "pdm.lock", "pylock.toml")
_CONDA_FILES = ("environment.yml", "environment.yaml", "conda.yml", "conda.yaml")
_NAMED = (*_LOCKS, "Pipfile.lock", "Pipfile", "pyproject.toml", "setup.py", "setup.cfg", *_CONDA_FILES)
_REQUIREMENTS = ("requirements*.txt", "requirements*.in", "constraints*.txt")
_IN_FOLDER = ("requirements/*.txt", "requirements/*.in")
_LINE = lazily(r"^[ \t]*(torch(?![\w.-])[^#\n]*)", re.M | re.I)
# ``torch-2.1.0%2Bcu118-cp310-cp310-linux_x86_64.whl``
_WHEEL = lazily(r"/torch-(\d{1,9}(?:\.\d{1,9}){1,3})(?![\d.])[^/]*$")
# A requirement without bounds allows every version.
_BOUNDED = lazily(r"\s*torch(?![\w.-]).*[=<>~!@]", re.I | re.S)
_CONDA = lazily(r"^\s*-\s*[\"']?(?:[\w./-]+::)?((?:pytorch|torch)[ \t]*([=<>!~][=~]?[ \t]*[^#\s\"']*))", re.M)
_LOWER_BOUNDS = frozenset({">=", ">", "==", "~="})
# ``==2.4.1+cu121`` names a build of 2.4.1.
_BUILD = lazily(r"(?<=\d)\+[\w.]+")
_QUOTED = lazily(r"[\"'](torch(?![\w.-])[^\"'\n]*)[\"']")


class TorchRange(NamedTuple):
    """The oldest and the newest torch that a project runs on; None if it does not bound them."""

    oldest: TorchVersion | None = None
    newest: TorchVersion | None = None


ANY_TORCH = TorchRange()


class Floor(NamedTuple):
    """A torch version that a file (absolute path) allows, and the requirement that says so, as written there.

    It is the oldest one that the file allows, or, where the file has no lower bound (``open``), the newest.
    """

    version: TorchVersion
    path: str
    requirement: str
    open: bool = False


class _Requirement(NamedTuple):
    path: Path
    text: str
    bounds: SpecifierSet


def torch_range(root: Path) -> TorchRange:
    """The versions of torch that the files of a project's root directory allow."""
    locked = {version for version, _ in _all_locked(root, root) if version in TORCH_VERSIONS}
    if locked:
        return TorchRange(min(locked), max(locked))
    ranges = [_range(one.bounds) for one in _bounds(root, root) if len(one.bounds)]
    known = [one for one in ranges if one is not None]
    if not known:
        return TorchRange()
    oldest, newest = [one.oldest for one in known], [one.newest for one in known]
    return TorchRange(
        None if None in oldest else min(one for one in oldest if one),
        None if None in newest else max(one for one in newest if one),
    )


def floors(folder: Path, root: Path, environments: Iterable[str] = ()) -> Iterator[Floor]:
    """A `Floor` for each requirement of torch in the files of a folder; ``root`` is that of the project.

    ``environments`` are the absolute paths of conda environment files in it, next to those with a usual name. Versions
    before those that the rules know count too: a torch 1 that a file allows lacks every newer interface.
    """
    for (major, minor), path in _all_locked(folder, root):
        yield Floor((major, minor), path.as_posix(), f"torch {major}.{minor}")
    for path, text, bounds in _bounds(folder, root, environments):
        shown = " ".join(text.split())[:_SHOWN]
        oldest = _oldest(bounds)
        version = oldest or _newest(bounds)
        if version is not None:
            yield Floor(version, path.as_posix(), shown, open=oldest is None)


def bounding_files(folder: Path, names: Collection[str]) -> list[str]:
    """Those files of a folder, by the names in it, from which `floors` may learn something."""
    found = [name for name in names if name in _NAMED or any(fnmatchcase(name, pattern) for pattern in _REQUIREMENTS)]
    patterns = _IN_FOLDER if "requirements" in names else ()
    return [path.as_posix() for path in (*(folder / name for name in found), *(path for one in patterns for path in folder.glob(one)))]


def looked_at(root: Path) -> Iterator[tuple[str, str]]:
    """The file system look-ups of `torch_range`, as kinds of `ldlm_lint.cache.index.LOOKS` and paths."""
    for folder in (root, root / "requirements"):
        yield "listing", folder.as_posix()
    for path in (*(root / name for name in _NAMED), *_listed(root)):
        yield "file", path.as_posix()
        if path.is_symlink():
            yield "target", path.as_posix()


def _listed(root: Path) -> list[Path]:
    return sorted(path for pattern in (*_REQUIREMENTS, *_IN_FOLDER) for path in root.glob(pattern))


def _range(bounds: SpecifierSet) -> TorchRange | None:
    """The known versions that a specifier allows; None if it allows none of them."""
    allowed = [one for one in TORCH_VERSIONS if _allows(bounds, one)]
    if not allowed:
        return None
    return TorchRange(
        None if bounds.contains(_BEFORE_KNOWN) else allowed[0], None if TORCH_VERSIONS[-1] in allowed else allowed[-1]
    )


def _oldest(bounds: SpecifierSet) -> TorchVersion | None:
    """The oldest version that a specifier allows by its lower bounds; None if it has none."""
    from packaging.version import Version

    lower = [Version(one.version.removesuffix(".*")).release for one in bounds if one.operator in _LOWER_BOUNDS]
    return max(((*release, 0)[0], (*release, 0)[1]) for release in lower) if lower else None


def _newest(bounds: SpecifierSet) -> TorchVersion | None:
    """The newest version that a specifier allows; None if nothing bounds it from above."""
    allowed = [one for one in (*_FIRST_VERSIONS, *TORCH_VERSIONS) if _allows(bounds, one)]
    return allowed[-1] if allowed and allowed[-1] != TORCH_VERSIONS[-1] else None


def _allows(bounds: SpecifierSet, version: TorchVersion) -> bool:
    return any(bounds.contains(f"{version[0]}.{version[1]}.{micro}") for micro in range(_MICRO_VERSIONS))


def _bounds(folder: Path, root: Path, environments: Iterable[str] = ()) -> Iterator[_Requirement]:
    """What each requirement of torch in the files of a folder allows; mutually exclusive ones are separate."""
    for path, requirement in _requirements(folder, root):
        if _BOUNDED.match(requirement):
            yield from (_Requirement(path, requirement, bounds) for bounds in _specifier(requirement))
    for path in (*(folder / name for name in _CONDA_FILES), *map(Path, environments)):
        for requirement, found in _CONDA.findall(_text(path, root)):
            yield from (_Requirement(path, requirement, bounds) for bounds in _conda_specifier(found))


def _specifier(requirement: str) -> Iterator[SpecifierSet]:
    # Imported where a version is to be read: most runs over a project without torch need not wait for it.
    from packaging.requirements import InvalidRequirement, Requirement
    from packaging.specifiers import SpecifierSet

    try:
        parsed = Requirement(_BUILD.sub("", requirement).strip().rstrip("\\").strip())
    except InvalidRequirement:
        return
    if parsed.name.lower() != "torch":
        return
    wheel = _WHEEL.search(parsed.url) if parsed.url else None
    if wheel is not None:
        yield SpecifierSet(f"=={wheel[1]}")
    elif parsed.url is None:
        yield parsed.specifier


def _requirements(folder: Path, root: Path) -> Iterator[tuple[Path, str]]:
    """The requirements of torch in the files of a folder, with the files."""
    for name, read in _READERS:
        path = folder / name
        yield from ((path, one) for one in read(_text(path, root)))
    for path in _listed(folder):
        yield from ((path, one) for one in _of_lines(_text(path, root)))


def _of_lines(text: str) -> Iterator[str]:
    return (line.partition(";")[0].partition(" --")[0] for line in _LINE.findall(text))


def _of_setup(text: str) -> Iterator[str]:
    """A list of strings, or one string with a requirement on each line."""
    yield from _QUOTED.findall(text)
    yield from _of_lines(text)


def _conda_specifier(text: str) -> Iterator[SpecifierSet]:
    """``=2.1`` is conda's ``==2.1.*``, and a build string may follow another ``=``."""
    from packaging.specifiers import InvalidSpecifier, SpecifierSet

    text = re.sub(r"^=(?!=)([\d.]+)(?:=.*)?$", lambda match: f"=={match[1]}.*", text)
    try:
        yield SpecifierSet(re.sub(r"\.\*\.\*$", ".*", text))
    except InvalidSpecifier:
        return


def _of_pyproject(text: str) -> Iterator[str]:
    project = _toml(text)
    table = project.get("project")
    if isinstance(table, Mapping):
        yield from _strings(table.get("dependencies"))
        yield from _strings(table.get("optional-dependencies"))
    yield from _strings(project.get("dependency-groups"))
    tool = project.get("tool")
    poetry = tool.get("poetry") if isinstance(tool, Mapping) else None
    if isinstance(poetry, Mapping):
        groups = poetry.get("group")
        for one in (poetry, *(groups.values() if isinstance(groups, Mapping) else ())):
            yield from _of_tables(one, ("dependencies", "dev-dependencies"))


def _of_pipfile(text: str) -> Iterator[str]:
    return _of_tables(_toml(text), ("packages", "dev-packages"))


def _of_tables(holder: object, names: Iterable[str]) -> Iterator[str]:
    """The torch of tables with a version or more for each package, as Poetry and Pipenv write them."""
    tables = [holder.get(name) for name in names] if isinstance(holder, Mapping) else []
    for wanted in (table.get("torch") for table in tables if isinstance(table, Mapping)):
        for one in wanted if isinstance(wanted, list) else (wanted,):
            version = one.get("version") if isinstance(one, Mapping) else one
            if isinstance(version, str):
                yield _poetry_requirement(version.strip())


def _poetry_requirement(version: str) -> str:
    """``^2.1`` is ``>=2.1,<3`` in Poetry, ``~2.1`` is ``==2.1.*``."""
    if version.startswith("^"):
        major = re.match(r"\d{1,9}(?![^.])", version[1:], re.ASCII)
        return f"torch>={version[1:]},<{int(major[0]) + 1}" if major else "torch"
    if version.startswith("~") and not version.startswith("~="):
        return f"torch~={version[1:]}" if version.count(".") > 1 else f"torch=={version[1:].strip()}.*"
    return f"torch=={version}" if version[:1].isdigit() else f"torch{version}"


def _strings(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for one in value:
            yield from _strings(one)
    elif isinstance(value, Mapping):
        for one in value.values():
            yield from _strings(one)


_READERS: tuple[tuple[str, Callable[[str], Iterable[str]]], ...] = (
    ("pyproject.toml", _of_pyproject),
    ("Pipfile", _of_pipfile),
    ("setup.py", _of_setup),
    ("setup.cfg", _of_lines),
)


def _all_locked(folder: Path, root: Path) -> Iterator[tuple[TorchVersion, Path]]:
    """Every version of torch that the lock files of a folder hold, with the file."""
    for name in (*_LOCKS, "Pipfile.lock"):
        path = folder / name
        read = _pipfile_lock if name == "Pipfile.lock" else _locked
        yield from ((version, path) for version in read(_text(path, root)))


def _locked(text: str) -> Iterator[TorchVersion]:
    packages = _toml(text)
    for package in _packages(packages.get("package") or packages.get("packages")):
        if package.get("name") == "torch":
            yield from _version(package.get("version"))


def _packages(value: object) -> list[Mapping[str, object]]:
    return [one for one in value if isinstance(one, Mapping)] if isinstance(value, list) else []


def _pipfile_lock(text: str) -> Iterator[TorchVersion]:
    try:
        content = json.loads(text or "{}")
    except (ValueError, RecursionError):
        return
    default = content.get("default") if isinstance(content, Mapping) else None
    torch = default.get("torch") if isinstance(default, Mapping) else None
    if isinstance(torch, Mapping):
        yield from _version(str(torch.get("version", "")).lstrip("="))


def _version(value: object) -> Iterator[TorchVersion]:
    from packaging.version import Version

    try:
        release = Version(str(value)).release
    except ValueError:
        return
    if len(release) >= 2:
        yield release[0], release[1]


def _toml(text: str) -> Mapping[str, object]:
    """A TOML document; empty if it is invalid, which the configuration reports if the file is ours."""
    try:
        return loads(text) if text else {}
    except ValueError:
        return {}


def _text(path: Path, root: Path) -> str:
    """The text of a file below the root; empty if there is none, or a link leads elsewhere."""
    try:
        if not path.is_file() or path.stat().st_size > _LARGEST or not path.resolve().is_relative_to(root.resolve()):
            return ""
        return _LONG_NUMBER.sub("", path.read_text(encoding="utf-8", errors="replace"))
    except OSError:
        return ""
