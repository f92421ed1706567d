"""Decisions of family 72's environment rules: pure functions over the settings of one file.

The rules about the NCCL watchdog change each other's meaning: with blocking wait or without monitoring a wrong
heartbeat timeout is inert, and putting one of them right arms it. So their fixes are one unit per file, applied as
a whole or not at all.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from ldlm_lint.model import (
    Applicability,
    Claim,
    Confidence,
    Edit,
    Finding,
    Fix,
    Option,
    Rule,
)
from ldlm_lint.rules import environment_names
from ldlm_lint.rules.environment import (
    EXCESSIVE_HEARTBEAT_TIMEOUT,
    INEFFECTIVE_ENVIRONMENT_VARIABLE,
    NCCL_BLOCKING_WAIT,
    NCCL_MONITORING_DISABLED,
)
from ldlm_lint.rules.settings import Editor, Removal, Setting, Value

HEARTBEAT = "TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC"
MONITORING = "TORCH_NCCL_ENABLE_MONITORING"
BLOCKING_WAIT = ("TORCH_NCCL_BLOCKING_WAIT", "NCCL_BLOCKING_WAIT")
LARGEST_SAFE_HEARTBEAT = (2**31 - 1) // 1000

_TRUE = frozenset({"y", "yes", "1", "t", "true"})
_FALSE = frozenset({"n", "no", "0", "f", "false"})
_INTEGER = re.compile(r"\s*([+-]?\d+)")
_REASON = "the NCCL watchdog, its monitor and the heartbeat come into force together"


def is_relevant(name: str) -> bool:
    """Whether any decision is about a variable of this name."""
    return name in (HEARTBEAT, MONITORING, *BLOCKING_WAIT) or environment_names.why_ineffective(name) is not None


def decide(
    settings: Sequence[Setting], options: Mapping[str, object], editor: Editor | None = None
) -> Iterator[Finding]:
    """The findings about the variables that one file sets.

    ``options`` hold ``heartbeat-limit`` and ``heartbeat-timeout`` (seconds); an ``editor`` plans removals, without
    one a fix can only replace values.
    """
    block = _Block.of(settings, options)
    useless = [(setting, why) for setting in settings if (why := _why_useless(setting))]
    groups = {setting: "block" for setting in block.blocking if not setting.expanded}
    groups |= {
        setting: f"{setting.name}:{setting.span.start}"
        for setting, _ in useless
        if environment_names.misspelling_of(setting.name) is None
    }
    removals = editor.removals(groups) if editor is not None else {}
    yield from block.findings(removals)
    for setting, why in useless:
        yield _useless(setting, why, removals.get(setting))


def seconds(value: Value) -> int | None:
    """The number that torch reads from a value: the leading integer (``std::stoi``), None where there is none."""
    match = _INTEGER.match(value.text)
    return int(match[1]) if match else None


@dataclass(frozen=True, slots=True)
class _Block:
    """The three settings that depend on each other, as far as one file sets them."""

    heartbeats: tuple[Setting, ...]
    excessive: tuple[Setting, ...]
    monitoring: tuple[Setting, ...]
    blocking: tuple[Setting, ...]
    limit: int
    timeout: int

    @classmethod
    def of(cls, settings: Sequence[Setting], options: Mapping[str, object]) -> _Block:
        """Sort out the settings of the block; unknown values are nobody's finding."""
        limit, timeout = (_seconds_option(options, option) for option in EXCESSIVE_HEARTBEAT_TIMEOUT.options)
        heartbeats = tuple(setting for setting in settings if setting.name == HEARTBEAT)
        return cls(
            heartbeats,
            tuple(setting for setting in heartbeats if _members(setting, lambda one: (seconds(one) or 0) > limit)),
            tuple(one for one in settings if one.name == MONITORING and _members(one, _is_false)),
            tuple(one for one in settings if one.name in BLOCKING_WAIT and _members(one, _is_true)),
            limit,
            timeout,
        )

    def findings(self, removals: Mapping[Setting, Removal]) -> Iterator[Finding]:
        """One finding for every setting that is wrong, with its part of the common fix."""
        armed = self._leaves_dangerous_heartbeat()
        for setting in self.excessive:
            yield self._heartbeat(setting)
        for setting in self.monitoring:
            title = f"set {MONITORING} to 1"
            edits = None if armed else _rewrites(setting, _members(setting, _is_false), "1")
            yield _found(
                NCCL_MONITORING_DISABLED, setting, _first(setting, _is_false), fix=self._fix(setting, title, edits)
            )
        for setting in self.blocking:
            removal = removals.get(setting)
            title, edits = f"remove {setting.name}", removal.edits if removal and removal.complete else None
            if edits is None:
                title, edits = f"set {setting.name} to 0", _rewrites(setting, _members(setting, _is_true), "0")
            fix = None if armed else self._fix(setting, title, edits)
            yield _found(NCCL_BLOCKING_WAIT, setting, _first(setting, _is_true), fix=fix)

    def _leaves_dangerous_heartbeat(self) -> bool:
        """Whether a heartbeat that is unknown or overflows stays in the file even if the whole block is fixed."""
        return any(self._stays_dangerous(setting) for setting in self.heartbeats)

    def _stays_dangerous(self, setting: Setting) -> bool:
        if setting.values is None or any(seconds(value) is None for value in setting.values):
            return True
        if setting in self.excessive:
            return self._heartbeat_edits(setting) is None
        return any((seconds(value) or 0) > LARGEST_SAFE_HEARTBEAT for value in setting.values)

    def _heartbeat_edits(self, setting: Setting) -> tuple[Edit, ...] | None:
        # A replacement above the limit would be found, and replaced, again.
        if self.timeout > min(self.limit, LARGEST_SAFE_HEARTBEAT):
            return None
        too_long = _members(setting, lambda value: (seconds(value) or 0) > self.limit)
        return _rewrites(setting, too_long, str(self.timeout))

    def _heartbeat(self, setting: Setting) -> Finding:
        value = _first(setting, lambda one: (seconds(one) or 0) > self.limit)
        number = seconds(value) or 0
        fix = self._fix(setting, f"set {HEARTBEAT} to {self.timeout}", self._heartbeat_edits(setting))
        more = (("duration", _duration(number)), ("limit", self.limit), ("overflow", _overflow(number)))
        return _found(EXCESSIVE_HEARTBEAT_TIMEOUT, setting, value, more, fix)

    def _fix(self, setting: Setting, title: str, edits: tuple[Edit, ...] | None) -> Fix | None:
        if edits is None:
            return None
        group = f"nccl-block:{setting.span.path}:{setting.span.cell}"
        return Fix(title, edits, Applicability.UNSAFE, _REASON, group, whole=True)


def _seconds_option(options: Mapping[str, object], option: Option) -> int:
    value = options.get(option.name, option.default)
    if not isinstance(value, int):
        raise TypeError(f"option {option.name} must be an integer, not {value!r}")
    return value


def _is_true(value: Value) -> bool:
    return value.text.lower() in _TRUE


def _is_false(value: Value) -> bool:
    return value.text.lower() in _FALSE


def _duration(number: int) -> str:
    return f"{number / 86400:.1f} days" if number >= 86400 else f"{number / 3600:.1f} hours"


def _overflow(number: int) -> str:
    if number <= LARGEST_SAFE_HEARTBEAT:
        return ""
    return "; shipped torch counts it in milliseconds of 32 bits, and it overflows them"


def _members(setting: Setting, wanted: Callable[[Value], bool]) -> tuple[Value, ...]:
    return tuple(value for value in setting.values or () if wanted(value))


def _first(setting: Setting, wanted: Callable[[Value], bool]) -> Value:
    return _members(setting, wanted)[0]


def _rewrites(setting: Setting, values: tuple[Value, ...], text: str) -> tuple[Edit, ...] | None:
    """The edits that make the given values of a setting ``text``, None if one of them cannot be edited."""
    edits = tuple(edit for value in values if (edit := value.rewritten(text)) is not None)
    return edits if len(edits) == len(values) else None


def _found(
    rule: Rule,
    setting: Setting,
    value: Value,
    more: tuple[tuple[str, object], ...] = (),
    fix: Fix | None = None,
) -> Finding:
    args = (("name", setting.name), ("value", value.text), *more)
    return Finding(rule.symbol, rule.code, setting.span, args, setting.confidence, fix=fix)


def _why_useless(setting: Setting) -> str | None:
    return None if setting.used else environment_names.why_ineffective(setting.name)


def _useless(setting: Setting, why: str, removal: Removal | None) -> Finding:
    misspelt = environment_names.misspelling_of(setting.name) is not None
    return Finding(
        INEFFECTIVE_ENVIRONMENT_VARIABLE.symbol,
        INEFFECTIVE_ENVIRONMENT_VARIABLE.code,
        setting.span,
        (("name", setting.name), ("why", why)),
        Confidence.MEDIUM if misspelt else Confidence.HIGH,
        fix=None if removal is None else _removing(setting, removal),
        claims=(Claim("environment-variable-unread", setting.name),),
    )


def _removing(setting: Setting, removal: Removal) -> Fix:
    reason = "the file mentions the name in other places too" if setting.expanded else removal.reason
    title = f"remove {setting.name}"
    return Fix(title, removal.edits, Applicability.UNSAFE if reason else Applicability.SAFE, reason)
