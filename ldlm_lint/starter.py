"""Generates a configuration to start with: every key with its default, commented out; uses the same data as the
configuration.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from ldlm_lint.settings import SETTINGS

if TYPE_CHECKING:
    from ldlm_lint.model import Option, Rule

HEADER = "[tool.ldlm-lint]"
PAGE = "https://github.com/ldlm-lint/ldlm-lint/blob/main/docs/configuration.md"
_INTRODUCTION = f"""\
# What each key does: {PAGE}
# To set a key, remove the "# " before it. The values below are the defaults.
"""


def starter(rules: Iterable[Rule], *, header: bool) -> str:
    """The text of a configuration; with the ``header`` of our table for a pyproject.toml, without one for our own
    file.
    """
    parts = [f"{HEADER}\n{_INTRODUCTION}" if header else f"# Configuration of ldlm-lint.\n{_INTRODUCTION}"]
    parts += [_key(one.name, one.default, one.help, one.example) for one in SETTINGS]
    parts += [_key(option.name, option.default, f"{option.help} ({', '.join(names)})") for option, names in _options(rules)]
    return "\n".join(parts)


def _options(rules: Iterable[Rule]) -> Iterator[tuple[Option, list[str]]]:
    """The options of rules by name, each with the rules that it is for."""
    rules = list(rules)
    options = {option.name: option for rule in rules for option in rule.options}
    for name, option in sorted(options.items()):
        yield option, sorted(rule.symbol for rule in rules if name in {one.name for one in rule.options})


def _key(name: str, default: object, about: str, example: object = None) -> str:
    """The lines of one key; one that is not set by default has an example, which stays a comment."""
    first = about.partition(" ")[0]
    about = about[0].upper() + about[1:] if first.isalpha() else about
    if example is not None:
        return f"# {about}\n# Not set by default, for example:  {name} = {_value(example)}\n"
    return f"# {about}\n# {name} = {_value(default)}\n"


def _value(value: object) -> str:
    """A value as TOML; for the types of settings JSON is valid TOML."""
    return json.dumps(list(value) if isinstance(value, tuple) else value, ensure_ascii=False)
