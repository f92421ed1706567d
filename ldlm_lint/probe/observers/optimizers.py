"""Optimizers: where they are created, which implementation their groups request, and which kernels their steps ran."""

from __future__ import annotations

import bisect
import re
from collections import Counter
from collections.abc import Callable
from typing import Any

from ldlm_lint.probe.patches import classes_with, watch, watch_outermost
from ldlm_lint.probe.session import Observer, Phase, Session
from ldlm_lint.probe.sites import call_site, foreign_site
from ldlm_lint.probe.traces import LONGEST_NAME, Event, events

FLAGS = ("fused", "foreach", "capturable", "differentiable")
MOST_OPTIMIZERS = 100
MOST_KERNELS = 60
_TELLING = re.compile(r"fused|foreach|multi_tensor|compile|triton", re.IGNORECASE)
_STEP = re.compile(r"^Optimizer\.step#(.+)\.step$")


class OptimizerObserver(Observer):
    """Records of optimizers in the order they were made; a failed construction has an ``error``."""

    topic = "optimizers"

    def __init__(self) -> None:
        self._records: list[dict[str, Any]] = []
        # Optimizers are identified by id without keeping them alive; the id of a deleted one may be reused.
        self._by_identity: dict[int, dict[str, Any]] = {}
        self._profiled: list[tuple[str, dict[str, Any]]] = []

    def install(self, session: Session) -> None:
        optim = session.torch.optim
        base = optim.Optimizer

        def made(optimizer: Any, *_: Any, **options: Any) -> None:
            self._made(session, optimizer, options)

        def failed(error: Exception, optimizer: Any, *_: Any, **options: Any) -> None:
            self._failed(session, error, optimizer, options)

        watch_outermost(
            session, classes_with(optim, base, "__init__"), "__init__", self.topic, before=made, failed=failed
        )
        watch(session, base, "load_state_dict", self.topic, before=self._loading, after=self._loaded(session))

    def _made(self, session: Session, optimizer: Any, options: dict[str, Any]) -> None:
        if len(self._records) < MOST_OPTIMIZERS:
            record = _record(optimizer, call_site(session.root))
            record["made_by"] = foreign_site()
            record["asked"] = {flag: bool(options[flag]) for flag in FLAGS if options.get(flag) is not None}
            self._records.append(record)
            self._by_identity[id(optimizer)] = record

    def _failed(self, session: Session, error: Exception, optimizer: Any, options: dict[str, Any]) -> None:
        record = self._by_identity.pop(id(optimizer), None)
        if record is not None:
            record["error"] = f"{type(error).__name__}: {error}"[:400]

    def _loading(self, optimizer: Any, *_: Any, **__: Any) -> None:
        record = self._of(optimizer)
        record["loads"].append({"before": _groups(optimizer), "after": [], "entries": 0})

    def _loaded(self, session: Session) -> Callable[..., None]:
        def loaded(_: Any, optimizer: Any, *__: Any, **___: Any) -> None:
            record = self._of(optimizer)
            record["loads"][-1]["after"] = _groups(optimizer)
            record["loads"][-1]["entries"] = len(optimizer.state)
            record["loads"][-1]["site"] = call_site(session.root)

        return loaded

    def _of(self, optimizer: Any) -> dict[str, Any]:
        record = self._by_identity.get(id(optimizer))
        if record is None:
            record = self._by_identity[id(optimizer)] = _record(optimizer, None)
            self._records.append(record)
        return record

    def before_step(self, session: Session, optimizer: Any) -> None:
        record = self._of(optimizer)
        if not record["steps"]:
            record["step_site"] = call_site(session.root)
            record.update(_parameters(optimizer))
        record["steps"] += 1
        if session.phase is Phase.PROFILE:
            record["groups"] = _groups(optimizer)
            self._profiled.append((type(optimizer).__name__, record))
        elif record["steps"] <= 2:
            record["groups"] = _groups(optimizer)

    def profiled(self, session: Session, profile: Any) -> None:
        found = events(profile)
        launched: dict[int, list[str]] = {}
        for one in found:
            if not one.on_host and one.launched_by:
                launched.setdefault(one.launched_by, []).append(one.name)
        waiting = list(self._profiled)
        for name, inside in _step_ranges([one for one in found if one.on_host]):
            mine = next((one for one in waiting if one[0] == name), None)
            if mine is not None:
                waiting.remove(mine)
                mine[1]["kernels"] = _kernels(inside, launched)

    def collect(self, session: Session) -> Any:
        return self._records or None


def _record(optimizer: Any, site: dict[str, Any] | None) -> dict[str, Any]:
    return {
        "class": type(optimizer).__name__,
        "module": type(optimizer).__module__,
        "site": site,
        "made_by": "",
        "asked": {},
        "error": "",
        "steps": 0,
        "groups": [],
        "loads": [],
        "kernels": None,
        "step_site": None,
    }


def _groups(optimizer: Any) -> list[dict[str, Any]]:
    """The flags of the groups, those with the same flags together."""
    counts = Counter(
        tuple(None if group.get(flag) is None else bool(group[flag]) for flag in FLAGS)
        for group in getattr(optimizer, "param_groups", ())
    )
    return [{**dict(zip(FLAGS, flags, strict=True)), "groups": count} for flags, count in counts.items()]


def _parameters(optimizer: Any) -> dict[str, Any]:
    """The kinds of parameters in all groups; reads no value."""
    parameters = [one for group in optimizer.param_groups for one in group["params"]]
    return {
        "tensors": len(parameters),
        "elements": sum(one.numel() for one in parameters),
        "devices": sorted({one.device.type for one in parameters}),
        "dtypes": sorted({str(one.dtype).removeprefix("torch.") for one in parameters}),
        "types": sorted({type(one).__name__ for one in parameters}),
    }


def _step_ranges(found: list[Event]) -> list[tuple[str, list[Event]]]:
    """The class name of each optimizer step and the events inside it, in the order of time."""
    starts = [one.start for one in found]
    ranges = []
    for event in found:
        match = _STEP.match(event.name)
        if match:
            first, last = bisect.bisect_left(starts, event.start), bisect.bisect_right(starts, event.end)
            inside = [one for one in found[first:last] if one is not event and one.thread == event.thread]
            ranges.append((match.group(1), inside))
    return ranges


def _kernels(inside: list[Event], launched: dict[int, list[str]]) -> dict[str, int]:
    """Names of operators, and of the device kernels they launched, with their counts; the distinctive ones come
    first.
    """
    counts: Counter[str] = Counter()
    for event in inside:
        counts[event.name[:LONGEST_NAME]] += 1
        counts.update(name[:LONGEST_NAME] for name in launched.get(event.identity, ()))
    names = sorted(counts, key=lambda name: (_TELLING.search(name) is None, -counts[name], name))
    return {name: counts[name] for name in names[:MOST_KERNELS]}
