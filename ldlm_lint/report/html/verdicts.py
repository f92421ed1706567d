"""Verdicts of the probe as a page: verified claims, claims that need another run with the command, and their basis."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from ldlm_lint.evidence import settling
from ldlm_lint.evidence.amounts import RATIOS, duration
from ldlm_lint.evidence.listed import Listed, of
from ldlm_lint.evidence.model import Evidence, Judgement, Measurement, Scope, Verdict
from ldlm_lint.report.html.facts import machine, short, url_of
from ldlm_lint.report.html.intervals import Interval, chart
from ldlm_lint.report.html.page import render
from ldlm_lint.report.next_steps import Step
from ldlm_lint.report.verdicts import (
    NOT_PRESENT,
    WORDS,
    figure,
    figure_in_full,
    groups,
    ordered,
    place,
    settling_command,
)

MOST_VERDICTS = 300
MOST_PROCESSES = 64
_MOST_PLACES = 6
_LONGEST_PLACE = 200

# A verified verdict of a watched run is a defect; of an experiment it means that the rule's advice helps here.
_TONES = {"verified": "grave", "refuted": "good", "inconclusive": "minor", NOT_PRESENT: "good"}
_EXPERIMENT_TONES = {"verified": "good", "refuted": "costly", "inconclusive": "minor", NOT_PRESENT: "good"}
_POINTS = {Verdict.VERIFIED: "good", Verdict.REFUTED: "bad", Verdict.INCONCLUSIVE: "open"}
_MEANINGS = {
    "verified": "The claim was observed to be true.",
    "refuted": "A finding or an experiment makes this claim, and it was observed to be false.",
    "inconclusive": "This run cannot tell. Each group says what settles it.",
    NOT_PRESENT: "The probe looked for the defect and did not see it. No finding says that it is there.",
}


@dataclass(frozen=True, slots=True)
class Subject:
    """The subject of verdicts, and further content of the page. ``answered`` are the judgements for a finding or an
    experiment. ``findings`` are those of a report, None where none was given. ``places`` are the folders of evidence as
    the user named them; ``launch`` is the command that was watched (empty: several, or unknown); ``experiments`` says
    that nothing was watched.
    """

    evidence: Sequence[Evidence]
    notes: Sequence[str] = ()
    answered: Collection[Judgement] = ()
    findings: Sequence[Listed] | None = None
    places: Sequence[str] = ()
    launch: Sequence[str] = ()
    experiments: bool = False

    @property
    def tones(self) -> Mapping[str, str]:
        """The class of a badge for each word of a verdict."""
        return _EXPERIMENT_TONES if self.experiments else _TONES


@dataclass(frozen=True, slots=True)
class Shown:
    """A verdict as text; ``url`` is empty for an unknown rule."""

    rule: str
    url: str
    word: str
    tone: str
    figure: str
    scope: str
    rows: tuple[tuple[str, str], ...]
    places: tuple[str, ...]
    findings: tuple[str, ...]
    settles: str


@dataclass(frozen=True, slots=True)
class Group:
    """Verdicts with the same word that the same step would decide; ``step`` is that step or None."""

    name: str
    verdicts: tuple[Shown, ...]
    step: Step | None


@dataclass(frozen=True, slots=True)
class Section:
    """All groups of one word, with the number of their verdicts."""

    name: str
    meaning: str
    count: int
    groups: tuple[Group, ...]


def page(judgements: Sequence[Judgement], subject: Subject) -> str:
    """The whole page as HTML."""
    found = ordered(judgements)
    launch = None if subject.experiments else subject.launch
    sections = tuple(_sections(found[:MOST_VERDICTS], subject, launch))
    processes = [_process(one) for one in subject.evidence[:MOST_PROCESSES]]
    counts = {section.name: section.count for section in sections}
    return render(
        "verdicts.html",
        styles=("measured.css",),
        headline=headline(counts, experiments=subject.experiments),
        lead=_lead(subject),
        sections=sections,
        tones=subject.tones,
        intervals=chart(_intervals(found[:MOST_VERDICTS])),
        steps=tuple(_steps(sections, subject)),
        left_out=len(found) - len(found[:MOST_VERDICTS]),
        unanswered=_unanswered(found, subject.findings),
        commands=tuple(_commands(subject.evidence)),
        processes=processes,
        process_columns=[name for name in processes[0] if any(row[name] for row in processes)] if processes else [],
        processes_left_out=max(0, len(subject.evidence) - MOST_PROCESSES),
        machine=_machine(subject.evidence),
        notes=[short(note) for note in subject.notes],
    )


def headline(counts: Mapping[str, int], *, experiments: bool = False) -> str:
    """The verdicts in one sentence.

    >>> headline({"verified": 6, "inconclusive": 1})
    '6 defects verified in the run, and 1 verdict that needs another run'
    >>> headline({"refuted": 2, "not present": 3}, experiments=True)
    'No claim verified on this machine'
    """
    verified, still_open = counts.get("verified", 0), counts.get("inconclusive", 0)
    what, where = ("claim", "on this machine") if experiments else ("defect", "in the run")
    said = f"{verified} {what}{'s' * (verified != 1)} verified {where}" if verified else f"No {what} verified {where}"
    if still_open:
        said += f", and {still_open} {'verdicts that need' if still_open != 1 else 'verdict that needs'} another run"
    return said


def _named(metric: str, badge: str) -> str:
    """A figure after its name, without a unit that the name has already.

    >>> _named("backward passes per step", "2 passes"), _named("timeout", "10 h")
    ('backward passes per step: 2', 'timeout: 10 h')
    """
    value, _, unit = badge.partition(" ")
    return f"{metric}: {value if unit in metric.split() else badge}"


def _lead(subject: Subject) -> str:
    if subject.experiments:
        return "Small experiments measured what the claims of the rules amount to on this machine and torch build."
    return "The probe watched the program and compared what it did with what the rules claim."


def _sections(judgements: Sequence[Judgement], subject: Subject, launch: Sequence[str] | None) -> Iterator[Section]:
    by_word: dict[str, list[Group]] = {name: [] for name in WORDS}
    for name, way, members in groups(judgements, subject.answered):
        step = Step(settling.hint(members[0]), short(settling_command(members[0], way, launch))) if way else None
        by_word[name].append(Group(name, tuple(_shown(member, name, subject) for member in members), step))
    for name, found in by_word.items():
        if found:
            count = sum(len(group.verdicts) for group in found)
            yield Section(name, _MEANINGS[name], count, tuple(found))


def _shown(judgement: Judgement, name: str, subject: Subject) -> Shown:
    metric = judgement.measured.metric.replace("-", " ") if judgement.measured else ""
    badge, full = figure(judgement.measured), figure_in_full(judgement)
    # For an interval: the rounds, the threshold and the A/A band.
    detailed = full.endswith(")")
    rows = {
        "claim": judgement.claim,
        "seen": "" if judgement.reason == judgement.claim else _seen(judgement),
        "measured": full if detailed else "",
    }
    about = () if subject.findings is None else of(judgement, subject.findings)
    return Shown(
        short(judgement.rule or "this machine"),
        url_of(judgement.rule),
        name,
        subject.tones[name],
        short(_named(metric, badge) if badge and metric and not detailed else badge),
        short(_scope(judgement.scope)),
        tuple((label, short(text)) for label, text in rows.items() if text),
        tuple(short(f"{site.path}:{site.line}", _LONGEST_PLACE) for site in judgement.sites[:_MOST_PLACES]),
        tuple(short(f"{finding.rule} at {finding.place}", _LONGEST_PLACE) for finding in about[:_MOST_PLACES]),
        settling.hint(judgement),
    )


def _seen(judgement: Judgement) -> str:
    """The observation without the scope, which has a separate badge."""
    return judgement.reason.removesuffix(f" {judgement.scope.words}").removesuffix(",")


def _scope(scope: Scope) -> str:
    """The scope of a verdict, and the device that it is about if that differs."""
    seen = scope.words if scope.steps or scope.ranks else f"on {scope.device}"
    return f"{seen}, about {scope.target}" if scope.target not in ("", scope.device) else seen


def _intervals(judgements: Sequence[Judgement]) -> Iterator[Interval]:
    """The ratios that were measured with an interval, the largest first."""
    found = [(one, one.measured) for one in judgements if one.measured and _is_ratio(one.measured)]
    for judgement, measured in sorted(found, key=lambda pair: -(pair[1].value or 0.0)):
        low, high = measured.ci95 or (0.0, 0.0)
        at = f" ({place(judgement)})" if judgement.sites else ""
        yield Interval(
            short(f"{judgement.rule or 'this machine'}: {measured.metric}{at}"),
            measured.value or 0.0,
            low,
            high,
            measured.noise_band or 1.0,
            (measured.threshold,) if measured.threshold else (),
            f"{figure(measured)} {judgement.verdict.value}",
            _POINTS[judgement.verdict],
        )


def _is_ratio(measured: Measurement) -> bool:
    return measured.value is not None and measured.ci95 is not None and measured.unit in RATIOS


def _steps(sections: Sequence[Section], subject: Subject) -> Iterator[Step]:
    """What to do with the verdicts: see them next to the findings, measure the fixes, decide the open ones."""
    names = {section.name for section in sections}
    if subject.places:
        folders = " ".join(f"--evidence {shlex.quote(place)}" for place in subject.places)
        yield Step("See the verdicts beside the findings, with their fixes", short(f"ldlm-lint check {folders}"))
    if "verified" in names and subject.launch:
        command = short(f"ldlm-lint bench --unsafe-fixes -- {shlex.join(subject.launch)}")
        yield Step("Measure what the fixes bring: the program with and without them", command)
    for section in sections:
        for group in section.groups:
            if group.step:
                count = len(group.verdicts)
                why = f"Settle {count} inconclusive verdict{'s' * (count != 1)}: {group.step.purpose}"
                yield Step(why, group.step.command)


def _unanswered(judgements: Sequence[Judgement], findings: Sequence[Listed] | None) -> str:
    if findings is None:
        return ""
    told = {finding for judgement in judgements for finding in of(judgement, findings)}
    untold = sum(finding not in told for finding in findings)
    return f"{len(findings)} findings in the report, {untold} of them without a verdict."


def _commands(evidence: Sequence[Evidence]) -> Iterator[str]:
    yield from dict.fromkeys(short(shlex.join(one.run.command)) for one in evidence if one.run.command)


def _process(one: Evidence) -> dict[str, str]:
    """The row of a watched or measuring process, and how it ended."""
    ended = one.run.status.value.replace("_", " ")
    return {
        "kind": short(one.run.kind),
        "rank": f"{one.run.rank} of {one.run.world_size}",
        "device": short(one.environment.device),
        "steps": f"{one.run.steps:,}" if one.run.steps else "",
        "time": duration(one.run.seconds),
        "how it ended": short(f"{ended}: {one.run.exception}" if one.run.exception else ended),
        "host": short(one.run.host),
    }


def _machine(evidence: Sequence[Evidence]) -> tuple[tuple[tuple[str, str], ...], ...]:
    """The facts of each different machine, in the order of the processes; load and waiting differ from rank to rank."""
    found: dict[tuple[str, ...], tuple[tuple[str, str], ...]] = {}
    for one in evidence[:MOST_PROCESSES]:
        seen = one.environment
        key = (one.run.host, seen.device, seen.device_name, seen.torch, seen.python, seen.executable)
        found.setdefault(key, tuple(machine(seen)))
    return tuple(found.values())
