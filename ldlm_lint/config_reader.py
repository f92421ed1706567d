"""Validates a table of settings key by key and builds a configuration from it.

An unknown key, a wrong type, a value out of range and an unknown rule are errors: a configuration that does not do what
its author meant is worse than no configuration. All errors of a table are reported together, each with the line, the
key and the allowed values.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePath
from typing import Any

from ldlm_lint import select as selection
from ldlm_lint.config import LEVELS, Config, Overrides, spec_of
from ldlm_lint.model import Option, Rule, Severity
from ldlm_lint.report.formats import canonical
from ldlm_lint.requirements import ANY_TORCH, TORCH_VERSIONS, TorchRange
from ldlm_lint.select import SelectorError, nearest
from ldlm_lint.settings import KEYS, formats
from ldlm_lint.tomlfile import ConfigError, Table

_KINDS = {int: "an integer", float: "a number", str: "a string", bool: "true or false", list: "a list of strings"}
_LONGEST = 60
MOST_ERRORS = 50
"""Errors of a file that are told one by one: more are not read, and each costs a search for the nearest name."""


def config_of(table: Table, rules: Sequence[Rule], *, root: str = "", overrides: Overrides | None = None) -> Config:
    """The configuration that a table of settings describes; raises ConfigError."""
    overrides = overrides or Overrides()
    # First, since a file for a newer version may have keys that are unknown to this one.
    _check_version(table)
    reader = _Reader(table, rules)
    options = {option.name: option for rule in rules for option in rule.options}
    reader.reject_unknown((*KEYS, *options))
    level, fail_level = reader.level("level", Severity.INFO), reader.level("fail-level", Severity.REFACTOR)
    config = Config(
        root=root,
        path=table.path,
        select=reader.selectors("select") if "select" in table.values else None,
        extend_select=reader.selectors("extend-select"),
        ignore=reader.selectors("ignore"),
        overrides=overrides.layer,
        per_file_ignores=reader.per_file_ignores(),
        exclude=reader.patterns("exclude", replaced=overrides.replace),
        also_exclude=overrides.exclude,
        level=level if overrides.level is None else overrides.level,
        fail_level=fail_level if overrides.fail_level is None else overrides.fail_level,
        target_torch=reader.target_torch(),
        names_torch="target-torch" in table.values,
        baseline=reader.baseline(),
        required_version=reader.typed("required-version", str, ""),
        pedantic=reader.typed("pedantic", bool, False) or overrides.pedantic,
        output_format=canonical(reader.word("output-format", "", formats())),
        options=reader.options(options),
    )
    reader.raise_errors()
    return config


class _Reader:
    """The values of a table; one that is wrong is replaced by its default, and its error is kept."""

    def __init__(self, table: Table, rules: Sequence[Rule]) -> None:
        self._table = table
        self._rules = rules
        self._errors: list[ConfigError] = []
        self._untold = 0

    def raise_errors(self) -> None:
        """Raise ConfigError if anything was wrong."""
        if self._errors:
            more = [ConfigError(self._table.path, 0, "", f"and {self._untold} more errors")] if self._untold else []
            raise ConfigError.of(self._errors, more)

    def _fault(self, key: str, message: str, *, value: str = "", table: Table | None = None) -> None:
        if len(self._errors) < MOST_ERRORS:
            self._errors.append((table or self._table).error(key, message, value=value))
        else:
            self._untold += 1

    def reject_unknown(self, known: Sequence[str]) -> None:
        """An error for each key that is not known."""
        for key in self._table.values:
            if key not in known:
                hint = nearest(key, known) if len(self._errors) < MOST_ERRORS else ""
                self._fault(key, f"unknown key{hint}")

    def typed(self, key: str, kind: type, default: Any, table: Table | None = None) -> Any:
        """The value of a key, checked against the type it must have; a list becomes a tuple."""
        values = (table or self._table).values
        default = tuple(default) if isinstance(default, list) else default
        if key not in values:
            return default
        value: Any = values[key]
        fits = isinstance(value, (int, float) if kind is float else kind) and (kind is bool or not isinstance(value, bool))
        if not fits or (kind is list and not all(isinstance(one, str) for one in value)):
            self._fault(key, f"must be {_KINDS[kind]}, not {_spelled(value)}", table=table)
            return default
        return tuple(value) if kind is list else value

    def selectors(self, key: str, table: Table | None = None) -> tuple[str, ...]:
        """The selectors of a key, each of which names a rule."""
        names: tuple[str, ...] = self.typed(key, list, [], table)
        for name in names:
            try:
                selection.named(self._rules, name)
            except SelectorError as error:
                self._fault(key, str(error), value=name, table=table)
        return names

    def per_file_ignores(self) -> tuple[tuple[str, tuple[str, ...]], ...]:
        """The patterns of ``per-file-ignores``, each with its selectors."""
        key = "per-file-ignores"
        value = self._table.values.get(key, {})
        if not isinstance(value, Mapping):
            self._fault(key, f"must be a table of pattern = [names], not {_spelled(value)}")
            return ()
        inner = self._table.inside(key, value)
        for pattern in value:
            if pattern.startswith("!"):
                self._fault(pattern, "a negated pattern has no effect here", table=inner)
            elif not _is_pattern(pattern):
                self._fault(pattern, f'"{pattern}" is not a gitignore pattern', table=inner)
        return tuple((pattern, self.selectors(pattern, inner)) for pattern in value)

    def patterns(self, key: str, *, replaced: bool) -> tuple[str, ...]:
        """The patterns of a key; none where those of the command line ``replaced`` them."""
        patterns: tuple[str, ...] = self.typed(key, list, [])
        for pattern in patterns:
            if not _is_pattern(pattern):
                self._fault(key, f'"{pattern}" is not a gitignore pattern', value=pattern)
        return () if replaced else patterns

    def word(self, key: str, default: str, words: Sequence[str]) -> str:
        """A string from a list of allowed words."""
        word: str = self.typed(key, str, default)
        if word in words or not isinstance(self._table.values.get(key), str):
            return word
        self._fault(key, f'must be one of {", ".join(words)}, not {_spelled(word)}')
        return default

    def level(self, key: str, default: Severity) -> Severity:
        """A severity by its word."""
        return LEVELS[self.word(key, default.label, tuple(LEVELS))]

    def target_torch(self) -> TorchRange:
        """The version of torch that is named, as a range."""
        key = "target-torch"
        value = self._table.values.get(key)
        if value is None:
            return ANY_TORCH
        match = re.fullmatch(r"(\d{1,4})\.(\d{1,4})", value) if isinstance(value, str) else None
        version = (int(match[1]), int(match[2])) if match else None
        if version is None or version not in TORCH_VERSIONS:
            ends = [".".join(map(str, one)) for one in (TORCH_VERSIONS[0], TORCH_VERSIONS[-1])]
            self._fault(key, f'must be a string from "{ends[0]}" to "{ends[1]}", not {_spelled(value)}')
            return ANY_TORCH
        return TorchRange(version, version)

    def baseline(self) -> str:
        """The path of the baseline, inside of the project."""
        value = self.typed("baseline", str, "")
        if "baseline" not in self._table.values:
            return ""
        path = PurePath(value)
        # The file is also written, and a cloned project must not choose files outside of it.
        if not path.parts or path.anchor or ".." in path.parts:
            self._fault("baseline", f"must be a path inside the project, not {_spelled(value)}")
            return ""
        return path.as_posix()

    def options(self, options: Mapping[str, Option]) -> dict[str, object]:
        """The value of each rule option, set or default, within its range and those of other options."""
        return {name: value for name, value in self._options(options)}

    def _options(self, options: Mapping[str, Option]) -> Iterator[tuple[str, object]]:
        values = {name: self._ranged(option) for name, option in options.items()}
        for name in options:
            yield name, self._bounded(name, options, values)

    def _ranged(self, option: Option) -> object:
        value = self.typed(option.name, option.kind, option.default)
        lowest, highest = option.minimum, option.maximum
        # Asked in a way that refuses NaN, which TOML has.
        if not (lowest is None or value >= lowest) or not (highest is None or value <= highest):
            self._fault(option.name, f"must be {option.allowed}, not {_spelled(value)}")
            return option.default
        return value

    def _bounded(self, name: str, options: Mapping[str, Option], values: dict[str, Any]) -> Any:
        """A value that must not exceed another one; a default follows that one, a set value that does is an error."""
        option = options[name]
        bound = option.at_most or option.below
        if bound not in values:
            return values[name]
        most = self._bounded(bound, options, values) - bool(option.below)
        if values[name] > most and name in self._table.values:
            words = "less than" if option.below else "at most"
            self._fault(name, f"must be {words} {bound} ({most + bool(option.below)}), not {_spelled(values[name])}")
        values[name] = min(values[name], most)
        return values[name]


def _spelled(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    try:
        text = str(value)
    except ValueError:
        # Python converts no number of so many digits.
        return "a value that is too long to show"
    text = text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
    return f'"{text}"' if isinstance(value, str) else text


def _is_pattern(pattern: str) -> bool:
    try:
        spec_of(pattern)
    except ValueError:
        return False
    return True


def _check_version(table: Table) -> None:
    required = table.values.get("required-version", "")
    if not required:
        return
    from packaging.specifiers import InvalidSpecifier, SpecifierSet

    from ldlm_lint import __version__

    if not isinstance(required, str):
        raise table.error("required-version", f"must be {_KINDS[str]}, not {_spelled(required)}")
    try:
        fits = SpecifierSet(required).contains(__version__, prereleases=True)
    except InvalidSpecifier as error:
        raise table.error("required-version", f'"{required}" is not a version specifier such as ">=0.1"') from error
    if not fits:
        raise table.error("required-version", f"this project needs ldlm-lint {required}, but this is {__version__}")
