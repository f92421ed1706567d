"""The keys of ``[tool.ldlm-lint]`` as data: name, value and meaning, for the configuration, its schema and its docs."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ldlm_lint.model import Rule

# The words of `ldlm_lint.model.Severity`, which is not imported for them: a run that is shown again needs no model.
LEVELS = ("error", "warning", "refactor", "info")
KINDS = {int: "integer", float: "number", str: "string", bool: "boolean", list: "array", dict: "object"}


@dataclass(frozen=True, slots=True)
class Setting:
    """A key: its type, its default and its effect.

    ``schema`` is the JSON Schema of its value besides the type; ``words``, called when needed, returns the only allowed
    strings. ``selectors`` says that its strings name rules. ``example`` is a value for a key for which unset differs
    from every value.
    """

    name: str
    kind: type
    default: object
    help: str
    schema: Mapping[str, Any] = field(default_factory=dict)
    words: Callable[[], Iterable[str]] | None = None
    selectors: bool = False
    example: object = None


@functools.cache
def formats() -> tuple[str, ...]:
    """The names that ``output-format`` may have."""
    from ldlm_lint.report.formats import ALIASES, FORMATS

    return (*FORMATS, *ALIASES)


def _torch() -> Iterator[str]:
    from ldlm_lint.requirements import TORCH_VERSIONS

    return (f"{major}.{minor}" for major, minor in TORCH_VERSIONS)


SETTINGS = (
    Setting("select", list, None, "Apply these rules instead of the default set.", selectors=True, example=["ALL"]),
    Setting("extend-select", list, [], "Apply these rules too, opt-in ones included.", selectors=True),
    Setting("ignore", list, [], "Do not apply these rules.", selectors=True),
    Setting("pedantic", bool, False, "Apply the opt-in rules as if they were on by default."),
    Setting(
        "per-file-ignores",
        dict,
        {},
        "Rules to ignore in the files that match a gitignore pattern.",
        {"propertyNames": {"minLength": 1, "pattern": "^[^!]"}},
        selectors=True,
    ),
    Setting("exclude", list, [], "gitignore patterns of files and directories to exclude."),
    Setting("level", str, "info", "The lowest severity to show and fix.", words=lambda: LEVELS),
    Setting("fail-level", str, "refactor", "The lowest severity that gives exit code 1.", words=lambda: LEVELS),
    Setting("output-format", str, "text", "The report format.", words=formats),
    Setting(
        "target-torch",
        str,
        None,
        "The torch version of the project; default: the versions that its requirements allow.",
        words=_torch,
        example="2.6",
    ),
    Setting(
        "baseline",
        str,
        ".ldlm-lint-baseline.json",
        "The file of accepted findings, relative to the project.",
        {"minLength": 1},
        example=".ldlm-lint-baseline.json",
    ),
    Setting("required-version", str, "", 'The allowed versions of ldlm-lint, such as ">=0.1,<0.2".'),
)
KEYS = tuple(one.name for one in SETTINGS)


def config_schema(rules: Iterable[Rule]) -> dict[str, Any]:
    """The JSON Schema (draft 7, as editors and SchemaStore require) of the table ``[tool.ldlm-lint]``."""
    rules = list(rules)
    options = {option.name: option for rule in rules for option in rule.options}
    speaking = {
        name: sorted(rule.symbol for rule in rules if name in {one.name for one in rule.options}) for name in options
    }
    properties = {one.name: _described(one) for one in SETTINGS}
    for name, option in sorted(options.items()):
        shown = list(option.default) if isinstance(option.default, (list, tuple)) else option.default
        properties[name] = {
            "description": f"{option.help} ({', '.join(speaking[name])})",
            **_typed(option.kind),
            **{word: bound for word, bound in (("minimum", option.minimum), ("maximum", option.maximum)) if bound is not None},
            "default": shown,
        }
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "$id": "https://github.com/ldlm-lint/ldlm-lint/blob/main/docs/config.schema.json",
        "title": "[tool.ldlm-lint] in pyproject.toml, or ldlm-lint.toml",
        "description": "The configuration of ldlm-lint; an unknown key is an error.",
        "type": "object",
        "additionalProperties": False,
        "properties": properties,
        "definitions": {"selector": _selector(rules)},
    }


def _described(one: Setting) -> dict[str, Any]:
    described = {"description": one.help, **_typed(one.kind), **one.schema}
    if one.words is not None:
        described["enum"] = list(one.words())
    if one.selectors:
        names = {"type": "array", "items": {"$ref": "#/definitions/selector"}}
        described |= {"additionalProperties": names} if one.kind is dict else names
    return described if one.default is None else described | {"default": one.default}


def _typed(kind: type) -> dict[str, Any]:
    return {"type": KINDS[kind], **({"items": {"type": "string"}} if kind is list else {})}


def _selector(rules: list[Rule]) -> dict[str, Any]:
    """A rule selector: a name (also an old one), a code, its beginning or its number, a family, ``ALL``."""
    names = [name for rule in rules for name in (rule.symbol, *rule.old_names)]
    codes = sorted(rule.code for rule in rules)
    prefixes = sorted({code[:length] for code in codes for length in range(1, 5)} | {code[1:] for code in codes})
    families = sorted({rule.family for rule in rules})
    leading_to = {rule.consequence for rule in rules}
    consequences = [one.value for one in sorted(leading_to, key=lambda one: one.rank)]
    return {
        "description": "A rule's name or code, the start of a code, a family such as 72, a consequence such as hang, or ALL.",
        "enum": ["ALL", *consequences, *names, *codes, *prefixes, *families],
    }
