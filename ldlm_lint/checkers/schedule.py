"""Finds schedulers of the learning rate that step at the wrong time; the project may know their optimizers."""

from __future__ import annotations

from astroid import nodes

from ldlm_lint.checkers.base import LdlmChecker
from ldlm_lint.checkers.schedule_fixes import move_behind, move_into
from ldlm_lint.checkers.step_events import Event, Kind, events_of
from ldlm_lint.checkers.step_names import Schedule, schedule_of
from ldlm_lint.checkers.step_order import Early, Frequent, early_schedules, frequent_schedules
from ldlm_lint.checkers.step_roots import roots_of
from ldlm_lint.model import Claim, Confidence
from ldlm_lint.python.places import position_of, scope_name
from ldlm_lint.python.slots import slots_of
from ldlm_lint.rules.schedule import RULES, SCHEDULER_BEFORE_OPTIMIZER, SCHEDULER_PER_MICRO_BATCH
from ldlm_lint.wording import quoted

_SCHEDULES = frozenset({Kind.SCHEDULE, Kind.MAY_SCHEDULE})
_TRAINING = Claim("stands-outside-tests")


class ScheduleChecker(LdlmChecker):
    """When the learning rate changes."""

    rules = RULES

    def visit_module(self, node: nodes.Module) -> None:
        """Check every function with steps, its own before those of its helpers."""
        data = self.source.data
        if not any(trigger in data for rule in RULES for trigger in rule.triggers):
            return
        found: dict[tuple[type, nodes.Call], tuple[nodes.NodeNG, Early | Frequent]] = {}
        for root in roots_of(node, _SCHEDULES):
            for one in _misplaced(root):
                key = (one.__class__, one.schedule.node)
                known = found.get(key)
                if known is None or _rank(one) < _rank(known[1]):
                    found[key] = (root, one)
        often = {schedule for kind, schedule in found if kind is Frequent}
        for root, one in found.values():
            if isinstance(one, Frequent):
                self._report_frequent(one)
            else:
                self._report_early(root, one, is_mended=one.schedule.node in often)

    def _report_frequent(self, found: Frequent) -> None:
        site, step = found.schedule.site, found.micro.step.site
        title = "step the scheduler with the optimizer"
        self.report(
            SCHEDULER_PER_MICRO_BATCH,
            site,
            args={"scheduler": found.schedule.subject, "count": quoted(found.micro.count.as_string())},
            confidence=_confidence(found.schedule),
            related=[(step, "the optimizer steps here, once for all micro-batches")],
            claims=(_TRAINING, *_claims(found.schedule, prepared=False)),
            fix=lambda source: move_into(source, site, step, title),
        )

    def _report_early(self, root: nodes.NodeNG, found: Early, *, is_mended: bool) -> None:
        """``is_mended``: it also steps too often, and that fix moves it after the optimizer."""
        site, step = found.schedule.site, found.step.site
        claims = [_TRAINING, *_claims(found.schedule, prepared=True)]
        if found.repeated:
            claims.append(Claim("is-called-in-a-loop", scope_name(root)))
        if found.step.kind is Kind.MAYBE:
            claims.append(Claim("call-steps-optimizer", position_of(found.step.node)))
        if found.schedule.kind is Kind.MAY_SCHEDULE:
            claims.append(Claim("call-steps-schedule", position_of(found.schedule.node)))
        title = "step the scheduler after the optimizer"
        self.report(
            SCHEDULER_BEFORE_OPTIMIZER,
            site,
            args={"scheduler": _shown(found.schedule), "optimizer": _shown(found.step)},
            confidence=_confidence(found.schedule),
            related=[(found.step.node, "the optimizer steps here")],
            claims=tuple(claims),
            fix=None if is_mended else lambda source: move_behind(source, site, step, title),
        )


def _misplaced(root: nodes.NodeNG) -> list[Early | Frequent]:
    events = events_of(root)
    if not any(one.kind in _SCHEDULES for one in events):
        return []
    frequent = list(frequent_schedules(events))
    return [*frequent, *early_schedules(root, events)]


def _rank(found: Early | Frequent) -> tuple[bool, bool, bool]:
    """The preference among findings about one scheduler: those in its own function, those without claims."""
    moved = found.schedule.node is not found.schedule.site
    if isinstance(found, Early):
        return True, moved, found.repeated or not found.step.kind.steps
    return False, moved, False


def _shown(event: Event) -> str:
    return quoted(f"{event.node.func.as_string()}()" if event.kind in (Kind.MAYBE, Kind.MAY_SCHEDULE) else f"{event.subject}.step()")


def _confidence(schedule: Event) -> Confidence:
    owner = getattr(schedule.node.func, "expr", None)
    known = schedule.kind is Kind.SCHEDULE and owner is not None and schedule_of(owner) is Schedule.TORCH
    return Confidence.HIGH if known else Confidence.MEDIUM


def _claims(schedule: Event, *, prepared: bool) -> tuple[Claim, ...]:
    """The claims about a scheduler that the file only names."""
    if schedule.kind is Kind.MAY_SCHEDULE or _confidence(schedule) is Confidence.HIGH:
        return ()
    slots = ";".join(f"{one.kind}:{one.scope}:{one.name}" for one in slots_of(schedule.node.func.expr))
    return (Claim("schedules-learning-rate", f"{'any' if prepared else 'plain'}|{slots}"),)
