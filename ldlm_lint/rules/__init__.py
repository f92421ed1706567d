"""All rules, declared once: one file per family has the Rule objects and their pure decisions.

A rule in its final form has its texts beside its query, in ``ldlm_lint/checkers/<family>/<rule>.py``; these import facts
about code, which import rules of this package, so that `ALL` is made when it is first asked for.
"""

from __future__ import annotations

import functools
import importlib
from typing import TYPE_CHECKING, NamedTuple

from ldlm_lint.model import DEPRECATED, STATUSES, Option, Rule

_FILES = (
    "environment", "environment_aliases", "environment_allocator", "environment_connections", "environment_debugging",
    "environment_error_handling", "environment_tuning", "environment_values",
    "launch", "linter",
)


def _collect() -> tuple[Rule, ...]:
    from ldlm_lint.checkers.rule_files import rule_files

    families = [importlib.import_module(f"{__name__}.{name}") for name in _FILES]
    declared = [rule for family in families for rule in family.RULES] + [rule for file in rule_files() for rule in file.rules]
    rules = sorted(declared, key=lambda rule: rule.code[1:])
    for attribute in ("code", "symbol"):
        seen = [getattr(rule, attribute) for rule in rules]
        if len(set(seen)) != len(seen):
            raise ValueError(f"two rules share a {attribute}: {sorted({one for one in seen if seen.count(one) > 1})}")
    for rule in rules:
        if rule.status not in STATUSES or bool(rule.successor) != (rule.status == DEPRECATED) or (rule.successor and rule.default):
            raise ValueError(f"{rule.symbol}: a deprecated rule names its successor and is off by default, no other does")
    return tuple(rules)


class _Rules(NamedTuple):
    """All rules, by their codes, and what is looked up among them."""

    ALL: tuple[Rule, ...]
    by_symbol: dict[str, Rule]
    by_code: dict[str, Rule]
    OPTIONS: dict[str, Option]


@functools.cache
def _rules() -> _Rules:
    rules = _collect()
    options = {option.name: option for rule in rules for option in rule.options}
    return _Rules(rules, {rule.symbol: rule for rule in rules}, {rule.code: rule for rule in rules}, options)


if TYPE_CHECKING:
    ALL: tuple[Rule, ...]
    by_symbol: dict[str, Rule]
    by_code: dict[str, Rule]
    OPTIONS: dict[str, Option]
else:

    def __getattr__(name: str) -> object:
        if name in _Rules._fields:
            return getattr(_rules(), name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
