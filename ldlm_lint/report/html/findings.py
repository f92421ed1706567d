"""The findings of a report for a page: by consequence, then by rule, each with its code, fix and evidence."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from ldlm_lint.add_ignores import REASON
from ldlm_lint.autofix.diff import patch_base, unified_diff
from ldlm_lint.files.edited import OverlapError, after_fix
from ldlm_lint.model import Applicability, Consequence, Edit, Finding, Fix, Reference, Rule, Span
from ldlm_lint.report.cells import clean
from ldlm_lint.report.common import edited_sources, has_edits, is_open, rule_url, settling, shown_path, source_of
from ldlm_lint.report.consequences import INFO, LEADS_TO, LESS_AT_RISK, MINOR, counted_as, gravity, is_minor, tone
from ldlm_lint.report.differences import difference
from ldlm_lint.report.html.excerpts import Row, cut, rows
from ldlm_lint.report.patch import patch
from ldlm_lint.report.ranking import CONSEQUENCE, RULE, Group, grouped
from ldlm_lint.report.steps import circumstances
from ldlm_lint.report.verdicts import figure
from ldlm_lint.report.view import View
from ldlm_lint.source import Kind

MOST_FINDINGS = 5_000
"""The most findings of a page, the worst ones: a browser needs seconds for them."""
MOST_CHANGES, LONGEST_PATCH = 400, 20_000
"""The most lines of a fix that are shown, and the most characters that are copied: a line of code can have millions."""
_LEVELS = {
    Applicability.SAFE: ("safe fix", "good", "It cannot change behaviour: `--fix` applies it."),
    Applicability.UNSAFE: ("unsafe fix", "costly", "It can change behaviour: `--fix --interactive` asks you first."),
    Applicability.DISPLAY: ("display fix", "minor", "It is only shown: make this change by hand."),
}
_VERDICTS = {"verified": "grave", "refuted": "good", "inconclusive": "minor"}


class Passage(NamedTuple):
    """A place with its source lines and a text about it; ``finding`` is the key of a finding on its line, empty without one."""

    place: str
    note: str
    rows: Sequence[Row]
    finding: str = ""


class Change(NamedTuple):
    """A line of a diff: ``kind`` is ``added``, ``removed``, ``place`` or empty."""

    kind: str
    text: str


class ShownFix(NamedTuple):
    """A fix: its level as a word with a tone and an explanation, and its lines; ``patch`` is what ``git apply`` takes."""

    title: str
    level: str
    tone: str
    promise: str
    reason: str
    trade: str
    changes: Sequence[Change]
    left_out: int
    patch: str
    same_as: str


class Badge(NamedTuple):
    """The evidence of a finding: the verdict, the figure with its interval, the scope, and a text."""

    verdict: str
    tone: str
    figure: str
    scope: str
    words: str


class Card(NamedTuple):
    """One finding. ``key`` is its id on the page; ``differs`` is what its message says that the first one of the rule does not.

    ``word`` is the consequence, or the level of a finding below its rule's.
    """

    key: str
    place: str
    path: str
    line: int
    folder: str
    message: str
    differs: str
    word: str
    passage: Passage
    related: Sequence[Passage]
    notes: Sequence[str]
    fix: ShownFix | None
    fixable: str
    evidence: Badge | None
    ignore: str
    settled_by: str


class RuleBlock(NamedTuple):
    """The findings of one rule."""

    rule: Rule
    url: str
    cards: Sequence[Card]
    references: Sequence[Reference]


class Section(NamedTuple):
    """The rules with the same consequence; ``tone`` is its severity: ``grave``, ``costly`` or ``minor``."""

    name: str
    tone: str
    leads_to: str
    blocks: Sequence[RuleBlock]

    @property
    def cards(self) -> list[Card]:
        """Its findings, in order."""
        return [card for block in self.blocks for card in block.cards]


class Facet(NamedTuple):
    """A choice of a filter and how many findings it leaves."""

    value: str
    findings: int


class Cards:
    """Makes the cards of one report; a fix shared by several findings is shown in full at the first of them."""

    def __init__(self, view: View) -> None:
        self.view = view
        self._fixes: dict[tuple[Edit, ...], str] = {}
        self._keys: dict[int, str] = {}
        self._on_line: dict[str, str] = {}

    def sections(self) -> list[Section]:
        """The findings that the report shows, the worst consequence first, and those at level info."""
        findings = self.view.ordered(CONSEQUENCE)[:MOST_FINDINGS]
        groups = [group for minor in (False, True) for group in grouped((one for one in findings if is_minor(one) is minor), RULE)]
        # A rule whose first finding is refuted would otherwise be separated from the others of its consequence.
        groups.sort(key=lambda group: gravity(group.first, self.view.rules[group.first.rule]))
        self._name(finding for group in groups for finding in group.findings)
        return [self._section(name, list(same)) for name, same in groupby(groups, self._heading)]

    def _heading(self, group: Group) -> str:
        return counted_as(group.first, self.view.rules[group.first.rule])

    def _section(self, name: str, groups: Sequence[Group]) -> Section:
        blocks = [self._block(self.view.rules[group.first.rule], group.findings) for group in groups]
        if name == INFO:
            return Section(name, MINOR, f"{LESS_AT_RISK}.", blocks)
        consequence = Consequence(name)
        return Section(name, tone(consequence), f"{LEADS_TO[consequence]}.", blocks)

    def _block(self, rule: Rule, findings: Sequence[Finding]) -> RuleBlock:
        first = clean(self.view.message(findings[0]))
        return RuleBlock(rule, rule_url(rule.symbol), [self._card(finding, rule, first) for finding in findings], rule.references)

    def _card(self, finding: Finding, rule: Rule, first: str) -> Card:
        """The card of a finding; ``first`` is the message of the first one of its rule."""
        view = self.view
        message = clean(view.message(finding))
        place = view.place(finding.span)
        key = self._keys[id(finding)]
        below = finding.severity < rule.severity
        return Card(
            key=key,
            place=clean(str(place)),
            path=clean(place.path),
            line=place.line,
            folder=clean(PurePosixPath(place.path).parent.as_posix()),
            message=message,
            differs=difference(message, first),
            word=finding.severity.label if below else rule.consequence.value,
            passage=self._passage(finding.span),
            related=[self._passage(one.span, one.message, around=1) for one in finding.related],
            notes=list(self._notes(finding)),
            fix=self._fix(finding, key),
            fixable=fixable(finding.fix),
            evidence=_badge(finding),
            ignore=self._ignore(finding),
            settled_by=(settling(view.report, finding, rule, view.base) or "") if is_open(finding) else "",
        )

    def _notes(self, finding: Finding) -> Iterator[str]:
        if finding.why_minor:
            yield clean(f"level info: {finding.why_minor}")
        if finding.in_step is not None:
            step = f"wait {finding.in_step.order} of the training step at {self._line(finding.in_step.step)}"
            yield ", ".join((step, *circumstances(finding.in_step, self._line)))

    def _line(self, span: Span) -> str:
        place = self.view.place(span)
        return clean(f"{place.file}:{place.line}")

    def _name(self, findings: Iterable[Finding]) -> None:
        """Give each card a stable name, independent of other rules' findings."""
        counts: Counter[str] = Counter()
        for finding in findings:
            counts[finding.rule] += 1
            key = self._keys[id(finding)] = f"{finding.rule}-{counts[finding.rule]}"
            self._on_line.setdefault(self._line(finding.span), key)

    def _passage(self, span: Span, note: str = "", around: int = 3) -> Passage:
        source = source_of(self.view.report, span.path)
        found = rows(source, span, around) if source is not None and source.data else []
        place = self._line(span)
        return Passage(place, clean(note), found, self._on_line.get(place, ""))

    def _ignore(self, finding: Finding) -> str:
        """The comment that silences a finding on its line; empty for JSON, which has no comments."""
        source = source_of(self.view.report, finding.span.path)
        if source is None or source.kind is Kind.JSON:
            return ""
        return f"# ldlm-lint: ignore[{finding.rule}] {REASON}"

    def _fix(self, finding: Finding, key: str) -> ShownFix | None:
        fix = finding.fix
        if fix is None:
            return None
        level, colour, promise = _LEVELS[fix.applicability]
        known = self._fixes.get(fix.edits, "") if has_edits(fix) else ""
        if has_edits(fix) and not known:
            self._fixes[fix.edits] = key
        patched = "" if known else self._patch(fix)
        changes = [] if known else list(_changes(patched) if patched else self._lines(fix))
        return ShownFix(
            title=clean(fix.title),
            level=level,
            tone=colour,
            promise=promise if has_edits(fix) else "It is advice: no command applies it.",
            reason=clean(fix.reason),
            trade=fix.trade,
            changes=changes[:MOST_CHANGES],
            left_out=max(len(changes) - MOST_CHANGES, 0),
            patch=patched if fix.applicability is not Applicability.DISPLAY and _can_copy(patched) else "",
            same_as=known,
        )

    def _patch(self, fix: Fix) -> str:
        """The fix as a patch of whole files; empty if it has none, or edits a notebook, whose file is not its text."""
        sources = edited_sources(self.view.report, fix)
        if not sources or any(source.parts for source in sources.values()):
            return ""
        try:
            after = after_fix(fix, sources)
        except (OverlapError, UnicodeEncodeError):
            return ""
        before = {path: source.data for path, source in sources.items()}
        return unified_diff(patch_base(Path(self.view.report.root or self.view.base)), before, after).decode("utf-8", errors="replace")

    def _lines(self, fix: Fix) -> Iterator[Change]:
        """The changed lines of a fix that has no patch, file by file."""
        for path in sorted({edit.span.path for edit in fix.edits}):
            source = source_of(self.view.report, path)
            if source is not None:
                yield Change("place", clean(shown_path(path, self.view.base)))
                for change in patch(source, [edit for edit in fix.edits if edit.span.path == path]):
                    kind = {"+": "added", "-": "removed"}.get(change.sign, "place")
                    yield Change(kind, f"{change.sign} {cut(change.text)}" if change.sign else "…")


def fixable(fix: Fix | None) -> str:
    """The choice of the fix filter that a finding belongs to."""
    if not has_edits(fix) or fix.applicability is Applicability.DISPLAY:
        return "none"
    return "trade" if fix.trade else fix.applicability.label


def folders(cards: Sequence[Card]) -> list[Facet]:
    """The folders with findings in or below them, and how many."""
    counts: Counter[str] = Counter()
    for card in cards:
        path = PurePosixPath(card.folder)
        counts.update(folder.as_posix() for folder in (path, *path.parents) if folder.as_posix() not in (".", "/"))
    return [Facet(name, count) for name, count in sorted(counts.items())]


def _changes(text: str) -> Iterator[Change]:
    """The lines of a patch; of the three that begin each file only the name of the new one, as removed lines can look like the others."""
    kinds = {"+": "added", "-": "removed", "@": "place"}
    header = 0
    for line in text.removesuffix("\n").split("\n"):
        if line.startswith("diff --git "):
            header = 2
        elif header:
            header -= 1
            if not header:
                yield Change("place", clean(line.removeprefix("+++ ").removeprefix("b/").rstrip("\t")))
        else:
            yield Change(kinds.get(line[:1], ""), cut(line))


def _can_copy(patched: str) -> bool:
    """Whether a patch is short, and passes unchanged through a page and a clipboard: no carriage return, nothing that was
    replaced.
    """
    if len(patched) > LONGEST_PATCH:
        return False
    letters = patched.translate({ord("\n"): None, ord("\t"): None, ord("\ufffd"): "\0"})
    return clean(letters) == letters


def _badge(finding: Finding) -> Badge | None:
    support = finding.evidence
    if support is None:
        return None
    first = support.judgements[0]
    return Badge(
        support.verdict.value, _VERDICTS[support.verdict.value], figure(first.measured), clean(first.scope.words), clean(support.words)
    )
