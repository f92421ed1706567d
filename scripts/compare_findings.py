"""Compares the findings of two versions of the linter for the same checkouts.

    python scripts/compare_findings.py OLD NEW CHECKOUT... [--json] [--save FOLDER] [--options "--select ALL"]

OLD and NEW are each

- a command that lints the folder it is in (``"/path/to/ldlm-lint"``, ``"python -m ldlm_lint"``);
- a Python interpreter, or the folder of a virtual environment, whose ``ldlm_lint`` is run;
- a report that ``--format json`` printed, or a folder of such reports named after the checkouts.

Findings are matched by rule and place, since both sides see the same files. It lists findings that are gone (``-``),
new (``+``) or changed (``~``): level, message, the fix and its level, related places, fingerprint; also the counts of
the summaries (suppressed, unsure, ...) and errors. ``--save FOLDER`` keeps the reports as ``FOLDER/old`` and
``FOLDER/new``, which a later comparison can name. Exit code 0: nothing differs; 1: something does; 2: a report is
missing.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shlex
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

Finding = Mapping[str, Any]
RUN = ("check", "--format", "json", "--no-cache", ".")
LINT_EXIT_CODES = (0, 1, 3)
# `python -m` looks for modules in the folder it is in first, which is the checkout: its code must not run.
SAFE = {"PYTHONSAFEPATH": "1"}
# The fields of a finding by readable names; other fields are compared under their own names.
TOPICS = {
    "level": ("severity", "confidence"),
    "rule": ("code", "consequence"),
    "message": ("message",),
    "place": ("line", "column", "end_line", "end_column"),
    "related places": ("related",),
    "fingerprint": ("fingerprint",),
}
# The address of a page, and the fields that a finding is matched by.
UNCOMPARED = frozenset(("url", "rule", "path", "cell", "fix"))
WIDTH = 160


class Missing(Exception):
    """Why there is no report of a side."""


@dataclass(frozen=True)
class Result:
    """A report, and the CPU time in seconds of its run, if it ran here."""

    report: Mapping[str, Any]
    cpu: float | None = None


@dataclass(frozen=True)
class Change:
    """One finding on both sides, and the differences: by topic, before and after."""

    old: Finding
    new: Finding
    topics: Mapping[str, tuple[Any, Any]]


@dataclass(frozen=True)
class Difference:
    """The differences of two reports of one checkout."""

    name: str
    counts: tuple[int, int]
    gone: Sequence[Finding] = ()
    new: Sequence[Finding] = ()
    changed: Sequence[Change] = ()
    # Counts of the summary and fields that only one side's findings have: before and after.
    summary: Mapping[str, tuple[Any, Any]] = field(default_factory=dict)
    errors: tuple[Sequence[Any], Sequence[Any]] = ((), ())
    cpu: tuple[float | None, float | None] = (None, None)

    def __bool__(self) -> bool:
        return bool(self.gone or self.new or self.changed or self.summary or any(self.errors))


# -- the sides ---------------------------------------------------------------------------------------------------


def side(text: str) -> Callable[[Path, Sequence[str]], Result]:
    """How reports of a side are had: run, or read."""
    path = Path(text)
    if path.is_file() and path.suffix == ".json":
        return lambda checkout, options: read(path)
    if path.is_dir() and not (path / "pyvenv.cfg").exists():
        return lambda checkout, options: read(path / f"{checkout.name}.json")
    command = command_of(text)
    return lambda checkout, options: run(command, checkout, options)


def command_of(text: str) -> list[str]:
    """The command for an interpreter, a virtual environment or a command line."""
    path = Path(text)
    if path.is_dir():
        return [os.path.abspath(path / ("Scripts" if os.name == "nt" else "bin") / "python"), "-m", "ldlm_lint"]
    first, *rest = [text] if path.is_file() else shlex.split(text)
    # It runs in the folder of the checkout, where a relative path leads nowhere.
    words = [os.path.abspath(first) if Path(first).is_file() else first, *rest]
    return [*words, "-m", "ldlm_lint"] if not rest and Path(first).name.startswith("python") else words


def run(command: Sequence[str], checkout: Path, options: Sequence[str]) -> Result:
    """The report of a command over a checkout; raises Missing for an unexpected exit code."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    line, environment = [*command, *RUN, *options], os.environ | SAFE
    done = subprocess.run(line, cwd=checkout, env=environment, capture_output=True, text=True, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode not in LINT_EXIT_CODES:
        raise Missing(f"{shlex.join(command)} ended with {done.returncode} in {checkout}: {done.stderr[-1000:]}")
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Result(json.loads(done.stdout), cpu)


def read(path: Path) -> Result:
    """A report that was saved; raises Missing."""
    try:
        return Result(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError) as error:
        raise Missing(f"{path}: {error}") from error


# -- the comparison ----------------------------------------------------------------------------------------------


def compare(name: str, old: Result, new: Result) -> Difference:
    """The differences between two reports of one checkout."""
    before, after = old.report["findings"], new.report["findings"]
    pairs, gone, appeared = matched(before, after)
    one_sided = fields_of_one_side(before, after)
    changes = [Change(a, b, topics) for a, b in pairs if (topics := differing(a, b, one_sided))]
    counted = {f"findings with {name}": count for name, count in one_sided.items()}
    errors = without(old.report["errors"], new.report["errors"]), without(new.report["errors"], old.report["errors"])
    return Difference(
        name,
        (len(before), len(after)),
        gone,
        appeared,
        changes,
        summary_of(old.report["summary"], new.report["summary"]) | counted,
        errors,
        (old.cpu, new.cpu),
    )


def matched(
    before: Iterable[Finding], after: Iterable[Finding]
) -> tuple[list[tuple[Finding, Finding]], list[Finding], list[Finding]]:
    """Pairs of findings of the same rule at the same place (then: line, then: with the same fingerprint), and the rest."""
    pairs = []
    rest, others = list(before), list(after)
    for parts in (
        ("rule", "path", "cell", "line", "column"),
        ("rule", "path", "cell", "line"),
        ("rule", "fingerprint"),
    ):
        waiting = defaultdict(list)
        for finding in others:
            waiting[tuple(finding.get(part) for part in parts)].append(finding)
        unmatched = []
        for finding in rest:
            found = waiting[tuple(finding.get(part) for part in parts)]
            if found:
                pairs.append((finding, found.pop(0)))
            else:
                unmatched.append(finding)
        rest, others = unmatched, [finding for found in waiting.values() for finding in found]
    return pairs, rest, others


def fields_of_one_side(before: Sequence[Finding], after: Sequence[Finding]) -> dict[str, tuple[int, int]]:
    """The fields that findings of one version alone can have, with their counts on each side."""
    sides = [Counter(name for finding in found for name in finding) for found in (before, after)]
    if not (before and after):
        return {}
    return {name: (sides[0][name], sides[1][name]) for name in sides[0].keys() ^ sides[1].keys()}


def differing(old: Finding, new: Finding, ignored: Iterable[str]) -> dict[str, tuple[Any, Any]]:
    """The topics in which two findings differ, with the values before and after."""
    named = {name for names in TOPICS.values() for name in names}
    others = (old.keys() | new.keys()) - named - UNCOMPARED - set(ignored)
    topics = TOPICS | {name: (name,) for name in sorted(others)}
    values = {topic: tuple([one.get(name) for name in names] for one in (old, new)) for topic, names in topics.items()}
    values |= fixes(old.get("fix") or {}, new.get("fix") or {})
    return {topic: (a, b) for topic, (a, b) in values.items() if a != b}


def fixes(old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, tuple[Any, Any]]:
    """The level of a fix without its edits."""
    levels = old.get("applicability"), new.get("applicability")
    before, after = ({name: value for name, value in one.items() if name != "applicability"} for one in (old, new))
    return {"fix level": levels, "fix": (before, after)}


def summary_of(old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, tuple[Any, Any]]:
    """The counts of the summary that are not about findings: files, suppressed, unsure, excluded, ..."""
    explained = {"findings", "errors", "warnings", "refactors", "infos", "fixable"}
    names = sorted((old.keys() | new.keys()) - explained)
    return {name: (old.get(name), new.get(name)) for name in names if old.get(name) != new.get(name)}


def without(some: Iterable[Any], others: Sequence[Any]) -> list[Any]:
    """Those that the others do not have."""
    return [one for one in some if one not in others]


# -- the output --------------------------------------------------------------------------------------------------


def lines(difference: Difference) -> Iterator[str]:
    """The text of one checkout."""
    old, new = difference.counts
    parts = [f"{len(difference.gone)} gone", f"{len(difference.new)} new", f"{len(difference.changed)} changed"]
    cpu = " -> ".join("saved" if one is None else f"{one:.1f} s" for one in difference.cpu)
    yield f"{difference.name}: {old} findings -> {new}; {', '.join(parts)}; CPU {cpu}"
    marked = [("-", finding) for finding in difference.gone] + [("+", finding) for finding in difference.new]
    for sign, finding in sorted(marked, key=lambda one: (one[1]["path"], one[1]["line"], one[1]["rule"])):
        yield f"  {sign} {headline(finding)}"
        yield f"      {clipped(finding['message'])}"
    for change in difference.changed:
        yield f"  ~ {headline(change.new)}"
        for topic, (before, after) in change.topics.items():
            yield from (
                f"      {topic}: {clipped(shown(before))}",
                f"      {' ' * len(topic)}  {clipped(shown(after))}",
            )
    for name, (before, after) in difference.summary.items():
        yield f"  {name}: {clipped(shown(before))} -> {clipped(shown(after))}"
    for sign, errors in zip("-+", difference.errors, strict=True):
        yield from (f"  {sign} error {error['path']}:{error['line']} {clipped(error['message'])}" for error in errors)


def headline(finding: Finding) -> str:
    """Where a finding is, its level and its rule."""
    return f"{finding['path']}:{finding['line']}:{finding['column']} {finding['severity']} {finding['rule']}"


def shown(value: Any) -> str:
    """A value of a report on one line."""
    if isinstance(value, list) and len(value) == 1:
        value = value[0]
    return value if isinstance(value, str) else json.dumps(value)


def clipped(text: str) -> str:
    """A text in one line of bounded width."""
    line = " ".join(text.split())
    return line if len(line) <= WIDTH else line[: WIDTH - 3] + "..."


def totals(differences: Sequence[Difference]) -> Iterator[str]:
    """The totals over all checkouts, by rule."""
    counts = [
        Counter(one["rule"] for difference in differences for one in found(difference))
        for found in (lambda d: d.gone, lambda d: d.new, lambda d: [change.new for change in d.changed])
    ]
    old, new = (sum(difference.counts[at] for difference in differences) for at in (0, 1))
    yield f"{len(differences)} checkouts, {sum(map(bool, differences))} differ; {old} findings -> {new}"
    for rule in sorted(set().union(*counts), key=lambda rule: -sum(count[rule] for count in counts)):
        gone, appeared, changed = (count[rule] for count in counts)
        yield f"  {rule}: {gone} gone, {appeared} new, {changed} changed"


def as_json(differences: Sequence[Difference]) -> str:
    """The differences for a program to read."""
    found = [vars(one) | {"changed": [vars(change) for change in one.changed]} for one in differences]
    return json.dumps(found, indent=2)


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """The arguments."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("old", help="a command, an interpreter, a virtual environment, a report or a folder of them")
    parser.add_argument("new", help="likewise")
    parser.add_argument("checkouts", nargs="+", type=Path)
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--save", type=Path, metavar="FOLDER", help="keep the reports below it, in old and new")
    parser.add_argument("--options", default="", help="more options for both runs, such as '--select ALL'")
    return parser.parse_args(arguments)


def both(args: argparse.Namespace, checkout: Path) -> Difference:
    """The comparison of one checkout; raises Missing."""
    results = [side(text)(checkout, shlex.split(args.options)) for text in (args.old, args.new)]
    for name, result in zip(("old", "new"), results, strict=True) if args.save else ():
        (args.save / name).mkdir(parents=True, exist_ok=True)
        text = json.dumps(result.report, indent=2) + "\n"
        (args.save / name / f"{checkout.name}.json").write_text(text, encoding="utf-8")
    return compare(checkout.name, *results)


def main(arguments: Sequence[str] | None = None) -> int:
    """Compare and print; the exit code says whether something differs."""
    args = parse(arguments)
    differences, missing = [], []
    for checkout in (path.resolve() for path in args.checkouts):
        try:
            differences.append(both(args, checkout))
        except Missing as error:
            missing.append(str(error))
            continue
        if not args.json:
            print(*lines(differences[-1]), sep="\n", flush=True)
    print(as_json(differences) if args.json else "\n".join(["", *totals(differences)]))
    print(*missing, sep="\n", end="\n" if missing else "", file=sys.stderr)
    return 2 if missing else int(any(differences))


if __name__ == "__main__":
    sys.exit(main())
