"""Finds schedulers of the learning rate that step at the wrong time; the project may know their optimizers."""

from __future__ import annotations

from astroid import nodes

from ldlm_lint.checkers.base import LdlmChecker
from ldlm_lint.checkers.schedule_fixes import move_into
from ldlm_lint.checkers.step_events import Event, Kind, events_of
from ldlm_lint.checkers.step_names import Schedule, schedule_of
from ldlm_lint.checkers.step_order import Frequent, frequent_schedules
from ldlm_lint.checkers.step_roots import roots_of
from ldlm_lint.model import Claim, Confidence
from ldlm_lint.python.slots import slots_of
from ldlm_lint.rules.schedule import RULES, SCHEDULER_PER_MICRO_BATCH
from ldlm_lint.wording import quoted

_SCHEDULES = frozenset({Kind.SCHEDULE})
_TRAINING = Claim("stands-outside-tests")


class ScheduleChecker(LdlmChecker):
    """When the learning rate changes."""

    rules = RULES

    def visit_module(self, node: nodes.Module) -> None:
        """Check every function with steps, its own before those of its helpers."""
        data = self.source.data
        if not any(trigger in data for rule in RULES for trigger in rule.triggers):
            return
        found: dict[nodes.Call, Frequent] = {}
        for root in roots_of(node, _SCHEDULES):
            events = events_of(root)
            for one in frequent_schedules(events) if any(event.kind in _SCHEDULES for event in events) else ():
                known = found.get(one.schedule.node)
                if known is None or (known.schedule.node is not known.schedule.site and one.schedule.node is one.schedule.site):
                    found[one.schedule.node] = one
        for one in found.values():
            self._report_frequent(one)

    def _report_frequent(self, found: Frequent) -> None:
        site, step = found.schedule.site, found.micro.step.site
        title = "step the scheduler with the optimizer"
        self.report(
            SCHEDULER_PER_MICRO_BATCH,
            site,
            args={"scheduler": found.schedule.subject, "count": quoted(found.micro.count.as_string())},
            confidence=_confidence(found.schedule),
            related=[(step, "the optimizer steps here, once for all micro-batches")],
            claims=(_TRAINING, *_claims(found.schedule)),
            fix=lambda source: move_into(source, site, step, title),
        )


def _confidence(schedule: Event) -> Confidence:
    owner = getattr(schedule.node.func, "expr", None)
    known = schedule.kind is Kind.SCHEDULE and owner is not None and schedule_of(owner) is Schedule.TORCH
    return Confidence.HIGH if known else Confidence.MEDIUM


def _claims(schedule: Event) -> tuple[Claim, ...]:
    """The claims about a scheduler that the file only names."""
    if _confidence(schedule) is Confidence.HIGH:
        return ()
    slots = ";".join(f"{one.kind}:{one.scope}:{one.name}" for one in slots_of(schedule.node.func.expr))
    return (Claim("schedules-learning-rate", slots),)
