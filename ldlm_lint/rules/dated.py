"""The rules that hold from some version of torch on, because of what they report or what they advise."""

from __future__ import annotations

import functools
from collections.abc import Mapping

from ldlm_lint import rules, tables
from ldlm_lint.model import Interface


@functools.cache
def dated() -> Mapping[str, Interface]:
    """What each of these rules, by its symbol, needs."""
    return {rule.symbol: tables.interface(rule.needs) for rule in rules.ALL if rule.needs}
