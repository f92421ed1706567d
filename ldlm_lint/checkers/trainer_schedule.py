"""Reads off a call of TrainingArguments how many checkpoints its Trainer writes."""

from __future__ import annotations

from ldlm_lint.patterns import lazily
from ldlm_lint.python.calls import Argument, Arguments, State
from ldlm_lint.python.names import qualified
from ldlm_lint.rules.kept_checkpoints import Schedule

_DEFAULT = Schedule()
_MEMBER = lazily(r"^transformers\.(?:trainer_utils\.)?(?:IntervalStrategy|SaveStrategy)\.([A-Z]+)$")


def strategies_of(argument: Argument) -> tuple[object, ...]:
    """The values of ``save_strategy``; a member of transformers' enumerations is worth its name in small letters."""
    if argument.state is State.KNOWN or argument.node is None:
        return argument.values
    members = [_MEMBER.search(one) for one in qualified(argument.node)]
    return tuple(one[1].lower() for one in members if one) if all(members) else ()


def kept_by(arguments: Arguments) -> str:
    """What becomes of the checkpoints of a Trainer without a limit, in words; with their number where the call tells it."""
    strategies = strategies_of(arguments["save_strategy"])
    strategy = strategies[0] if len(strategies) == 1 else _only(arguments, "save_strategy", _DEFAULT.strategy)
    every, steps, epochs = (
        _number(_only(arguments, name, default))
        for name, default in (("save_steps", _DEFAULT.every), ("max_steps", -1), ("num_train_epochs", _DEFAULT.epochs))
    )
    if not isinstance(strategy, str) or every is None or steps is None:
        return "keeps every checkpoint it writes"
    schedule = Schedule(strategy, every, steps, epochs)
    return schedule.described if schedule.count else "keeps every checkpoint it writes"


def _only(arguments: Arguments, name: str, default: object) -> object:
    """The one value of an argument, the default where it is not passed, None where it is not known."""
    argument = arguments[name]
    if argument.absent:
        return default
    known = argument.state is State.KNOWN and len(set(map(repr, argument.values))) == 1
    return argument.values[0] if known else None


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None
