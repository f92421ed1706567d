"""The NCCL watchdog's settings: heartbeat timeout, monitoring and blocking wait.

They change each other's meaning: with blocking wait or without monitoring a wrong heartbeat timeout is inert, and
fixing one of them activates it. So their fixes are one unit per file, applied as a whole or not at all.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import NamedTuple

from ldlm_lint.model import Applicability, Claim, Edit, Finding, Fix, Option, Related, Rule, Span
from ldlm_lint.rules.environment import (
    EXCESSIVE_HEARTBEAT_TIMEOUT,
    INEFFECTIVE_HEARTBEAT_TIMEOUT,
    LARGEST_SAFE_HEARTBEAT,
    NCCL_BLOCKING_WAIT,
    NCCL_MONITORING_DISABLED,
    SHORTEST_SAFE_HEARTBEAT,
)
from ldlm_lint.rules.environment_view import View, assigned, is_false, is_true, members, number, rewrites
from ldlm_lint.rules.settings import Removal, Setting, Value
from ldlm_lint.untrusted_numbers import whole

HEARTBEAT = "TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC"
MONITORING = "TORCH_NCCL_ENABLE_MONITORING"
BLOCKING_WAIT = ("TORCH_NCCL_BLOCKING_WAIT", "NCCL_BLOCKING_WAIT")
NAMES = (HEARTBEAT, MONITORING, *BLOCKING_WAIT)

_REASON = "a heartbeat timeout that was never reached can now end a process; the watchdog settings work together, so they change together"
_NO_WATCHDOG = (2, 6)


def heartbeat_limit(view: View) -> int:
    """The longest heartbeat timeout that is not reported, in seconds."""
    return _seconds_option(view.options, EXCESSIVE_HEARTBEAT_TIMEOUT.options[0])


def is_excessive(setting: Setting, view: View) -> bool:
    """Whether a setting is a heartbeat timeout above the limit."""
    limit = heartbeat_limit(view)
    return setting.name == HEARTBEAT and bool(members(setting, lambda one: (number(one) or 0) > limit))


def has_wrong_heartbeat(view: View) -> bool:
    """Whether the file sets a heartbeat timeout that is unknown, too short or overflows."""
    return any(map(is_wrong_heartbeat, view.settings))


def is_wrong_heartbeat(setting: Setting) -> bool:
    """Whether a setting is a heartbeat timeout that is unknown, too short or overflows."""
    return setting.name == HEARTBEAT and not (setting.values and all(is_harmless(one.text) for one in setting.values))


def is_blocking(setting: Setting) -> bool:
    """Whether a setting switches blocking wait on, under either name."""
    return setting.name in BLOCKING_WAIT and bool(members(setting, is_true))


def is_harmless(text: str) -> bool:
    """Whether a heartbeat timeout of a file can come into force: a plain number, not too short, that does not overflow."""
    return text.isascii() and text.isdigit() and SHORTEST_SAFE_HEARTBEAT <= whole(text) <= LARGEST_SAFE_HEARTBEAT


class Block(NamedTuple):
    """The three settings that depend on each other, as set by one file."""

    view: View
    heartbeats: tuple[Setting, ...]
    excessive: tuple[Setting, ...]
    monitoring: tuple[Setting, ...]
    blocking: tuple[Setting, ...]
    limit: int
    timeout: int

    @classmethod
    def of(cls, view: View) -> Block:
        """Sort out the settings of the block; unknown values are not reported."""
        limit, timeout = (_seconds_option(view.options, option) for option in EXCESSIVE_HEARTBEAT_TIMEOUT.options)
        heartbeats = tuple(one for one in view.settings if one.name == HEARTBEAT)
        return cls(
            view,
            heartbeats,
            tuple(one for one in heartbeats if is_excessive(one, view)),
            tuple(one for one in view.settings if one.name == MONITORING and members(one, is_false)),
            tuple(one for one in view.settings if is_blocking(one)),
            limit,
            timeout,
        )

    def findings(self, removals: Mapping[Setting, Removal]) -> Iterator[Finding]:
        """One finding for every setting that is wrong, with its part of the common fix."""
        for setting in self.excessive:
            yield self._heartbeat(setting)
        for setting in self.monitoring:
            yield _arming(_found(NCCL_MONITORING_DISABLED, setting, _first(setting, is_false), fix=self._watched(setting)))
        for setting in self.blocking:
            fix = self._unblocked(setting, removals.get(setting))
            yield _arming(_found(NCCL_BLOCKING_WAIT, setting, _first(setting, is_true), fix=fix))
        yield from map(_arming, self._inert(removals))

    def _inert(self, removals: Mapping[Setting, Removal]) -> Iterator[Finding]:
        """The heartbeat timeouts that another setting makes ineffective."""
        for setting in self.heartbeats:
            if setting in self.excessive or not setting.values:
                continue
            watching = next((one for one in self.monitoring if _together(setting, one)), None)
            waiting = None if self.view.older_than(_NO_WATCHDOG) else next((one for one in self.blocking if _together(setting, one)), None)
            if (cause := watching or waiting) is not None:
                fix = self._watched(cause) if watching else self._unblocked(cause, removals.get(cause))
                # Hiding this finding must not remove the fix of the others: it has no edits of its own.
                own = fix._replace(whole=False) if fix else None
                related = (Related(cause.span, "this disables the heartbeat timeout"),)
                args = (("cause", _said(cause)),)
                found = _found(INEFFECTIVE_HEARTBEAT_TIMEOUT, setting, setting.values[0], args, own)
                yield found._replace(related=related)

    def _watched(self, setting: Setting) -> Fix | None:
        edits = None if self._armed else rewrites(setting, members(setting, is_false), "1")
        return self._fix(setting, f"set {MONITORING} to 1", edits)

    def _unblocked(self, setting: Setting, removal: Removal | None) -> Fix | None:
        title, edits = f"remove {setting.name}", removal.edits if removal and removal.complete else None
        if edits is None:
            title, edits = f"set {setting.name} to 0", rewrites(setting, members(setting, is_true), "0")
        return None if self._armed else self._fix(setting, title, edits)

    @property
    def _armed(self) -> bool:
        """Whether a heartbeat that is unknown, too short or overflows stays in the file even if the whole block is fixed."""
        return any(self._stays_dangerous(setting) for setting in self.heartbeats)

    def _stays_dangerous(self, setting: Setting) -> bool:
        values = setting.values or ()
        edits = self._heartbeat_edits(setting) if setting in self.excessive else ()
        stay = [one for one in values if (number(one) or 0) <= self.limit]
        return edits is None or not values or not all(is_harmless(one.text) for one in stay)

    def _heartbeat_edits(self, setting: Setting) -> tuple[Edit, ...] | None:
        # A replacement above the limit would be found, and replaced, again.
        if self.timeout > min(self.limit, LARGEST_SAFE_HEARTBEAT):
            return None
        too_long = members(setting, lambda value: (number(value) or 0) > self.limit)
        return rewrites(setting, too_long, str(self.timeout))

    def _heartbeat(self, setting: Setting) -> Finding:
        value = _first(setting, lambda one: (number(one) or 0) > self.limit)
        length = number(value) or 0
        fix = self._fix(setting, f"set {HEARTBEAT} to {self.timeout}", self._heartbeat_edits(setting))
        more = (("duration", _duration(length)), ("limit", self.limit), ("overflow", _overflow(length)))
        return _found(EXCESSIVE_HEARTBEAT_TIMEOUT, setting, value, more, fix)

    def _fix(self, setting: Setting, title: str, edits: tuple[Edit, ...] | None) -> Fix | None:
        if edits is None:
            return None
        group = f"nccl-block:{setting.span.path}:{setting.span.cell}"
        return Fix(title, edits, Applicability.UNSAFE, _REASON, group, whole=True)


def _arming(finding: Finding) -> Finding:
    """A finding whose fix activates the heartbeat, with a claim about other files."""
    if finding.fix is None:
        return finding
    return finding._replace(claims=(*finding.claims, Claim("no-heartbeat-elsewhere-is-wrong")))


def candidates(settings: Iterable[Setting], found: Collection[Span], options: Mapping[str, object]) -> Iterator[Finding]:
    """The heartbeat timeouts that are effective in their own file; a script that shares the shell may disable them.

    ``found`` are the settings that a finding mentions already. The claim's subject are the names that may be the cause.
    """
    names = (MONITORING,) if View((), options).older_than(_NO_WATCHDOG) else (MONITORING, *BLOCKING_WAIT)
    for setting in settings:
        if setting.name == HEARTBEAT and setting.values and setting.span not in found:
            claims = (Claim("heartbeat-is-inert-beside", " ".join(names)),)
            yield _found(INEFFECTIVE_HEARTBEAT_TIMEOUT, setting, setting.values[0], (("cause", ""),))._replace(claims=claims)


def inert_beside(settings: Iterable[Setting], names: Collection[str]) -> tuple[Setting, str] | None:
    """The setting of these names, in another script, that makes a heartbeat timeout ineffective, and its effect."""
    for setting in (one for one in settings if one.name in names):
        monitoring = setting.name == MONITORING and members(setting, is_false)
        if (monitoring or is_blocking(setting)) and not setting.place.conditional:
            return setting, _said(setting)
    return None


def _together(one: Setting, other: Setting) -> bool:
    return one.place.shared_with(other.place)


def _said(cause: Setting) -> str:
    """A setting and its effect on the heartbeat."""
    (value,) = members(cause, is_false if cause.name == MONITORING else is_true)[:1]
    effect = "the monitor thread ends no process" if cause.name == MONITORING else "torch 2.6 and later start no watchdog"
    return f"with {assigned(cause.name, value.text)} {effect}"


def _seconds_option(options: Mapping[str, object], option: Option) -> int:
    value = options.get(option.name, option.default)
    if not isinstance(value, int):
        raise TypeError(f"option {option.name} must be an integer, not {value!r}")
    return value


def _duration(length: int) -> str:
    size, unit = (86400, "days") if length >= 2 * 86400 else (3600, "hours")
    return f"{length / size:.1f}".removesuffix(".0") + f" {unit}"


def _overflow(length: int) -> str:
    if length <= LARGEST_SAFE_HEARTBEAT:
        return ""
    return " (in torch 2.4 to 2.9 it overflows 32-bit milliseconds)"


def _first(setting: Setting, wanted: Callable[[Value], bool]) -> Value:
    return members(setting, wanted)[0]


def _found(
    rule: Rule,
    setting: Setting,
    value: Value,
    more: tuple[tuple[str, object], ...] = (),
    fix: Fix | None = None,
) -> Finding:
    args = (("name", setting.name), ("setting", assigned(setting.name, value.text)), ("value", value.text), *more)
    return Finding(rule.symbol, rule.code, setting.span, args, setting.confidence, fix=fix)
