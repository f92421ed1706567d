"""``--fix --interactive``: shows each fix with its reason and diff, and applies it if the user agrees."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple, TextIO

from ldlm_lint.autofix.apply import FixIdentity, identity_of
from ldlm_lint.files.edited import OverlapError, after_fix
from ldlm_lint.model import Applicability, Edit, Finding, Fix, Report, Rule
from ldlm_lint.report.common import edited_sources
from ldlm_lint.report.fix import write_fix
from ldlm_lint.trades import agreed

QUESTION = "Apply this fix? [y]es [n]o [a]ll of this rule [s]kip this rule [q]uit ? "
HELP = """y  apply this fix
n  skip this fix in this run
a  apply it and all other fixes of this rule, also unsafe ones
s  skip this fix and all other fixes of this rule
q  stop and apply the accepted fixes (EOF does the same)
?  this help
Ctrl-C changes no file.
"""


class Proposal(NamedTuple):
    """A fix, the findings that share it, and the new bytes of the files that it changes."""

    fix: Fix
    findings: tuple[Finding, ...]
    after: Mapping[str, bytes]
    identity: FixIdentity

    @property
    def rules(self) -> frozenset[str]:
        """The rules whose findings share the fix."""
        return frozenset(finding.rule for finding in self.findings)


@dataclass(slots=True)
class Asking:
    """The questions of one run: answers stay valid in later rounds, which ask about new fixes only.

    ``answers`` and ``output`` are the streams of the conversation, ``rules`` are by symbol.
    """

    base: Path
    rules: Mapping[str, Rule]
    answers: TextIO | None
    output: TextIO
    _decided: dict[FixIdentity, bool] = field(default_factory=dict)
    _all: set[str] = field(default_factory=set)
    _skipped: set[str] = field(default_factory=set)
    _ended: bool = False

    def accepted(self, report: Report) -> list[Finding]:
        """The findings of a report whose fixes are to be applied; raises KeyboardInterrupt at Ctrl-C."""
        waiting = sorted(_proposals(report), key=self._rank)
        chosen: list[Finding] = []
        for number, proposal in enumerate(waiting, 1):
            if self._decide(report, proposal, f"fix {number} of {len(waiting)}"):
                chosen.extend(map(agreed, proposal.findings))
        return chosen

    def _rank(self, proposal: Proposal) -> int:
        """The rank of a fix's worst consequence: fixes for hangs come before fixes for slowness."""
        return min(self.rules[rule].consequence.rank for rule in proposal.rules)

    def _decide(self, report: Report, proposal: Proposal, title: str) -> bool:
        known = self._decided.get(proposal.identity)
        if known is not None:
            return known
        if proposal.rules <= self._skipped or self._ended:
            return False
        if proposal.rules <= self._all:
            return True
        write_fix(report, proposal.findings, proposal.after, self.output, base=self.base, rules=self.rules, title=title)
        decision = self._ask(proposal)
        if decision is None:
            self._ended = True
            return False
        self._decided[proposal.identity] = decision
        return decision

    def _ask(self, proposal: Proposal) -> bool | None:
        """The answer to one question, None to stop."""
        while True:
            answer = self._answer()
            if answer in ("", "q"):
                return None
            if answer == "a":
                self._all |= proposal.rules
                self._skipped -= proposal.rules
            if answer == "s":
                self._skipped |= proposal.rules
            if answer in ("y", "a", "n", "s"):
                self.output.write("\n")
                return answer in ("y", "a")
            self.output.write(HELP)

    def _answer(self) -> str:
        """The first letter of the next line, ``?`` for an empty line, empty at the end of the input."""
        self.output.write(QUESTION)
        self.output.flush()
        line = self.answers.readline() if self.answers is not None else ""
        if not line or not (self.answers and self.answers.isatty()):
            # A terminal shows typed input; other input is echoed.
            self.output.write(f"{line.strip() or ('q' if not line else '')}\n")
        return (line.strip().lower() or "?")[0] if line else ""


def asking(base: Path, rules: Mapping[str, Rule]) -> Asking:
    """The questions of this process, on its streams."""
    return Asking(base, rules, sys.stdin, sys.stdout)


def _proposals(report: Report) -> Iterator[Proposal]:
    """The fixes of a report that can be applied, in the order of their first findings.

    Display-only fixes are skipped: their edits may contain placeholders for the project's own numbers.
    """
    shared: dict[tuple[Edit, ...], list[Finding]] = {}
    for finding in report.findings:
        if finding.fix is not None and finding.fix.edits and finding.fix.applicability > Applicability.DISPLAY:
            shared.setdefault(finding.fix.edits, []).append(finding)
    for findings in shared.values():
        fix = findings[0].fix
        sources = edited_sources(report, fix) if fix else None
        if fix is None or sources is None:
            continue
        before = {path: source.data for path, source in sources.items()}
        try:
            after = after_fix(fix, sources)
        except (OverlapError, UnicodeEncodeError):
            # It could not be applied, so there is nothing to ask; without questions the run reports it.
            continue
        if after != before:
            yield Proposal(fix, tuple(findings), after, identity_of(fix, before))
