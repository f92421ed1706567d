"""The closing lines of a report in plain words: what was fixed, what was found, what can be fixed, what was held back."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path

from ldlm_lint.model import Applicability, Consequence, Report
from ldlm_lint.reach import Reach, Standing
from ldlm_lint.report.cells import clean
from ldlm_lint.report.common import fixable, shown_path, trades, verdicts
from ldlm_lint.report.consequences import INFO, counted_as
from ldlm_lint.report.view import Fixed, View

FIXABLE = "[*]"
_NAMED = 3
_NAMED_AREAS = 8


def lines(view: View) -> Iterator[str]:
    """The lines below the findings."""
    report = view.report
    if view.fixed is not None and (view.fixed.findings or view.shown):
        yield from _fixed(view, view.fixed)
    yield found(view)
    if view.shown:
        yield fixes(view)
    yield from elsewhere(view)
    yield ", ".join(_counts(report)) + "."
    if report.unseen:
        yield f"Not understood: {_places(report.unseen, view.base)}."
    gone = sum(times for _, times in report.stale)
    if gone:
        yield f"{count(gone, 'known finding')} of the baseline gone, see ldlm-lint baseline --update"


def elsewhere(view: View) -> Iterator[str]:
    """How many findings are only counted because their code was copied or is not reached, and the option that shows
    them."""
    for standing, number in view.counted[:_NAMED_AREAS]:
        yield _elsewhere(view, standing, number)
    others = view.counted[_NAMED_AREAS:]
    if others:
        yield f"{sum(number for _, number in others)} more in {count(len(others), 'other place')} of this kind"
    if view.counted:
        yield "--show-unreached shows them in full."


def _elsewhere(view: View, standing: Standing, number: int) -> str:
    """How many findings are in one folder or file of minor importance: ``35 more in annotator/, copied from
    mmcv``."""
    more, area = f"{number} more" if view.shown else count(number, "finding"), clean(shown_path(standing.area, view.base))
    area += "/" * standing.area.endswith("/")
    if standing.reach is Reach.COPIED:
        return f"{more} in {area}, copied from {clean(standing.origin)}"
    return f"{more} {clean(standing.words)} ({area})"


def found(view: View) -> str:
    """How many findings there are, by consequence; after fixes, how many remain."""
    total, remaining = len(view.shown), view.fixed is not None
    if not total:
        done = view.fixed is not None and view.fixed.findings > 0
        return unchecked(view.report) or ("No findings remain." if done else "No findings.")
    listed = ", ".join(f"{number} {word}" for word, number in consequences(view).items())
    if remaining:
        return f"{count(total, 'finding')} {'remain' if total > 1 else 'remains'}: {listed}."
    return f"Found {count(total, 'finding')}: {listed}."


def unchecked(report: Report) -> str:
    """The text instead of "No findings" if something could not be checked, or nothing was checked; else empty."""
    if not report.files:
        return f"Nothing was checked{': all given paths are excluded' if report.excluded and not report.problems else ''}."
    if not report.problems:
        return ""
    return f"No findings in {count(report.files, 'file')}, but not everything could be checked."


def consequences(view: View) -> dict[str, int]:
    """The number of findings per consequence, worst first, then those at level info; without zeros."""
    counts = Counter(counted_as(finding, view.rules[finding.rule]) for finding in view.shown)
    words = (*(one.value for one in sorted(Consequence, key=lambda one: one.rank)), INFO)
    return {word: counts[word] for word in words if word in counts}


def fixes(view: View) -> str:
    """How many of the findings the current flags would fix, how many wait for a decision, and how many have no fix."""
    findings = view.shown
    safe, decision = fixable(findings, Applicability.SAFE), fixable(findings, Applicability.UNSAFE)
    traded = trades(findings)
    parts = []
    if view.unsafe:
        parts += [f"{FIXABLE} {safe + decision} fixable with --fix --unsafe-fixes"] if safe + decision else []
        parts += [f"{number} trading {trade} (--fix --interactive)" for trade, number in traded.items()]
    else:
        parts += [f"{FIXABLE} {safe} fixable with --fix"] if safe else ["None has a safe fix"]
        asked = decision + traded.total()
        parts += [f"{asked} fixable after a decision (--fix --interactive)"] if asked else []
    left = len(findings) - safe - decision - traded.total()
    parts += [f"{left} to fix by hand"] if left else []
    return f"{', '.join(parts)}."


def _fixed(view: View, fixed: Fixed) -> Iterator[str]:
    """The applied fixes by rule, with their places."""
    if not fixed.findings:
        yield f"Nothing was {fixed.done.lower()}."
        return
    done = f"{fixed.done} {count(fixed.findings, 'finding')} in {count(fixed.files, 'file')}"
    yield f"{done}{':' if fixed.places else '.'}"
    by_rule: dict[str, list[str]] = defaultdict(list)
    for place in fixed.places:
        where = f"{place.line}" if place.cell is None else f"cell {place.cell}"
        by_rule[place.rule].append(clean(f"{shown_path(place.path, view.base)}:{where}"))
    for rule, places in sorted(by_rule.items(), key=lambda one: (-len(one[1]), one[0])):
        named = ", ".join(places[:_NAMED])
        more = f" and {len(places) - _NAMED} more" if len(places) > _NAMED else ""
        yield f"  {len(places)} {rule}: {named}{more}"
    others = 0 if fixed.found is None else fixed.found - fixed.findings - len(view.shown)
    if others > 0:
        yield f"  {count(others, 'more finding')} gone with {'it' if fixed.findings == 1 else 'them'}"
    if others < 0:
        yield f"  {count(-others, 'new finding')} became visible through the fixes"


def _counts(report: Report) -> Iterator[str]:
    yield f"{count(report.files, 'file')} read"
    if report.suppressed:
        yield f"{count(report.suppressed, 'finding')} suppressed"
    if report.baselined:
        yield f"{count(report.baselined, 'finding')} in the baseline"
    if report.unchanged:
        yield f"{count(report.unchanged, 'finding')} on unchanged lines"
    if report.unsure:
        yield f"{count(report.unsure, 'finding')} below --min-confidence"
    if report.unseen:
        yield f"{count(len(report.unseen), 'part')} of scripts and configurations not understood"
    if report.excluded:
        yield f"{count(report.excluded, 'named path')} excluded"
    if report.problems:
        yield count(len(report.problems), "problem")
    if report.evidence is not None:
        settled = {word: number for word, number in verdicts(report).items() if number}
        listed = ", ".join(f"{number} {word}" for word, number in settled.items()) or "no verdict on them"
        yield f"probe: {listed}"


def _places(unseen: Sequence[tuple[str, int]], base: Path) -> str:
    """The first places, and how many more there are."""
    named = ", ".join(f"{clean(shown_path(path, base))}:{line}" for path, line in unseen[:_NAMED])
    return f"{named} and {len(unseen) - _NAMED} more" if len(unseen) > _NAMED else named


def count(number: int, one: str, many: str = "") -> str:
    """A number with its noun.

    >>> count(2, "finding"), count(1, "finding")
    ('2 findings', '1 finding')
    """
    return f"{number} {one if number == 1 else many or one + 's'}"
