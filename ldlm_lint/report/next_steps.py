"""The commands that a reader of a report can run next: those that have an effect on these findings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from ldlm_lint.model import Applicability
from ldlm_lint.report.cells import clean
from ldlm_lint.report.common import fixable, is_open, settling, trades
from ldlm_lint.report.ranking import CONSEQUENCE, ordered
from ldlm_lint.report.summary import count
from ldlm_lint.report.view import View

# Options of a check that `ldlm-lint baseline` does not have.
_NOT_OF_BASELINE = frozenset(("--since", "--min-confidence", "--no-baseline", "--evidence", "--show-unreached"))


class Step(NamedTuple):
    """A possible action and its command; empty if no command does it."""

    purpose: str
    command: str = ""


def next_steps(view: View) -> Iterator[Step]:
    """The commands in the order in which a reader needs them; empty if there is nothing to do."""
    if view.fixed is not None and view.fixed.findings and view.again is not None:
        yield Step("undo these fixes", "ldlm-lint undo")
    if not view.shown:
        return
    if view.again is not None:
        yield from _fixing(view)
        if view.fixed is None and not view.report.baselined and not _NOT_OF_BASELINE.intersection(view.again):
            yield _step(view, "accept these findings, report only new ones", "baseline")
    worst = ordered(view.shown, view.rules, CONSEQUENCE)[0]
    yield Step("read why it matters and when to ignore it", f"ldlm-lint explain {worst.rule}")
    yield from _probing(view)


def _fixing(view: View) -> Iterator[Step]:
    findings = view.shown
    safe, decision = fixable(findings, Applicability.SAFE), fixable(findings, Applicability.UNSAFE)
    direct = safe + decision if view.unsafe else safe
    unsafe = " --unsafe-fixes" if view.unsafe or not safe else ""
    if (safe or decision) and view.fixed is None:
        yield _step(view, "see the changes without writing them", f"--diff{unsafe}")
    if direct and view.fixed is None:
        what = "all fixes" if view.unsafe else "the safe fixes"
        yield _step(view, f"apply {what} ({count(direct, 'finding')})", f"--fix{unsafe}")
    asked = decision + trades(findings).total()
    if asked:
        yield _step(view, f"decide on each fix ({count(safe + asked, 'finding')})", "--fix --interactive")


def _probing(view: View) -> Iterator[Step]:
    """The run that confirms or refutes most of the findings that a probe observes."""
    report = view.report
    commands = (settling(report, one, view.rules[one.rule], view.base) for one in view.shown if is_open(one))
    counts = Counter(command for command in commands if command is not None)
    for command, number in counts.most_common(1):
        yield Step(f"confirm or refute {count(number, 'finding')} in a run", clean(command))


def _step(view: View, purpose: str, words: str) -> Step:
    """A step of the program with the arguments that selected the files and rules of this run."""
    return Step(purpose, clean(" ".join(("ldlm-lint", words, *(view.again or ())))))
