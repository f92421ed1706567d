"""The verdicts that end a run with exit code 1: those that would fail the gate of `ldlm-lint check` as findings."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from ldlm_lint.config import Config
from ldlm_lint.evidence.model import Judgement, Verdict
from ldlm_lint.rules import ALL, by_symbol
from ldlm_lint.select import SelectorError
from ldlm_lint.tomlfile import ConfigError


def failing(judgements: Iterable[Judgement], project: Path) -> list[Judgement]:
    """The verified judgements whose rules are selected in a project, at its fail level or above.

    A rule that trades one thing for another (memory for speed) is a choice, which no run can prove wrong. An invalid
    configuration is that of no project: `check` reports it.
    """
    try:
        config = Config.load(project)
        chosen = config.selected(ALL)
    except (ConfigError, SelectorError):
        # Whatever is wrong with it, the run is over and has its verdicts.
        config = Config()
        chosen = config.selected(ALL)
    return [one for one in judgements if one.verdict is Verdict.VERIFIED and _fails(one.rule, config, chosen)]


def _fails(symbol: str, config: Config, chosen: frozenset[str]) -> bool:
    rule = by_symbol.get(symbol)
    return rule is not None and symbol in chosen and not rule.trade and rule.severity >= config.fail_level
