"""Reports where the value of each setting comes from: the command line, a line of a file, the requirements, or the
default.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any, NamedTuple

from ldlm_lint.config import Config, relative_to
from ldlm_lint.config_files import read_settings
from ldlm_lint.rules import ALL
from ldlm_lint.settings import SETTINGS
from ldlm_lint.tomlfile import Table

DEFAULT = "default"
COMMAND_LINE = "command line"
# What each option of the command line sets.
_OPTIONS = {
    "select": "select",
    "extend-select": "extend_select",
    "ignore": "ignore",
    "pedantic": "pedantic",
    "exclude": "exclude",
    "level": "level",
    "fail-level": "fail_level",
    "output-format": "format",
    "baseline": "baseline",
}


class Origin(NamedTuple):
    """A key with its value, as JSON has it, and where that comes from."""

    key: str
    value: Any
    origin: str


def settings_of(arguments: argparse.Namespace, config: Config) -> list[Origin]:
    """Every setting with its value; selectors of the command line follow those of the file, on which they act."""
    table = (read_settings(Path(config.path), named=True).table if config.path else None) or Table()
    rows: list[Origin] = []
    for one in SETTINGS:
        given = getattr(arguments, _OPTIONS[one.name], None) if one.name in _OPTIONS else None
        if not given or one.selectors:
            rows.append(_of_file(one.name, one.default, table, config))
        if given:
            rows.append(Origin(one.name, given if isinstance(given, (list, bool)) else str(given), COMMAND_LINE))
        if one.name == "exclude" and getattr(arguments, "extend_exclude", None):
            rows.append(Origin("exclude", arguments.extend_exclude, COMMAND_LINE))
    options = {option.name: option for rule in ALL for option in rule.options}
    return rows + [_of_file(name, config.option(option), table, config) for name, option in sorted(options.items())]


def _of_file(key: str, default: object, table: Table, config: Config) -> Origin:
    if key in table.values:
        return Origin(key, table.values[key], f"{Path(table.path).name}:{table.line(key)}")
    if key == "target-torch":
        return Origin(key, *_torch(config))
    return Origin(key, list(default) if isinstance(default, tuple) else default, DEFAULT)


def _torch(config: Config) -> tuple[str | None, str]:
    """The range of versions that the requirements allow, as text, and which requirements these are."""
    ends = [one and ".".join(map(str, one)) for one in (config.target_torch.oldest, config.target_torch.newest)]
    if not any(ends):
        return None, DEFAULT
    said = dict.fromkeys(f"{relative_to(one.path, config.root) or one.path}: {one.text}" for one in config.torch_bounds)
    return " to ".join(one or "any" for one in dict.fromkeys(ends)), "; ".join(said)
