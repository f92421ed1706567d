"""Family 72: how long DeepSpeed's process groups wait, in minutes."""

from __future__ import annotations

from collections.abc import Iterator

from ldlm_lint import rules
from ldlm_lint.model import Claim
from ldlm_lint.rules.collectives import (
    COLLECTIVE_LIMIT,
    COLLECTIVE_TIMEOUT,
    compared,
    length_of,
)
from ldlm_lint.rules.environment_view import OUTSIDE_TESTS, Draft, View, number, rewrite
from ldlm_lint.rules.settings import Value

# deepspeed.comm reads it with `int(os.getenv("DEEPSPEED_TIMEOUT", default=30))`, as minutes.
_NAME = "DEEPSPEED_TIMEOUT"
NAMES = (_NAME,)
_MINUTE = 60


def drafts(view: View) -> Iterator[Draft]:
    """The findings of this topic."""
    limit, target = (view.options.get(one.name, one.default) for one in (COLLECTIVE_LIMIT, COLLECTIVE_TIMEOUT))
    if not isinstance(limit, int) or not isinstance(target, int):
        raise TypeError("the limits of collectives must be whole numbers")
    for setting in view.lasting(NAMES):
        known = setting.values or ()
        lengths = [_seconds(one) for one in known]
        if not known or any(one is None or one <= limit for one in lengths):
            continue
        shortest = min(one for one in lengths if one is not None)
        plan = rewrite(setting, lambda _: True, str(max(target // _MINUTE, 1)), "a phase in which one rank works alone for longer then ends the job")
        plan = plan._replace(title=f"set {_NAME} to {length_of(max(target // _MINUTE, 1) * _MINUTE)}")
        claims = (OUTSIDE_TESTS, Claim("deepspeed-reads-timeout"), Claim("timeout-may-be-lowered"))
        yield Draft(rules.by_symbol["excessive-collective-timeout"], setting, tuple(compared(shortest, limit).items()), (plan,), claims=claims)


def _seconds(value: Value) -> int | None:
    minutes = number(value)
    return None if minutes is None or minutes < 0 else minutes * _MINUTE
