"""All rules, declared once: one file per family has the Rule objects and their pure decisions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ldlm_lint.model import DEPRECATED, STATUSES, Option, Rule
from ldlm_lint.rules import (
    accumulation,
    amp,
    attention,
    autograd,
    backends,
    batch_size,
    checkpoint_files,
    checkpoint_loading,
    checkpoint_saving,
    collectives,
    compilation,
    copies,
    data,
    data_parallel,
    ddp,
    ddp_graph,
    environment,
    environment_aliases,
    environment_allocator,
    environment_connections,
    environment_debugging,
    environment_error_handling,
    environment_order,
    environment_tuning,
    environment_values,
    evaluation,
    fused,
    gradient_scaling,
    gradient_zeroing,
    host_time,
    launch,
    linter,
    loss,
    memory,
    no_sync,
    optimizer,
    process_groups,
    rank_divergence,
    schedule,
    segments,
    sharded_data,
)

if TYPE_CHECKING:
    from types import ModuleType


def _collect() -> tuple[Rule, ...]:
    families: tuple[ModuleType, ...] = (linter, data, environment, launch, collectives, ddp, accumulation, batch_size, optimizer, memory)
    families += (environment_error_handling, environment_aliases, environment_values, environment_debugging)
    families += (environment_tuning, environment_allocator, environment_connections, environment_order)
    families += (checkpoint_files, loss)
    families += (host_time, autograd, evaluation, gradient_zeroing, checkpoint_saving,)
    families += (checkpoint_loading, amp, backends, compilation, attention,)
    families += (fused, gradient_scaling, schedule, copies, sharded_data,)
    families += (process_groups, ddp_graph, no_sync, rank_divergence, data_parallel,)
    families += (segments,)
    rules = sorted((rule for family in families for rule in family.RULES), key=lambda rule: rule.code[1:])
    for attribute in ("code", "symbol"):
        seen = [getattr(rule, attribute) for rule in rules]
        if len(set(seen)) != len(seen):
            raise ValueError(f"two rules share a {attribute}: {sorted({one for one in seen if seen.count(one) > 1})}")
    for rule in rules:
        if rule.status not in STATUSES or bool(rule.successor) != (rule.status == DEPRECATED) or (rule.successor and rule.default):
            raise ValueError(f"{rule.symbol}: a deprecated rule names its successor and is off by default, no other does")
    return tuple(rules)


ALL: tuple[Rule, ...] = _collect()
by_symbol: dict[str, Rule] = {rule.symbol: rule for rule in ALL}
by_code: dict[str, Rule] = {rule.code: rule for rule in ALL}
OPTIONS: dict[str, Option] = {option.name: option for rule in ALL for option in rule.options}
