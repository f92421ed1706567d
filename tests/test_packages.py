"""The supply chain: the lock covers what pyproject.toml declares, and a build depends on nothing but the sources."""

from __future__ import annotations

import itertools
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
_PINNED = re.compile(r"^([\w.-]+)==([\w.+!-]+)(?: ; .*?)? \\$", re.M)
LOCKED = ("dev", "docs", "gate", "test")


def pinned(name: str) -> dict[str, set[str]]:
    """The versions that a lock pins, by canonical name; one for each range of Python versions or systems."""
    found: dict[str, set[str]] = {}
    for package, version in _PINNED.findall((ROOT / name).read_text(encoding="utf-8")):
        found.setdefault(canonicalize_name(package), set()).add(version)
    return found


@pytest.mark.parametrize("extra", ["", *LOCKED])
def test_the_lock_holds_what_is_declared(extra: str) -> None:
    declared = PROJECT["optional-dependencies"][extra] if extra else PROJECT["dependencies"]
    locked = pinned("requirements-dev.txt")
    for requirement in map(Requirement, declared):
        versions = locked.get(canonicalize_name(requirement.name), set())
        assert versions and all(requirement.specifier.contains(one) for one in versions), f"{requirement}: python scripts/lock.py"


@pytest.mark.parametrize("name", ["requirements-dev.txt", "requirements-uv.txt"])
def test_every_package_of_a_lock_has_hashes_and_no_place(name: str) -> None:
    text = (ROOT / name).read_text(encoding="utf-8")
    entries = re.split(r"^(?=[a-z0-9])", text, flags=re.M)[1:]
    assert entries and all("--hash=sha256:" in entry for entry in entries)
    # Where a package is fetched from is the installer's business.
    assert not re.search(r"://|index-url|find-links", text)


def test_dependencies_are_bounded_from_below_and_say_what_they_are_for() -> None:
    assert all(re.search(r">=?\d", one) for one in PROJECT["dependencies"])
    # astroid and pylint break plugins in major versions; nothing else was seen to need an upper bound.
    bounded = {Requirement(one).name for one in PROJECT["dependencies"] if "<" in one.partition(";")[0]}
    assert bounded == {"astroid", "pylint"}
    lines = (ROOT / "pyproject.toml").read_text(encoding="utf-8").splitlines()
    start = lines.index("dependencies = [") + 1
    listed = lines[start : lines.index("]", start)]
    assert listed[0].lstrip().startswith("#")
    for before, line in itertools.pairwise(listed):
        assert not (before.lstrip().startswith('"') and line.lstrip().startswith('"')), f"no reason above {line}"


def test_who_uses_the_package_is_told_that_it_has_types() -> None:
    assert ("Typing :: Typed" in PROJECT["classifiers"]) == (ROOT / "ldlm_lint" / "py.typed").is_file()


def test_ci_asks_what_the_extra_for_it_brings() -> None:
    commands = (ROOT / ".ci" / "run").read_text(encoding="utf-8").splitlines()
    tools = {Requirement(one).name for one in PROJECT["optional-dependencies"]["dev"] if not one.startswith("types-")}
    assert tools <= {line.partition(" ")[0] for line in commands}


@pytest.mark.network
@pytest.mark.skipif(shutil.which("uv") is None, reason="needs uv")
def test_two_builds_are_the_same_byte_for_byte() -> None:
    done = subprocess.run([sys.executable, str(ROOT / "scripts" / "check_packages.py")], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert [line.rpartition("  ")[2] for line in done.stdout.splitlines()] == ["(twice the same)"] * 2
