"""The texts that a release changes: version numbers, CHANGELOG, release notes, checksums, the recipe for conda-forge."""

from __future__ import annotations

import datetime
import hashlib
import re
from collections.abc import Iterable, Mapping
from pathlib import Path

VERSION = re.compile(r"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)")
UNRELEASED = "## Unreleased"
# Where the version is written, and how often. Files that do not exist are skipped.
PLACES: Mapping[str, tuple[str, int]] = {
    "ldlm_lint/__init__.py": (r'^(__version__ = ")[^"]+(")', 1),
    "packaging/conda/recipe.yaml": (r'^(  version: ")[^"]+(")', 1),
    "editors/vscode/package.json": (r'^(  "version": ")[^"]+(")', 1),
    # The revision that the job installs, and that of the file itself.
    "templates/ldlm-lint.gitlab-ci.yml": (r'((?:LDLM_LINT_VERSION: "|ldlm-lint/ldlm-lint/))\d[^"/\n]*("|/templates)', 2),
    "docs/ci.md": (r"(ldlm-lint/ldlm-lint/)\d[^/\n]*(/templates)", 1),
    # The extension itself, at the top and as the package "".
    "editors/vscode/package-lock.json": (r'\A(\{\s+"name": "[^"]+",\s+"version": ")[^"]+(")', 1),
}
_LOCKED = re.compile(r'("": \{\s+"name": "[^"]+",\s+"version": ")[^"]+(")')
_SOURCE = re.compile(r"(?m)^source:\n  path: \.\./\.\.$")
_PYPI = "https://pypi.org/packages/source/l/ldlm-lint/ldlm_lint-${{ version }}.tar.gz"
_SECTION = re.compile(r"(?m)^## ")


class ReleaseError(Exception):
    """A release that is impossible; the text says why in one line."""


def numbers(version: str) -> tuple[int, int, int]:
    """The three numbers of a version; raises ReleaseError for anything other than ``MAJOR.MINOR.PATCH``."""
    match = VERSION.fullmatch(version)
    if match is None:
        raise ReleaseError(f"{version!r} is no version: write MAJOR.MINOR.PATCH, such as 0.2.0")
    return int(match[1]), int(match[2]), int(match[3])


def latest(tags: Iterable[str]) -> str | None:
    """The highest version among the tags of a repository; None if nothing was released."""
    return max(filter(VERSION.fullmatch, tags), key=numbers, default=None)


def kind(previous: str | None, current: str, version: str) -> str:
    """Whether a version is ``first``, ``patch``, ``minor`` or ``major``.

    Raises ReleaseError for a version that does not follow the previous one, or that the code is already past.
    """
    wanted = numbers(version)
    if previous is None:
        if wanted < numbers(current):
            raise ReleaseError(f"{version} is lower than {current}, the version in ldlm_lint/__init__.py")
        return "first"
    major, minor, patch = numbers(previous)
    following = {(major, minor, patch + 1): "patch", (major, minor + 1, 0): "minor", (major + 1, 0, 0): "major"}
    if wanted not in following:
        choices = ", ".join(".".join(map(str, one)) for one in following)
        raise ReleaseError(f"{version} does not follow {previous}: choose one of {choices}")
    return following[wanted]


def with_version(name: str, text: str, version: str) -> str:
    """A file of `PLACES` with the new version; raises ReleaseError if the version is not found."""
    pattern, count = PLACES[name]
    changed, found = re.subn(pattern, rf"\g<1>{version}\g<2>", text, flags=re.M)
    if found != count:
        raise ReleaseError(f"{name}: expected {count} version to change, found {found}")
    return _LOCKED.sub(rf"\g<1>{version}\g<2>", changed, count=1)


def with_release(changelog: str, version: str, day: datetime.date) -> str:
    """CHANGELOG with what was unreleased under the version and its day.

    Raises ReleaseError without a section of unreleased changes, for an empty one, and for an existing version.
    """
    if re.search(rf"(?m)^## {re.escape(version)}\b", changelog):
        raise ReleaseError(f"CHANGELOG.md already has a section {version}")
    _, found, rest = changelog.partition(f"{UNRELEASED}\n")
    if not found:
        raise ReleaseError(f'CHANGELOG.md has no section "{UNRELEASED}"')
    if not re.search(r"(?m)^- ", _SECTION.split(rest, maxsplit=1)[0]):
        raise ReleaseError(f'CHANGELOG.md: nothing is listed under "{UNRELEASED}"')
    return changelog.replace(f"{UNRELEASED}\n", f"{UNRELEASED}\n\n## {version} ({day.isoformat()})\n", 1)


def notes(changelog: str, version: str) -> str:
    """The changes of a version, as text of the release's page; raises ReleaseError for a version without a section."""
    for section in _SECTION.split(changelog)[1:]:
        title, _, body = section.partition("\n")
        if title.split(" ")[0] == version:
            return f"{body.strip()}\n"
    raise ReleaseError(f"CHANGELOG.md has no section {version}")


def for_conda_forge(recipe: str, digest: str) -> str:
    """The conda recipe with the source distribution on PyPI instead of a checkout; raises ReleaseError if it names
    neither."""
    changed, found = _SOURCE.subn(f"source:\n  url: {_PYPI}\n  sha256: {digest}", recipe)
    if found != 1:
        raise ReleaseError("packaging/conda/recipe.yaml: its source is not the checkout (path: ../..)")
    return changed


def digest(path: Path) -> str:
    """The SHA-256 of a file, in hexadecimal digits."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def checksums(files: Iterable[Path]) -> str:
    """The lines that ``sha256sum --check`` reads, by file name."""
    return "".join(f"{digest(path)}  {path.name}\n" for path in sorted(files))
