"""The effective timeout of each process group, and the environment when the first one was created."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from ldlm_lint.evidence.amounts import duration
from ldlm_lint.evidence.model import Judgement, Measurement, Site, Verdict
from ldlm_lint.evidence.verdicts.by_place import Record, by_site, counted, distinct, ranks_of
from ldlm_lint.evidence.watched import WatchedRun

# The defaults of the rules' options collective-limit, collective-minimum and heartbeat-limit, in seconds.
_LONGEST = 7200
_SHORTEST = 30
_LONGEST_HEARTBEAT = 7200


def judge(run: WatchedRun) -> Iterable[Judgement]:
    """Judge the rules about timeouts of groups, and those about NCCL's variables."""
    groups = [(evidence, group) for evidence, record in run.of("process_groups") for group in record["groups"]]
    default = next((one for _, group in groups if group["default"] for one in _given(group)), None)
    for site, members in by_site(groups):
        timeouts = [one for _, group in members for one in _timeouts(group)]
        seconds = {one["seconds"] for one in timeouts}
        if len(seconds) != 1:
            continue
        first = timeouts[0]
        words = f"{duration(first['seconds'])} ({first['backend']}, on {counted(len(ranks_of(members)), 'rank')})"
        figure = Measurement("timeout", first["seconds"], "s", n=len(timeouts), detail={"backend": first["backend"]})
        if first["seconds"] != first["default"]:
            yield from _bounds(run, site, first["seconds"], words, figure)
        if not any(group["default"] for _, group in members):
            yield from _inherited(run, site, first, default, words, figure)
    yield from _environment(run)


def _bounds(run: WatchedRun, site: Site, seconds: float, words: str, figure: Measurement) -> Iterator[Judgement]:
    checks = (
        (
            "excessive-collective-timeout",
            f"a collective may hang for more than {duration(_LONGEST)}",
            seconds > _LONGEST,
        ),
        ("invalid-collective-timeout", f"the timeout is below {duration(_SHORTEST)}", seconds < _SHORTEST),
    )
    for rule, claim, holds in checks:
        verdict = Verdict.VERIFIED if holds else Verdict.REFUTED
        reason = f"the group created here has a timeout of {words}"
        yield Judgement(rule, claim, verdict, reason, run.scope(), (site,), figure)


def _inherited(
    run: WatchedRun, site: Site, own: Record, default: Record | None, words: str, figure: Measurement
) -> Iterator[Judgement]:
    if default is None:
        return
    claim = f"this sub-group does not inherit the default group's timeout of {duration(default['seconds'])}"
    if own["seconds"] == default["seconds"]:
        verdict = Verdict.REFUTED
    elif own["seconds"] == own["default"]:
        verdict = Verdict.VERIFIED
    else:
        return
    reason = f"it has {words}, the default group {duration(default['seconds'])}"
    yield Judgement("subgroup-timeout-not-inherited", claim, verdict, reason, run.scope(), (site,), figure)


def _timeouts(group: Record) -> list[Record]:
    return list((group.get("timeouts") or group["timeouts_at_construction"]).values())


def _given(group: Record) -> list[Record]:
    """The timeouts of a group that are not its backend's default."""
    return [one for one in _timeouts(group) if one["seconds"] != one["default"]]


def _on(value: str) -> bool:
    return value.strip().lower() in ("1", "true", "yes", "y", "t", "on")


def _off(value: str) -> bool:
    return value.strip().lower() in ("0", "false", "no", "n", "f", "off")


def _too_long(value: str) -> bool:
    return value.strip().isdecimal() and int(value) > _LONGEST_HEARTBEAT


# Rule, its variables, and the test for a reported value. All are NCCL variables.
_VARIABLES: tuple[tuple[str, tuple[str, ...], Callable[[str], bool]], ...] = (
    ("nccl-blocking-wait", ("TORCH_NCCL_BLOCKING_WAIT", "NCCL_BLOCKING_WAIT"), _on),
    ("nccl-monitoring-disabled", ("TORCH_NCCL_ENABLE_MONITORING",), _off),
    ("nccl-error-handling-disabled", ("TORCH_NCCL_ASYNC_ERROR_HANDLING", "NCCL_ASYNC_ERROR_HANDLING"), _off),
    ("excessive-heartbeat-timeout", ("TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC",), _too_long),
    ("nccl-transport-disabled", ("NCCL_P2P_DISABLE", "NCCL_IB_DISABLE", "NCCL_SHM_DISABLE"), _on),
    ("debug-environment-left-on", ("NCCL_DEBUG",), lambda value: value.strip().upper() in ("INFO", "TRACE")),
)


def _environment(run: WatchedRun) -> Iterator[Judgement]:
    """Variables are read when a group is created; a run without NCCL does not show their effect on NCCL."""
    seen = list(run.of("process_groups"))
    backends = {one["backend"] for _, record in seen for group in record["groups"] for one in _timeouts(group)}
    sites = distinct(group["site"] for _, record in seen for group in record["groups"] if group["default"])
    for rule, names, is_bad in _VARIABLES:
        held = {
            name: value
            for _, record in seen
            for name, value in record["environment"].items()
            if name in names and is_bad(value)
        }
        if not held:
            continue
        shown = ", ".join(f"{name}={value}" for name, value in sorted(held.items()))
        nccl = "nccl" in backends
        reason = f"{shown} was set in the environment when the process group was created"
        verdict = Verdict.VERIFIED if nccl else Verdict.INCONCLUSIVE
        reason += (
            "" if nccl else f", but its backend is {', '.join(sorted(backends)) or 'unknown'}, which does not read it"
        )
        yield Judgement(
            rule, f"{shown} has an effect", verdict, f"{reason} {run.scope().words}", run.scope(), sites, _as_figure(held)
        )


def _as_figure(held: dict[str, Any]) -> Measurement:
    return Measurement("variables set", float(len(held)), "variables", n=1, detail=dict(held))
