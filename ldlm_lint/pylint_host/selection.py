"""Decides which rules are reported under pylint: first by its comments, then its switches, then the configuration of
the file.

``per-file-ignores`` and ``exclude`` say where rules do not apply, and a switch, which applies to all files, does not
change that, like ``--select`` on our own command line. A comment in the file itself overrides ``per-file-ignores``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

from ldlm_lint.config import Config, Configured
from ldlm_lint.linting import selected_rules
from ldlm_lint.model import Finding, Problem, Severity
from ldlm_lint.report.cells import clean
from ldlm_lint.rules import ALL, by_symbol
from ldlm_lint.rules.linter import CONFIGURATION_ERROR, CONFIGURATION_NOT_READ, HOST_RULES, UNUSED_SUPPRESSION
from ldlm_lint.select import NOTHING
from ldlm_lint.source import Source
from ldlm_lint.suppress import suppressions
from ldlm_lint.tomlfile import ConfigError


class Fault(NamedTuple):
    """An error in settings, as a message of a rule at a line of the configuration file (0: the whole file)."""

    path: str
    line: int
    rule: str
    args: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Selection:
    """The settings of each file for a run under pylint: its switches (by the symbols of rules) above the ``configured`` ones.

    ``wide`` are the files (absolute, forward slashes) in which a comment may switch rules on: they are asked for all rules.
    It implements `ldlm_lint.config.Configured`; methods that need the settings of a file raise ConfigError if they are
    invalid.
    """

    switches: Mapping[str, bool]
    configured: Configured
    wide: Set[str] = frozenset()
    _asked: dict[tuple[Config, bool], Config] = field(default_factory=dict)

    @property
    def is_empty(self) -> bool:
        """Whether no file can have a finding, since all rules are disabled in pylint."""
        return all(self.switches.get(rule.symbol) is False for rule in ALL if rule not in HOST_RULES)

    @property
    def run(self) -> Config:
        """The settings of the working directory, the defaults if they are invalid: other files are still checked."""
        try:
            return self._asked_for(self.configured.run, False)
        except ConfigError:
            return Config(root=Path.cwd().as_posix())

    @property
    def key(self) -> str:
        """A cache key for which files are found and where settings come from."""
        return repr((self.configured.key, sorted(self.switches.items())))

    def of(self, path: str) -> Config:
        """The settings to lint a file with: for the rules that are on, and those that a comment in it may switch on."""
        return self._asked_for(self.configured.of(path), path in self.wide)

    def of_folder(self, folder: str) -> Config:
        """The settings of the files in a directory that have no such comment."""
        return self._asked_for(self.configured.of_folder(folder), False)

    def excludes(self, path: str, is_directory: bool) -> bool:
        """Whether a path is excluded."""
        return self.configured.excludes(path, is_directory)

    def looks(self, folder: str) -> Iterator[tuple[str, str]]:
        """The file system look-ups that determine the settings of a directory."""
        return self.configured.looks(folder)

    def warnings(self, folder: str) -> tuple[Problem, ...]:
        """Probable mistakes in the files above a directory: settings that they seem to intend and do not set."""
        return self.configured.warnings(folder)

    def reports(self, finding: Finding, source: Source) -> bool:
        """Whether a finding of the run is reported: a comment, a switch or the settings of its file say so."""
        if source.path in self.wide:
            line, _ = source.position(finding.span.start)
            comments = suppressions(source).pylint
            if comments is not None and comments.enables(by_symbol[finding.rule], line):
                return True
        config = self.configured.of(source.path)
        if finding.rule not in self._rules(config) or finding.rule in config.ignored_at(source.path, ALL):
            return False
        return finding.severity >= config.level or self.switches.get(finding.rule, False)

    def faults(self, folders: Iterable[str]) -> set[Fault]:
        """The errors in the settings of the files in directories."""
        found: set[Fault] = set()
        for folder in folders:
            for warning in self.configured.warnings(folder):
                found.add(Fault(warning.path, warning.line, CONFIGURATION_NOT_READ.symbol, (("warning", clean(warning.message)),)))
            try:
                self.configured.of_folder(folder)
            except ConfigError as error:
                for one in error.errors:
                    what = one.what if one.key else f"the file {one.message}"
                    found.add(Fault(one.path, one.line, CONFIGURATION_ERROR.symbol, (("error", clean(what)),)))
        return found

    def _rules(self, config: Config) -> frozenset[str]:
        """The symbols of the rules that are on under a configuration, without comments and ``per-file-ignores``."""
        on = {symbol for symbol, state in self.switches.items() if state}
        return selected_rules(config) - self.switches.keys() | on

    def _asked_for(self, config: Config, all_rules: bool) -> Config:
        known = self._asked.get((config, all_rules))
        if known is None:
            rules = self._rules(config)
            select = ("ALL",) if all_rules or UNUSED_SUPPRESSION.symbol in rules else tuple(sorted(rules))
            everything = replace(config, extend_select=(), ignore=(), overrides=NOTHING, level=Severity.INFO, pedantic=False)
            known = replace(everything, select=select, per_file_ignores=() if all_rules else config.per_file_ignores)
            self._asked[config, all_rules] = known
        return known
