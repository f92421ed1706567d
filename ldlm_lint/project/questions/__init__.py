"""The questions of findings to the project, one module per topic; each answer says whether the finding is confirmed,
and why.

A question gets the finding and the subject of its claim. If the project does not decide it, the answer is no: unknown
is not a finding.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping

from ldlm_lint.model import Applicability, Finding, Fix, Related, Span
from ldlm_lint.project.questions.base import Context, Question, Verdict
from ldlm_lint.rules.dated import dated

_ROOMS: Mapping[str, tuple[str, ...]] = {
    "roles": (
        "belongs-to-training",
        *("runs-many-ranks", "stands-outside-tests"),
    ),
    "data": (
        *("dataset-works-per-item", "each-rank-has-its-loader", "loader-feeds-training", "loader-is-reiterated"),
        "no-dataset-takes-epochs",
    ),
    "distributed": (
        *("accumulation-is-not-divided", "environment-variable-unread", "shards-with-fsdp", "wrapped-model-trains"),
    ),
    "optimizer": ("optimizer-trains-on-cuda",),
    "mm_configs": ("is-setting-of-mm", "some-child-keeps-setting"),
    "interpreter": ("may-need-newer-python",),
    "ddp_graph": (
        *("model-checkpoints-reentrantly", "no-sync-on-wrap", "program-checkpoints-reentrantly", "transformers-is-old"),
    ),
    "process_groups": ("deepspeed-reads-timeout", "timeout-may-be-lowered"),
    "configuration": (
        *("configuration-key-is-dead", "configured-section-reaches-loader", "configured-value-reaches-call"),
    ),
    "configured_timeouts": ("configured-timeout-is-excessive",),
    "frameworks": (
        *("launch-runs-trainer", "launch-varies-processes", "launches-do-not-shard"),
        *("made-optimizer-trains-on-cuda", "project-uses-lightning", "trainer-reads-configuration"),
        *("trainer-default-is-left", "trainer-setting-is-in-force", "trainer-setting-is-unset"),
    ),
    "launches": ("program-needs-no-rank-argument", "script-passes-to-training"),
    "sourcing": (
        *("heartbeat-is-inert-beside", "holds-in-sourcing-script", "holds-with-sourced-scripts"),
        *("sourced-scripts-leave-pipefail-off", "variable-is-read-nowhere-else", "winner-differs-beside"),
    ),
    "launched_options": ("launched-value-reaches-call", "option-counts-micro-batches"),
    "environment": ("no-heartbeat-elsewhere-is-wrong", "process-group-takes-timeout"),
}
"""The modules with the kinds of questions that each answers: a module is loaded when one of them is asked."""


class _Questions(Mapping[str, Question]):
    """The questions by their kind."""

    _rooms: Mapping[str, str] = {kind: room for room, kinds in _ROOMS.items() for kind in kinds}

    def __getitem__(self, kind: str) -> Question:
        room = importlib.import_module(f"{__name__}.{self._rooms[kind]}")
        return room.QUESTIONS[kind]

    def __iter__(self) -> Iterator[str]:
        return iter(self._rooms)

    def __len__(self) -> int:
        return len(self._rooms)


QUESTIONS: Mapping[str, Question] = _Questions()


def decide(finding: Finding, context: Context) -> Finding | None:
    """The finding with the project's additions, or None if a claim does not hold, or its torch is too old."""
    needed = dated().get(finding.rule)
    if needed is not None and context.torch.lacks(finding.span.path, needed.since):
        return None
    for claim in finding.claims:
        verdict = QUESTIONS[claim.kind](context, finding, claim.subject)
        if not verdict.holds:
            return None
        finding = finding if verdict.to is None else _moved(finding, verdict.to)
        finding = finding._replace(
            related=finding.related + verdict.related,
            args=tuple(sorted((dict(finding.args) | dict(verdict.args)).items())),
            fix=None if verdict.withdraws else _only_shown(verdict.fix or _demoted(finding.fix, verdict.unsafe), verdict.shown),
            level=finding.level if verdict.level is None else verdict.level,
        )
        finding = finding.lowered(verdict.minor) if verdict.minor else finding
    fix = _allowed(finding, context)
    related = (*finding.related, *_conflicting(finding, context))
    return finding._replace(claims=(), related=related, fix=fix)


def _conflicting(finding: Finding, context: Context) -> Iterator[Related]:
    """The requirements that choose a torch which lacks what the finding or its fix needs, where others do not."""
    needed = dated().get(finding.rule)
    needs = [*((needed,) if needed else ()), *(finding.fix.needs if finding.fix is not None else ())]
    if not needs:
        return
    newest = max(needs, key=lambda one: one.since)
    for bound in context.torch.against(finding.span.path, newest.since):
        at = context.project.data(bound.path)
        start = len(b"".join(at.splitlines(keepends=True)[: bound.line - 1]))
        end = start + len(at[start:].partition(b"\n")[0].rstrip())
        others = context.torch.others(finding.span.path, newest.since)
        without = f"`{bound.text}` lacks {newest.name} (since torch {_words(newest.since)})"
        yield Related(Span(bound.path, start, end), f"{without}, but {others} allows it")


def _words(version: tuple[int, int]) -> str:
    return ".".join(map(str, version))


def _allowed(finding: Finding, context: Context) -> Fix | None:
    """The fix of a finding, which is only shown if a torch version that the project allows lacks its interfaces."""
    fix = finding.fix
    lacking = context.torch.why_lacking(finding.span.path, fix.needs) if fix is not None and fix.needs else ""
    if fix is not None and fix.untold:
        reason = fix.reason if lacking else "; ".join(filter(None, (fix.untold, fix.reason)))
        fix = fix._replace(reason=reason, untold="")
    return _only_shown(fix, lacking)


def _only_shown(fix: Fix | None, why: str) -> Fix | None:
    return fix.only_shown(why) if fix is not None and why else fix


def _moved(finding: Finding, place: Span) -> Finding:
    """The finding at another of its places; the places it names in between do not have the defect."""
    return finding._replace(span=place, related=tuple(one for one in finding.related if not finding.span.start < one.span.start <= place.start))


def _demoted(fix: Fix | None, reason: str) -> Fix | None:
    if fix is None or not reason or fix.applicability is not Applicability.SAFE:
        return fix
    return fix._replace(applicability=Applicability.UNSAFE, reason=reason)


__all__ = ["QUESTIONS", "Context", "Question", "Verdict", "decide"]
