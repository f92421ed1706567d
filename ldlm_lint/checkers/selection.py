"""Which rules are reported where under pylint: its comments decide first, then its switches, then the configuration of the file.

``per-file-ignores`` and ``exclude`` say where rules do not hold, so that a switch, which holds for all files, leaves them
alone, as ``--select`` does on our own command line. A comment in the file itself stands above ``per-file-ignores``.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import replace

from ldlm_lint.config import Config
from ldlm_lint.ignores import excluder
from ldlm_lint.linting import selected_rules
from ldlm_lint.model import Finding, Severity
from ldlm_lint.rules import ALL, by_symbol
from ldlm_lint.rules.linter import FAILURES, UNUSED_SUPPRESSION
from ldlm_lint.select import NOTHING
from ldlm_lint.source import Source
from ldlm_lint.suppress import Suppressions

_FAILURES = frozenset(rule.symbol for rule in FAILURES)


class Selection:
    """What pylint was told (``switches``, by the symbols of rules), and the configuration of each file.

    ``config_of`` gives the configuration of a file (absolute, forward slashes); it and what asks it raise ConfigError.
    """

    def __init__(self, switches: Mapping[str, bool], config_of: Callable[[str], Config]) -> None:
        self._switches = switches
        self.config_of = config_of

    @property
    def is_empty(self) -> bool:
        """Whether no file can have a finding, since pylint was told to disable all rules."""
        return all(self._switches.get(rule.symbol) is False for rule in ALL if rule.symbol not in _FAILURES)

    def excludes(self, path: str) -> bool:
        """Whether ``exclude`` takes a file out."""
        return _excluder(self.config_of(path))(path, False)

    def rules(self, config: Config) -> frozenset[str]:
        """The symbols of the rules that are on where a configuration holds, comments and ``per-file-ignores`` apart."""
        on = {symbol for symbol, state in self._switches.items() if state}
        return selected_rules(config) - self._switches.keys() | on

    def asks(self, path: str, *, all_rules: bool) -> Config:
        """The configuration to lint a file with: of the rules that are off those take part that a comment may switch on."""
        config = self.config_of(path)
        rules = self.rules(config)
        select = ("ALL",) if all_rules or UNUSED_SUPPRESSION.symbol in rules else tuple(sorted(rules))
        kept = () if all_rules else config.per_file_ignores
        everything = replace(config, extend_select=(), ignore=(), overrides=NOTHING, level=Severity.INFO, pedantic=False)
        return replace(everything, select=select, per_file_ignores=kept)

    def reports(self, finding: Finding, source: Source, comments: Suppressions) -> bool:
        """Whether a finding of a file is reported, but for the comments that silence findings."""
        line, _ = source.position(finding.span.start)
        if comments.pylint is not None and comments.pylint.enables(by_symbol[finding.rule], line):
            return True
        config = self.config_of(source.path)
        return finding.rule in self.rules(config) and finding.rule not in config.ignored_at(source.path, ALL)


@functools.lru_cache
def _excluder(config: Config) -> Callable[[str, bool], bool]:
    return excluder(config)
