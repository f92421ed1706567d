"""The published schemas: that of the configuration accepts what the configuration does."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest
from collected import for_every
from jsonschema import Draft7Validator, Draft202012Validator

from ldlm_lint.config import Config
from ldlm_lint.rules import ALL
from ldlm_lint.settings import SETTINGS, config_schema

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"


def test_the_schema_accepts_what_the_configuration_does(tmp_path: Path) -> None:
    validator = Draft7Validator(json.loads((DOCS / "config.schema.json").read_text(encoding="utf-8")))
    good = {
        "select": ["72", "W73", "optimizer-not-fused", "ALL"],
        "per-file-ignores": {"experiments/": ["W7601"]},
        "pedantic": True,
        "target-torch": "2.4",
        "output-format": "concise",
        "heartbeat-limit": 60,
        "fail-level": "warning",
    }
    assert list(validator.iter_errors(good)) == []
    loaded(tmp_path, good)
    wrong = (
        {"selct": ["72"]},
        {"select": ["no-such-rule"]},
        {"select": "72"},
        {"pedantic": "yes"},
        {"level": "note"},
        {"target-torch": "1.9"},
        {"output-format": "xml"},
        {"heartbeat-limit": "60"},
        {"per-file-ignores": {"!a": ["72"]}},
        {"per-file-ignores": {"a": ["no-such-rule"]}},
    )
    from ldlm_lint.tomlfile import ConfigError

    for one in wrong:
        assert list(validator.iter_errors(one)), one
        with pytest.raises(ConfigError):
            loaded(tmp_path, one)


def loaded(folder: Path, table: dict[str, object]) -> Config:
    lines = [f"{key} = {toml(value)}" for key, value in table.items()]
    (folder / "pyproject.toml").write_text("\n".join(["[tool.ldlm-lint]", *lines, ""]))
    return Config.load(folder)


def toml(value: object) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(key)} = {toml(one)}" for key, one in value.items()) + "}"
    return json.dumps(value)


def test_the_configurations_that_we_show_and_use_are_valid() -> None:
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib

    validator = Draft7Validator(config_schema(ALL))
    Draft7Validator.check_schema(config_schema(ALL))
    tables = [
        tomllib.loads((ROOT / name).read_text())
        for name in ("pyproject.toml", "examples/latent-captions/pyproject.toml")
    ]
    for page in (DOCS / "configuration.md", ROOT / "README.md"):
        tables += [
            tomllib.loads(text)
            for text in re.findall(r"(?ms)^```toml\n(.*?)^```$", page.read_text(encoding="utf-8"))
            # That of an editor is none of ours.
            if not text.startswith("[language-server.")
        ]
    assert len(tables) >= 4
    for table in tables:
        # A file of ours has no table header.
        validator.validate(table["tool"]["ldlm-lint"] if "tool" in table else table)


def test_every_key_of_the_schema_is_a_setting_and_the_other_way_round() -> None:
    options = {option.name for rule in ALL for option in rule.options}
    assert config_schema(ALL)["properties"].keys() == {one.name for one in SETTINGS} | options


@for_every("path", sorted(DOCS.glob("*.schema.json")), ids=lambda path: path.name)
def test_published_schemas_are_schemas_with_an_address_of_their_own(path: Path) -> None:
    published = json.loads(path.read_text(encoding="utf-8"))
    (Draft7Validator if "draft-07" in published["$schema"] else Draft202012Validator).check_schema(published)
    assert published["$id"].endswith(f"/docs/{path.name}")
    assert published["title"]
