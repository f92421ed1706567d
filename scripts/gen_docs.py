"""Writes docs/rules.md from the rules and their fixtures; ``--check`` only says whether the file is up to date."""

from __future__ import annotations

import argparse
import difflib
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from harness import Case, cases, contents  # noqa: E402

from ldlm_lint.examples import shown  # noqa: E402
from ldlm_lint.model import Rule  # noqa: E402
from ldlm_lint.report.page import default, fix_level, fixing, probe  # noqa: E402
from ldlm_lint.rules import ALL  # noqa: E402

TARGET = ROOT / "docs" / "rules.md"
FAMILIES = {
    "68": "The linter itself",
    "71": "Data loading",
    "72": "Distributed training",
    "73": "Optimizer, accumulation and schedule",
    "75": "Memory and host time",
    "76": "Checkpoint files",
    "78": "Precision, compile and loss",
}
INTRODUCTION = """\
# Rules

<!-- Written by scripts/gen_docs.py from ldlm_lint/rules and tests/fixtures; do not edit. -->

The letter of a code is the severity: **E** crashes, hangs, corrupts or trains wrongly, **W** is a real risk or a large
waste, **R** leaves speed or memory unused, **I** is worth knowing and never fails CI. The consequence is what the defect
leads to: `hang`, `crash`, `wrong-result`, `data-loss`, `security`, `slow`, `memory`, `disk`, `deprecated` or `config`, the worst
first, as reports are ordered; `--select hang,crash` names these rules. A fix is *safe* where it
cannot change behaviour (`--fix`), *unsafe* where it may (`--fix --unsafe-fixes`), or *display*: shown, never written.
`ldlm-lint explain NAME` prints a rule's page, `# ldlm-lint: ignore[NAME] reason` silences it on a line.
"""
_ARTEFACTS = {"py": "Python", "sh": "shell scripts", "cfg": "configuration files"}
_LANGUAGES = {".py": "python", ".sh": "bash", ".yaml": "yaml", ".toml": "toml"}
_CONTEXT = 2


def document(rules: Iterable[Rule], examples: Iterable[Case]) -> str:
    """The whole of docs/rules.md."""
    rules, examples = list(rules), list(examples)
    shown = {(case.symbol, case.path.stem): case for case in examples}
    pages = [page(rule, shown.get((rule.symbol, "bad")), shown.get((rule.symbol, "good"))) for rule in rules]
    return "\n".join([INTRODUCTION, *_index(rules), *pages])


def page(rule: Rule, bad: Case | None, good: Case | None) -> str:
    """The section of one rule, with its examples where it has some."""
    return "\n".join([f"## {rule.symbol}\n", *_facts(rule), *_sections(rule, bad, good)])


def _index(rules: list[Rule]) -> Iterator[str]:
    for family in sorted({rule.family for rule in rules}, key=list(FAMILIES).index):
        yield f"### {FAMILIES[family]}\n"
        yield "| consequence | code | name | severity | default | fix | what it finds |"
        yield "|---|---|---|---|---|---|---|"
        for rule in (one for one in rules if one.family == family):
            cells = (
                rule.consequence.value,
                rule.code,
                f"[{rule.symbol}](#{rule.symbol})",
                rule.severity.label,
                default(rule),
                fix_level(rule),
                rule.summary,
            )
            yield _row(cells)
        yield ""


def _facts(rule: Rule) -> Iterator[str]:
    rows = {
        "Consequence": rule.consequence.value,
        "Code": rule.code,
        "Severity": rule.severity.label,
        "Default": default(rule),
        "Reads": ", ".join(_ARTEFACTS[one] for one in rule.reads),
        "Confidence": rule.confidence.label,
        "Fix": fix_level(rule),
        "Since": f"{rule.since} ({rule.status})",
        "Instead": rule.successor,
        "Versions": rule.versions,
        "Old names": ", ".join(rule.old_names),
    }
    yield "| | |"
    yield "|---|---|"
    yield from (_row(row) for row in rows.items() if row[1])
    yield ""


def _row(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _sections(rule: Rule, bad: Case | None, good: Case | None) -> Iterator[str]:
    yield f"### What it does\n\n{rule.summary}\n"
    yield f"### Why it costs\n\n{rule.rationale}\n\n{rule.cost_text}\n"
    if bad is not None:
        yield f"### Bad\n\n{_code(contents(bad.path))}"
    if good is not None:
        yield f"### Good\n\n{_code(contents(good.path))}"
    yield f"### When not to follow it\n\n{rule.exceptions}\n"
    if rule.fix_safety:
        yield f"### Fix safety\n\n{rule.fix_safety}\n"
    if bad is not None and bad.fixed.exists():
        change = _diff(contents(bad.path), contents(bad.fixed))
        yield f"What `{fixing(rule)}` does to the bad example:\n\n{change}"
    if rule.options:
        yield "### Options\n\nIn `[tool.ldlm-lint]` of `pyproject.toml`:\n\n| name | default | meaning |\n|---|---|---|"
        yield "\n".join(_row((f"`{one.name}`", f"`{one.default}`", one.help)) for one in rule.options) + "\n"
    yield f"### How to verify\n\n{rule.verification}\n"
    if rule.probe:
        yield f"*Probe*: {probe(rule.probe)}\n"
    yield "### References\n"
    yield "\n".join(f"- [{one.title}]({one.url})" for one in rule.references) + "\n"


def _code(files: Mapping[str, bytes]) -> str:
    """The files of an example as fenced code, each under its name where there are several."""
    blocks = []
    for name, data in files.items():
        if text := shown(data):
            title = f"`{name}`\n\n" if len(files) > 1 else ""
            blocks.append(f"{title}```{_LANGUAGES[Path(name).suffix]}\n{text}```\n")
    return "\n".join(blocks)


def _diff(before: Mapping[str, bytes], after: Mapping[str, bytes]) -> str:
    parts = []
    for name in sorted(before):
        old, new = shown(before[name]).splitlines(keepends=True), shown(after[name]).splitlines(keepends=True)
        parts += difflib.unified_diff(old, new, name, name, n=_CONTEXT)
    return f"```diff\n{''.join(parts)}```\n"


def main(arguments: list[str] | None = None) -> int:
    """Write the file, or with ``--check`` compare it; 1 where it is out of date."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; exit with 1 where the file is out of date")
    parser.add_argument("--output", type=Path, default=TARGET, help="the file to write or compare")
    options = parser.parse_args(arguments)
    wanted = document(ALL, cases())
    path: Path = options.output
    if not options.check:
        path.write_text(wanted, encoding="utf-8", newline="\n")
        return 0
    if path.is_file() and path.read_text(encoding="utf-8") == wanted:
        return 0
    print(f"{path} is out of date: run `python scripts/gen_docs.py`", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
