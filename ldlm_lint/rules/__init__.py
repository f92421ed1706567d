"""Every rule, declared once: one file per family holds the Rule objects and their pure decisions."""

from __future__ import annotations

from ldlm_lint.model import Option, Rule
from ldlm_lint.rules import (
    accumulation,
    batch_size,
    checkpoint_files,
    collectives,
    data,
    ddp,
    environment,
    environment_aliases,
    environment_allocator,
    environment_connections,
    environment_debugging,
    environment_error_handling,
    environment_order,
    environment_tuning,
    environment_values,
    launch,
    linter,
    loss,
    memory,
    optimizer,
)


def _collect() -> tuple[Rule, ...]:
    families = (linter, data, environment, launch, collectives, ddp, accumulation, batch_size, optimizer, memory)
    families += (environment_error_handling, environment_aliases, environment_values, environment_debugging)
    families += (environment_tuning, environment_allocator, environment_connections, environment_order)
    families += (checkpoint_files, loss)
    rules = sorted((rule for family in families for rule in family.RULES), key=lambda rule: rule.code[1:])
    for attribute in ("code", "symbol"):
        seen = [getattr(rule, attribute) for rule in rules]
        if len(set(seen)) != len(seen):
            raise ValueError(f"two rules share a {attribute}: {sorted({one for one in seen if seen.count(one) > 1})}")
    return tuple(rules)


ALL: tuple[Rule, ...] = _collect()
by_symbol: dict[str, Rule] = {rule.symbol: rule for rule in ALL}
by_code: dict[str, Rule] = {rule.code: rule for rule in ALL}
OPTIONS: dict[str, Option] = {option.name: option for rule in ALL for option in rule.options}
