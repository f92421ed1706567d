"""Joins judgements and findings: by rule and place, then by rule and file, then for the run or the machine as a whole.

Pure: findings in, findings out, each with its evidence. Evidence about code that has changed since is stale and left
out; evidence without a finding is counted, and a verified defect at its own place becomes a finding.
"""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from ldlm_lint.evidence.dossier import Dossier, Judged
from ldlm_lint.evidence.lift import own_finding, with_support
from ldlm_lint.evidence.model import Judgement, Verdict
from ldlm_lint.evidence.places import Linted
from ldlm_lint.evidence.reached import ran
from ldlm_lint.evidence.support import Level, weighed
from ldlm_lint.model import Finding, Rule, Span
from ldlm_lint.scopes import scopes, symbol_at


@dataclass(frozen=True, slots=True)
class Stale:
    """Evidence that was left out: the rule, the linted file that has changed since, and its place."""

    rule: str
    path: str
    line: int


@dataclass(frozen=True, slots=True)
class Joined:
    """How the judgements of a dossier were used.

    ``answered`` are those (by index) attached to findings; ``unmatched`` those without a finding, since their files are
    not linted or no finding of their rule is at their places.
    """

    findings: tuple[Finding, ...]
    stale: tuple[Stale, ...] = ()
    unmatched: tuple[Judgement, ...] = ()
    answered: frozenset[int] = frozenset()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Place:
    """The lines of a linted file that a site is on."""

    path: str
    lines: range


@dataclass(frozen=True, slots=True)
class _Fresh:
    """A judgement that is not stale, with the places of its sites that are in linted files, the likeliest first."""

    index: int
    judged: Judged
    places: tuple[_Place, ...]

    @property
    def judgement(self) -> Judgement:
        return self.judged.judgement


def join(
    findings: Iterable[Finding],
    dossier: Dossier,
    linted: Linted,
    rules: Mapping[str, Rule],
    limits: Mapping[str, str] = MappingProxyType({}),
) -> Joined:
    """The findings with their evidence, and those that only evidence shows; ``rules`` are by symbol.

    Judgements of rules that do not exist, of another version, are left out with a note. ``limits`` are the rules whose
    options the project has set, with the options as text: evidence uses the defaults, so it is inconclusive for them.
    """
    ours = list(findings)
    dossier = dataclasses.replace(dossier, judged=tuple(_within(one, limits) for one in dossier.judged))
    fresh, stale, unknown = _sorted_out(dossier, linted, rules)
    matched: dict[int, list[tuple[Level, _Fresh]]] = defaultdict(list)
    for rule, judgements in _by_rule(fresh).items():
        mine = [at for at, one in enumerate(ours) if one.rule == rule]
        for at, level, one in _pairs(rule, mine, ours, judgements, linted, rules):
            matched[at].append((level, one))
    answered = {one.index for pairs in matched.values() for _, one in pairs} | dossier.answered
    joined = [
        with_support(one, weighed([(level, _of(one, level, fresh, linted)) for level, fresh in matched[at]]))
        if at in matched
        else one
        for at, one in enumerate(ours)
    ]
    left = [one for one in fresh if one.index not in answered]
    own = list(_own(left, linted, rules))
    shown = {index for indices, _ in own for index in indices}
    return Joined(
        (*joined, *(finding for _, finding in own)),
        tuple(dict.fromkeys(stale)),
        tuple(one.judgement for one in left if one.index not in shown),
        frozenset(answered),
        (*dossier.notes, *unknown),
    )


def _of(finding: Finding, level: Level, fresh: _Fresh, linted: Linted) -> Judgement:
    """The verdict of a judgement for a finding: a run that may not have executed its lines refutes nothing."""
    judgement = fresh.judgement
    if level is Level.MACHINE or judgement.verdict is not Verdict.REFUTED or _ran(finding, fresh, linted):
        return judgement
    reason = f"no evidence that the run executed these lines; elsewhere {judgement.reason}"
    return dataclasses.replace(judgement, verdict=Verdict.INCONCLUSIVE, reason=reason, lifts=False)


def _ran(finding: Finding, fresh: _Fresh, linted: Linted) -> bool:
    """Whether the observation is about the finding's own lines, or about lines that the run cannot reach without
    them.
    """
    spot = next(_spots(finding, linted), None)
    if spot is None or any(_overlap(place, spot) for place in fresh.places):
        return True
    judged = fresh.judged
    seen = [
        linted.lines(spot.path, site).start
        for site in (*judged.seen, *judged.judgement.sites)
        if site.line > 0 and linted.file_of(site.path, judged.root, site.sha256) == spot.path
    ]
    source = linted.source(spot.path)
    return source is None or ran(source, spot.lines.start, seen)


def _within(judged: Judged, limits: Mapping[str, str]) -> Judged:
    said = limits.get(judged.judgement.rule)
    if said is None or judged.judgement.verdict is Verdict.INCONCLUSIVE:
        return judged
    reason = f"judged with the rule's defaults, but here {said}; {judged.judgement.reason}"
    held = dataclasses.replace(judged.judgement, verdict=Verdict.INCONCLUSIVE, reason=reason, lifts=False)
    return dataclasses.replace(judged, judgement=held)


def _sorted_out(
    dossier: Dossier, linted: Linted, rules: Mapping[str, Rule]
) -> tuple[list[_Fresh], list[Stale], list[str]]:
    """The judgements that are valid for the current files, the stale ones, and notes on those of unknown rules."""
    fresh: list[_Fresh] = []
    stale: list[Stale] = []
    # An experiment may report facts about the machine without a rule.
    unknown = {one.judgement.rule for one in dossier.judged} - {*rules, ""}
    for index, one in enumerate(dossier.judged):
        if one.judgement.rule not in rules:
            continue
        found = _stale(one, linted)
        if found is not None:
            stale.append(found)
        else:
            fresh.append(_Fresh(index, one, tuple(_places(one, linted))))
    return fresh, stale, [f"evidence for an unknown rule: {name}" for name in sorted(unknown)]


def _stale(judged: Judged, linted: Linted) -> Stale | None:
    """The first file of a judgement that has changed; if it names none, the first of the whole run."""
    judgement = judged.judgement
    named = [(site.path, site.sha256, site.line) for site in judgement.sites]
    if not named and judged.kind == "watch":
        named = [(path, sha, 1) for path, sha in judged.hashes.items()]
    for path, sha, line in named:
        found = linted.file_of(path, judged.root, sha)
        if found is not None and linted.is_stale(found, sha):
            return Stale(judgement.rule, found, line)
    return None


def _places(judged: Judged, linted: Linted) -> Iterator[_Place]:
    for site in judged.judgement.sites:
        path = linted.file_of(site.path, judged.root, site.sha256)
        if path is not None:
            yield _Place(path, linted.lines(path, site))


def _by_rule(fresh: Iterable[_Fresh]) -> dict[str, list[_Fresh]]:
    groups: dict[str, list[_Fresh]] = defaultdict(list)
    for one in fresh:
        groups[one.judgement.rule].append(one)
    return groups


def _pairs(
    rule: str,
    mine: Sequence[int],
    findings: Sequence[Finding],
    judgements: Sequence[_Fresh],
    linted: Linted,
    rules: Mapping[str, Rule],
) -> Iterator[tuple[int, Level, _Fresh]]:
    """The findings of one rule (by index) for each of its judgements, with the level of the match."""
    spots = {at: list(_spots(findings[at], linted)) for at in mine}
    probe = rules[rule].probe
    far: list[_Fresh] = []
    for one in judgements:
        if not one.judgement.sites and one.judged.kind != "watch":
            yield from ((at, Level.MACHINE, one) for at in mine)
            continue
        hit = _hit(one, spots)
        yield from ((at, Level.PLACE, one) for at in hit)
        if not hit:
            far.append(one)
    taken = {at for one in judgements for at in _hit(one, spots)}
    for one, level, at in _lonely(far, [at for at in mine if at not in taken], findings):
        # A defect that was not seen in one function may exist in another, unless it concerns the whole run.
        whole = probe is not None and probe.whole_run
        near = level is Level.FILE and (
            one.judgement.verdict is not Verdict.REFUTED or _share_scope(findings[at].span, one.places[0], linted)
        )
        if whole or near:
            yield at, level, one


def _hit(one: _Fresh, spots: Mapping[int, Sequence[_Place]]) -> list[int]:
    """The findings at the likeliest of the sites that is the place of any; a lesser site must mean a single one."""
    for number, place in enumerate(one.places):
        hit = [at for at, mine in spots.items() if any(_overlap(place, spot) for spot in mine)]
        if hit:
            return hit if number == 0 or len(hit) == 1 else []
    return []


def _lonely(
    far: Sequence[_Fresh], free: Sequence[int], findings: Sequence[Finding]
) -> Iterator[tuple[_Fresh, Level, int]]:
    """Judgements and findings that no place joined, where file or run leaves a single pair of each."""
    by_file: dict[str, list[_Fresh]] = defaultdict(list)
    for one in far:
        by_file[one.places[0].path if one.places else ""].append(one)
    for path, here in by_file.items():
        in_file = [at for at in free if path and findings[at].span.path == path]
        candidates, level = (in_file, Level.FILE) if in_file else (free, Level.RUN)
        rivals = here if in_file else far
        if len(candidates) == 1 and len({_key(one) for one in rivals}) == 1:
            yield from ((one, level, candidates[0]) for one in here)


def _key(one: _Fresh) -> object:
    """The place of a judgement: two runs of a program report the same for it."""
    return (one.places[0].path, one.places[0].lines.start) if one.places else one.judgement.sites[:1]


def _spots(finding: Finding, linted: Linted) -> Iterator[_Place]:
    """The lines of a finding and of the places that it depends on."""
    for span in (finding.span, *(related.span for related in finding.related)):
        source = linted.source(span.path)
        if source is not None:
            first, last = source.position(span.start)[0], source.position(max(span.end - 1, span.start))[0]
            yield _Place(span.path, range(first, last + 1))


def _share_scope(span: Span, place: _Place, linted: Linted) -> bool:
    """Whether a finding and a place of its file are in the same function, or both at the top level."""
    source = linted.source(span.path)
    if source is None or place.lines.start > len(source.lines):
        return False
    found = scopes(source)
    return symbol_at(found, span.start) == symbol_at(found, source.line_starts[place.lines.start - 1])


def _overlap(one: _Place, other: _Place) -> bool:
    return one.path == other.path and one.lines.start < other.lines.stop and other.lines.start < one.lines.stop


def _own(left: Sequence[_Fresh], linted: Linted, rules: Mapping[str, Rule]) -> Iterator[tuple[list[int], Finding]]:
    """A finding for each place where a defect was verified that no finding is about; of several runs together."""
    places: dict[tuple[str, object], list[_Fresh]] = defaultdict(list)
    for one in left:
        if one.places:
            places[one.judgement.rule, _key(one)].append(one)
    for (rule, _), found in places.items():
        support = weighed([(Level.PLACE, one.judgement) for one in found])
        # A trade (memory for speed) is a choice, which no run can prove wrong.
        if support.verdict is not Verdict.VERIFIED or rules[rule].trade:
            continue
        place = found[0].places[0]
        span = _line_span(linted, place)
        if span is not None:
            yield [one.index for one in found], own_finding(rules[rule], span, support)


def _line_span(linted: Linted, place: _Place) -> Span | None:
    """The code of the first line of a place."""
    source = linted.source(place.path)
    if source is None or not 0 < place.lines.start <= len(source.lines):
        return None
    line = place.lines.start
    text = source.lines[line - 1]
    if not text.strip():
        return None
    indent = text[: len(text) - len(text.lstrip())]
    return source.span_of(line, len(indent.encode()), line, len(text.rstrip().encode()))
