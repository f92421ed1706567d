"""``ldlm-lint probe judge``: judges folders of evidence without running anything."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ldlm_lint.arguments import UsageError
from ldlm_lint.commands.output import FAILURE, FINDINGS, OK, STDOUT, check_page, fail, write_document
from ldlm_lint.options import configure_page, configure_target

if TYPE_CHECKING:
    from ldlm_lint.evidence.listed import Listed
    from ldlm_lint.evidence.model import Evidence, Judgement


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``probe judge``."""
    parser.epilog = (
        "exit codes: 0 no defect was verified; 1 a defect was verified in a watched program, of a rule that fails `ldlm-lint "
        "check` here (not of opt-in rules and trades); 2 invalid usage; 3 unreadable evidence. `ldlm-lint check --evidence DIR` shows the verdicts next to the findings."
    )
    parser.add_argument(
        "places", nargs="+", type=Path, metavar="DIR", help="folders that a probe wrote, or single evidence files"
    )
    parser.add_argument(
        "--findings",
        type=Path,
        metavar="FILE",
        help="a report of `ldlm-lint --format json`: show which finding each verdict belongs to, and which have none",
    )
    configure_target(parser)
    parser.add_argument(
        "--json", metavar="FILE", help="also write the verdicts as JSON; - is stdout, without the table"
    )
    configure_page(parser, "the verdicts")


def run(arguments: argparse.Namespace) -> int:
    """Judge the evidence, print it, and return the exit code."""
    from ldlm_lint.evidence import files, listed
    from ldlm_lint.evidence.gating import failing
    from ldlm_lint.evidence.model import EvidenceError
    from ldlm_lint.evidence.verdicts import assess
    from ldlm_lint.report.verdict_table import write_verdicts
    from ldlm_lint.report.verdicts_json import render

    missing = next((place for place in arguments.places if not place.exists()), None)
    if missing is not None:
        raise UsageError(f"{missing}: no such file or folder")
    check_page(arguments.json, arguments.html)
    try:
        evidence, faults = files.gather(arguments.places)
        findings = listed.read(arguments.findings) if arguments.findings else None
    except EvidenceError as error:
        return fail(FAILURE, str(error))
    assessed = assess(evidence, arguments.target or "")
    # An experiment shows what a defect costs on its machine, not that it is there.
    experiments = [judgement for one in evidence if one.run.kind != "watch" for judgement in one.judgements]
    notes = (*_notes(evidence), *assessed.notes, *_about(assessed.judgements, findings))
    if arguments.json:
        text = render(assessed.judgements, evidence=evidence, notes=notes)
        write_document(arguments.json, text)
    answered = [*experiments, *(one for one in assessed.judgements if listed.of(one, findings or ()))]
    launch, unwatched = _launch(evidence), all(one.run.kind != "watch" for one in evidence)
    if STDOUT not in (arguments.json, arguments.html):
        write_verdicts(
            assessed.judgements, sys.stdout, notes=notes, answered=answered, launch=launch, experiments=unwatched
        )
    if arguments.html:
        from ldlm_lint.report.html import verdicts as page

        places = tuple(map(str, arguments.places))
        subject = page.Subject(evidence, notes, answered, findings, places, launch, unwatched)
        write_document(arguments.html, page.page(assessed.judgements, subject), "--html")
    if faults:
        return fail(FAILURE, "; ".join(faults))
    seen = (one for one in assessed.judgements if one not in experiments)
    return FINDINGS if failing(seen, Path.cwd()) else OK


def _launch(evidence: Sequence[Evidence]) -> tuple[str, ...]:
    """The command that was watched; empty if there are several."""
    commands = {one.run.command for one in evidence if one.run.kind == "watch"}
    return commands.pop() if len(commands) == 1 else ()


def _notes(evidence: Sequence[Evidence]) -> Iterator[str]:
    """Notes about each run: how it ended, what could not be observed, the ranks without evidence."""
    from ldlm_lint.evidence.account import account

    runs: dict[tuple[str, str], list[Evidence]] = {}
    for one in evidence:
        runs.setdefault((one.run.kind, one.run.run_id), []).append(one)
    for ranks in runs.values():
        command = " ".join(ranks[0].run.command)
        several = f"{command}: " if len(runs) > 1 and command else ""
        yield from (f"{several}{note}" for note in account(ranks))


def _about(judgements: Sequence[Judgement], findings: Sequence[Listed] | None) -> Iterator[str]:
    """The findings of a report that have verdicts, and the number without."""
    from ldlm_lint.evidence import listed

    if findings is None:
        return
    told = set()
    for judgement in judgements:
        for finding in listed.of(judgement, findings):
            told.add(finding)
            yield f"the finding {finding.rule} at {finding.place}: {judgement.verdict.value}"
    untold = sum(one not in told for one in findings)
    yield f"{len(findings)} findings in the report, {untold} of them without a verdict"
