"""The supply chain: the lock covers what pyproject.toml declares, and a build depends on nothing but the sources."""

from __future__ import annotations

import itertools
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from collected import for_every
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "scripts"))

import check_packages

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parent.parent
_PINNED = re.compile(r"^([\w.-]+)==([\w.+!-]+)(?: ; .*?)? \\$", re.M)
LOCKED = ("dev", "docs", "gate", "release", "test")
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
README = (ROOT / "README.md").read_text(encoding="utf-8")
PROJECT = PYPROJECT["project"]
ADDRESS = "https://github.com/ldlm-lint/ldlm-lint/blob/$HFPR_VERSION/"
PICTURE = "https://raw.githubusercontent.com/ldlm-lint/ldlm-lint/$HFPR_VERSION/"


def pinned(name: str) -> dict[str, set[str]]:
    """The versions that a lock pins, by canonical name; one for each range of Python versions or systems."""
    found: dict[str, set[str]] = {}
    for package, version in _PINNED.findall((ROOT / name).read_text(encoding="utf-8")):
        found.setdefault(canonicalize_name(package), set()).add(version)
    return found


@for_every("extra", ["", *LOCKED])
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


def for_pypi(text: str) -> str:
    """A text as PyPI gets it: the plugin makes these substitutions in their order, and then writes the version."""
    for rule in PYPROJECT["tool"]["hatch"]["metadata"]["hooks"]["fancy-pypi-readme"]["substitutions"]:
        text = re.sub(rule["pattern"], rule["replacement"], text)
    return text


@for_every(
    ("text", "expected"),
    [
        pytest.param("[a](docs/a.md#b)", f"[a]({ADDRESS}docs/a.md#b)", id="link"),
        pytest.param("![a](docs/a.svg)", f"![a]({PICTURE}docs/a.svg)", id="picture"),
        pytest.param("[![a](docs/a.svg)](docs/a.md)", f"[![a]({PICTURE}docs/a.svg)]({ADDRESS}docs/a.md)", id="picture-in-a-link"),
        pytest.param('<img alt="a" src="docs/a.svg">', f'<img alt="a" src="{PICTURE}docs/a.svg">', id="img"),
        pytest.param('<source srcset="docs/a.svg">', f'<source srcset="{PICTURE}docs/a.svg">', id="source"),
        pytest.param('<a href="docs/a.md">', f'<a href="{ADDRESS}docs/a.md">', id="a"),
        pytest.param("[a]: docs/a.md", f"[a]: {ADDRESS}docs/a.md", id="definition"),
        *(
            pytest.param(same, same, id=f"kept-{number}")
            for number, same in enumerate(
                ["[a](https://b.c/d)", "[a](#b)", "![a](https://b.c/d.svg)", '<a href="#b">', "[a]: https://b.c"]
            )
        ),
    ],
)
def test_links_of_the_readme_become_addresses(text: str, expected: str) -> None:
    assert for_pypi(text) == expected
    assert for_pypi(expected) == expected


def test_every_link_on_pypi_is_an_address_of_a_file_that_exists() -> None:
    shown = for_pypi(README)
    targets = re.findall(r"\]\(([^)\s]+)\)|(?:href|src|srcset)=\"([^\"]+)\"", re.sub(r"(?ms)^```.*?^```$", "", shown))
    addresses = [one or other for one, other in targets]
    assert addresses and all(re.match(r"https?://|mailto:|#", address) for address in addresses)
    ours = [address.partition("$HFPR_VERSION/")[2].partition("#")[0] for address in addresses if "$HFPR_VERSION/" in address]
    assert ours and [name for name in ours if not (ROOT / name).exists()] == []


def test_no_example_of_the_readme_is_changed_for_pypi() -> None:
    fences = re.compile(r"(?ms)^```.*?^```$")
    assert fences.findall(for_pypi(README)) == fences.findall(README)


@for_every(
    ("sources", "wheel", "expected"),
    [
        pytest.param(set(), set(), [], id="complete"),
        pytest.param({"-tests/a.py"}, set(), ["the source distribution lacks tests/a.py"], id="a-test-is-missing"),
        pytest.param({"notes.txt"}, set(), ["the source distribution holds notes.txt, which git does not track"], id="junk"),
        pytest.param(set(), {"-ldlm_lint/page.html"}, ["the wheel lacks ldlm_lint/page.html"], id="a-template-is-missing"),
        pytest.param(set(), {"tests/a.py"}, ["the wheel holds tests/a.py"], id="a-test-in-the-wheel"),
        pytest.param(set(), {"-ldlm_lint/_examples/a.txt"}, ["the wheel lacks ldlm_lint/_examples/"], id="no-examples"),
    ],
)
def test_packages_that_are_not_complete_are_refused(sources: set[str], wheel: set[str], expected: list[str]) -> None:
    tracked = {"README.md", "tests/a.py", "ldlm_lint/__init__.py", "ldlm_lint/page.html"}

    def changed(names: set[str], changes: set[str]) -> set[str]:
        return (names | changes) - {name for change in changes for name in (change, change[1:]) if change.startswith("-")}

    in_wheel = {"ldlm_lint/__init__.py", "ldlm_lint/page.html", "ldlm_lint/_examples/a.txt", "a.dist-info/RECORD"}
    assert check_packages.complaints(tracked, changed({*tracked, "PKG-INFO"}, sources), changed(in_wheel, wheel)) == expected


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
