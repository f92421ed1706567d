"""The conda recipe: its version, command and dependencies are those of pyproject.toml."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

from ldlm_lint import __version__

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parent.parent
PATH = ROOT / "packaging" / "conda" / "recipe.yaml"
RECIPE = yaml.safe_load(PATH.read_text(encoding="utf-8"))
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
# What conda-forge calls otherwise than PyPI.
NAMES = {"tree-sitter": "tree_sitter"}


def listed(key: str) -> dict[str, SpecifierSet]:
    """The packages of a list of requirements of the recipe, without Python itself, and their versions."""
    pairs = (line.partition(" ") for line in RECIPE["requirements"][key])
    return {name: SpecifierSet(versions) for name, _, versions in pairs if name != "python"}


def declared(requirements: list[str]) -> dict[str, SpecifierSet]:
    """Requirements of pyproject.toml under the names of conda-forge; conditions on the version of Python are dropped."""
    parsed = map(Requirement, requirements)
    return {NAMES.get(one.name, one.name): one.specifier for one in parsed}


def test_the_dependencies_are_those_of_the_package() -> None:
    assert listed("run") == declared(PYPROJECT["project"]["dependencies"])


def test_the_build_needs_what_the_package_s_build_needs() -> None:
    assert listed("host") == {"pip": SpecifierSet(), **declared(PYPROJECT["build-system"]["requires"])}


def test_version_licence_and_command_are_those_of_the_package() -> None:
    project = PYPROJECT["project"]
    assert RECIPE["context"] == {"version": __version__, "python_min": project["requires-python"].removeprefix(">=")}
    assert RECIPE["about"]["license"] == project["license"] and RECIPE["package"]["name"] == project["name"]
    assert RECIPE["build"]["python"]["entry_points"] == [f"{name} = {place}" for name, place in project["scripts"].items()]
    assert RECIPE["about"]["homepage"] == project["urls"]["Homepage"]


def test_the_source_is_the_checkout() -> None:
    assert (PATH.parent / RECIPE["source"]["path"]).resolve() == ROOT


@pytest.mark.network
def test_rattler_build_renders_the_recipe() -> None:
    """Needs the extra ``gate``. A build needs packages of conda-forge; rendering takes the recipe apart as a build does."""
    rattler_build: Any = pytest.importorskip("rattler_build", reason="needs the gate extra")
    (variant,) = rattler_build.Stage0Recipe.from_file(str(PATH)).render()
    rendered = variant.recipe.to_dict()
    assert rendered["package"] == {"name": "ldlm-lint", "version": __version__}
    assert rendered["build"]["noarch"] == "python" and "python >=3.10" in rendered["requirements"]["run"]
