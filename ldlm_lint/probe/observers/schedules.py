"""Learning rates: when schedulers step, between which backward passes and optimizer steps."""

from __future__ import annotations

from typing import Any

from ldlm_lint.probe.patches import classes_with, scaler_classes, watch, watch_outermost
from ldlm_lint.probe.session import Observer, Session
from ldlm_lint.probe.sites import call_site
from ldlm_lint.probe.tallies import Tally

MOST_RATES = 200


def _fresh() -> dict[str, Any]:
    return {
        "class": "",
        "made": None,
        "optimizer": "",
        "calls": 0,
        "before_first_step": 0,
        "after_step": 0,
        "after_backward_alone": 0,
        "optimizer_steps": 0,
        "most_backwards_per_step": 0,
    }


class ScheduleObserver(Observer):
    """One record for each place that calls a scheduler's ``step()``, and the rates that optimizers stepped with.

    ``before_first_step`` counts calls before the scheduler's optimizer ever stepped, ``after_step`` those with a step
    since the scheduler's last call, ``after_backward_alone`` those with backward passes and no step since. A step
    requested from a gradient scaler counts, taken or skipped.
    """

    topic = "schedules"

    def __init__(self) -> None:
        self._places = Tally(_fresh)
        self._made: dict[int, dict[str, Any] | None] = {}
        # By identity of the optimizer: steps so far, backward passes since the last one, the most of these.
        self._steps: dict[int, int] = {}
        self._since = 0
        self._most: dict[int, int] = {}
        self._backwards = self._all_steps = 0
        # By identity of the scheduler: its optimizer's steps and the backward passes at its last call.
        self._last: dict[int, tuple[int, int, int]] = {}
        self._owners: dict[int, int] = {}
        self._rates: dict[int, list[float]] = {}
        self._making = self._scaled = 0

    def install(self, session: Session) -> None:
        module = session.torch.optim.lr_scheduler
        base = getattr(module, "LRScheduler", None) or module._LRScheduler
        classes = {*classes_with(module, base, "__init__"), *classes_with(module, module.ReduceLROnPlateau, "__init__")}
        steps = {*classes_with(module, base, "step"), *classes_with(module, module.ReduceLROnPlateau, "step")}
        for one in classes:
            session.patch(one, "__init__", self._making_wrapper(session), self.topic)

        def stepping(scheduler: Any, *_: Any, **__: Any) -> None:
            if not self._making:
                self._step(session, scheduler)

        watch_outermost(session, iter(steps), "step", self.topic, before=stepping)
        for scaler in scaler_classes(session.torch):
            watch(session, scaler, "step", self.topic, before=lambda _, optimizer, *__, **___: self._asked(optimizer))

    def _making_wrapper(self, session: Session) -> Any:
        def wrap(original: Any) -> Any:
            def make(scheduler: Any, *arguments: Any, **options: Any) -> None:
                # A scheduler steps once at construction.
                self._making += 1
                try:
                    original(scheduler, *arguments, **options)
                finally:
                    self._making -= 1
                if not self._making:
                    self._made[id(scheduler)] = session.guard(self.topic, call_site, session.root)

            return make

        return wrap

    def on_backward(self, session: Session) -> None:
        self._backwards += 1
        self._since += 1

    def _asked(self, optimizer: Any) -> None:
        """A scaler's ``step`` was called; the scaler decides whether it steps."""
        self._stepped(optimizer)
        self._scaled = id(optimizer)

    def before_step(self, session: Session, optimizer: Any) -> None:
        if self._scaled != id(optimizer):
            self._stepped(optimizer)
        self._scaled = 0
        rates = self._rates.setdefault(id(optimizer), [])
        rate = optimizer.param_groups[0].get("lr") if optimizer.param_groups else None
        # A rate that is a tensor is not read: on a device that would wait for it.
        if isinstance(rate, float) and len(rates) < MOST_RATES:
            rates.append(rate)

    def _stepped(self, optimizer: Any) -> None:
        identity = id(optimizer)
        self._steps[identity] = self._steps.get(identity, 0) + 1
        self._all_steps += 1
        self._most[identity] = max(self._most.get(identity, 0), self._since)
        # Passes before the step of another optimizer may belong to that one.
        self._since = 0

    def _step(self, session: Session, scheduler: Any) -> None:
        optimizer = getattr(scheduler, "optimizer", None) or getattr(scheduler, "_optimizer", None)
        place = self._places.at(call_site(session.root), scheduler=id(scheduler))
        place["class"] = type(scheduler).__name__
        place["made"] = self._made.get(id(scheduler))
        place["optimizer"] = type(optimizer).__name__
        self._owners[id(scheduler)] = id(optimizer)
        steps = self._steps.get(id(optimizer), 0)
        last_steps, last_backwards, last_of_all = self._last.get(id(scheduler), (0, 0, 0))
        place["calls"] += 1
        if not steps:
            place["before_first_step"] += 1
        elif steps > last_steps:
            place["after_step"] += 1
        if self._all_steps == last_of_all and self._backwards > last_backwards:
            place["after_backward_alone"] += 1
        self._last[id(scheduler)] = (steps, self._backwards, self._all_steps)

    def collect(self, session: Session) -> Any:
        for record in self._places.records:
            owner = self._owners.get(record["scheduler"], 0)
            record["optimizer_steps"] = self._steps.get(owner, 0)
            record["most_backwards_per_step"] = self._most.get(owner, 0)
            record["rates"] = self._rates.get(owner, [])
        records = [{key: value for key, value in one.items() if key != "scheduler"} for one in self._places.records]
        return records or None
