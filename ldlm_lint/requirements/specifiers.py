"""The versions that a requirement allows, of those that are known."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from ldlm_lint.patterns import lazily
from ldlm_lint.requirements import Bound, Package, Said, Version

if TYPE_CHECKING:
    from packaging.markers import Marker
    from packaging.specifiers import SpecifierSet

_MICRO_VERSIONS = 20
_SHOWN = 60
_LOWER_BOUNDS = frozenset({">=", ">", "==", "~="})
# ``==2.4.1+cu121`` names a build of 2.4.1.
_BUILD = lazily(r"(?<=\d)\+[\w.]+")
# ``torch-2.1.0%2Bcu118-cp310-cp310-linux_x86_64.whl``
_WHEEL = lazily(r"(?:^|/)torch-(\d{1,9}(?:\.\d{1,9}){1,3})(?![\d.])[^/]*$")
_PYTHONS = tuple(f"3.{minor}" for minor in range(7, 15))
_LINUX: Mapping[str, str] = {"sys_platform": "linux", "platform_system": "Linux", "os_name": "posix", "platform_machine": "x86_64", "extra": ""}


def bound(said: Said, path: str, line: int) -> Bound | None:
    """What a requirement in a line of a file bounds; None if that is nothing, or it is malformed."""
    # Imported where a version is to be read: most runs over a project without torch need not wait for it.
    from packaging.specifiers import InvalidSpecifier, SpecifierSet

    try:
        specifiers = SpecifierSet(_BUILD.sub("", said.versions))
    except InvalidSpecifier:
        return None
    allowed = tuple(one for one in said.package.versions if _allows(specifiers, one))
    lower = _lower(specifiers)
    major, minor = said.package.versions[-1]
    is_open = specifiers.contains(f"{major}.{minor + 1}.0")
    if not len(specifiers) or (lower is None and (is_open or not allowed)):
        return None
    return Bound(said.package.name, path, line, " ".join(said.text.split())[:_SHOWN], allowed, lower, said.locked, is_open)


def of_requirement(package: Package, text: str, at: int) -> Iterator[Said]:
    """A requirement of pip for a package, by its text: versions, or the address of a wheel."""
    from packaging.requirements import InvalidRequirement, Requirement

    text = text.strip().rstrip("\\").strip()
    try:
        parsed = Requirement(_BUILD.sub("", text))
    except InvalidRequirement:
        return
    if parsed.name.lower() != package.name or (parsed.marker is not None and not _holds_on_linux(parsed.marker)):
        return
    if parsed.url is not None:
        yield from of_wheel(package, parsed.url, at, text)
    elif len(parsed.specifier):
        yield Said(package, text.partition(";")[0].strip(), at, str(parsed.specifier))


def of_wheel(package: Package, address: str, at: int, text: str = "") -> Iterator[Said]:
    """The version in the name of a wheel of torch."""
    match = _WHEEL.search(address)
    if match is not None:
        yield Said(package, text or address, at, f"=={match[1]}")


def of_conda(package: Package, text: str, versions: str, at: int) -> Iterator[Said]:
    """A requirement of conda: ``=2.1`` is ``==2.1.*``, ``2.1`` is ``==2.1``, and a build string may follow both."""
    versions = re.sub(r"^([\d.]+)(\.\*)?(?:\s.*)?$", r"==\1\2", versions.strip())
    versions = re.sub(r"^=(?!=)\s*([\d.]+)(?:\.\*|\*)?(?:=.*)?$", lambda match: f"=={match[1].rstrip('.')}.*", versions)
    versions = re.sub(r"^(==[\d.]+)=[^=].*$", r"\1", versions)
    yield Said(package, text, at, re.sub(r"(?<=\d)\*$", ".*", versions))


def _holds_on_linux(marker: Marker) -> bool:
    """Whether some Python on Linux fulfils a marker: trainings on several GPUs run there."""
    environments = ({**_LINUX, "python_version": one, "python_full_version": f"{one}.1"} for one in _PYTHONS)
    return any(marker.evaluate(dict(one)) for one in environments)


def _lower(specifiers: SpecifierSet) -> Version | None:
    """The oldest version that a specifier allows by its lower bounds; None if it has none."""
    from packaging.version import Version as Parsed

    lower = [Parsed(one.version.removesuffix(".*")).release for one in specifiers if one.operator in _LOWER_BOUNDS]
    return max(((*release, 0)[0], (*release, 0)[1]) for release in lower) if lower else None


def _allows(specifiers: SpecifierSet, version: Version) -> bool:
    return any(specifiers.contains(f"{version[0]}.{version[1]}.{micro}") for micro in range(_MICRO_VERSIONS))
