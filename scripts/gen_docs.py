"""Writes docs/rules.md and docs/rules/ from the rules and their fixtures; ``--check`` only says which page is out of date."""

from __future__ import annotations

import argparse
import difflib
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from harness import Case, cases, contents, lint, materialize  # noqa: E402

from ldlm_lint.examples import Small, shown, small  # noqa: E402
from ldlm_lint.model import Applicability, Finding, Rule  # noqa: E402
from ldlm_lint.report.page import default, fix_level, fixing  # noqa: E402
from ldlm_lint.report.rule_markdown import change, code, diff, sections  # noqa: E402
from ldlm_lint.rules import ALL  # noqa: E402

DOCS = ROOT / "docs"
INDEX, PAGES = "rules.md", "rules"
NOTE = "<!-- Written by scripts/gen_docs.py from ldlm_lint/rules and tests/fixtures; do not edit. -->"
INTRODUCTION = f"""\
# Rules

{NOTE}

Each rule finds one kind of defect. The consequence is the worst thing that the defect usually leads to, and the worst comes
first: `hang`, `crash`, `wrong-result`, `data-loss`, `security`, `slow`, `memory`, `disk`, `deprecated`, `config`.
The first letter of a code is the severity: **E**rror, **W**arning, **R**efactor (speed or memory is left unused) or **I**nfo, which never fails a check.
A *safe* fix cannot change behaviour (`--fix`), an *unsafe* fix can (`--fix --unsafe-fixes`), a *display* fix is only shown.

- `ldlm-lint --select hang,crash PATH` runs the rules of these consequences, `--extend-select NAME` adds an opt-in rule.
- `ldlm-lint explain NAME` prints a rule's page in the terminal.
"""
MARK = "  # <-- here"
_ARTEFACTS = {"py": "Python", "sh": "shell scripts", "cfg": "configuration files"}
_BY_HAND = "The change, made by hand:"
_CONTEXT = 2


def pages() -> dict[str, str]:
    """Every page by its path below docs/."""
    examples = {(case.symbol, case.path.stem): case for case in cases()}
    rules = ranked(ALL)
    found = {INDEX: index(rules)}
    for rule in rules:
        found[f"{PAGES}/{rule.symbol}.md"] = page(rule, {kind: case for (symbol, kind), case in examples.items() if symbol == rule.symbol})
    return found


def ranked(rules: Iterable[Rule]) -> list[Rule]:
    """The rules in the order of the index: by consequence, by severity, by name."""
    return sorted(rules, key=lambda rule: (rule.consequence.rank, -rule.severity, rule.symbol))


def index(rules: Iterable[Rule]) -> str:
    """The table of all rules. The anchor of a row is where links to the rule led before it had a page of its own."""
    rows = ["| consequence | rule | what it finds | fix | default | code |", "|---|---|---|---|---|---|"]
    for rule in rules:
        name = f'<a id="{rule.symbol}"></a>[{rule.symbol}]({PAGES}/{rule.symbol}.md)'
        rows.append(_row((rule.consequence.value, name, rule.summary, fix_level(rule), default(rule), rule.code)))
    return "\n".join([INTRODUCTION, *rows]) + "\n"


def page(rule: Rule, examples: Mapping[str, Case]) -> str:
    """The page of one rule; ``examples`` are its cases by the stem of their file."""
    parts = [f"# {rule.symbol}\n\n{NOTE}", rule.summary, f"*{_brief(rule)}*"]
    if short := examples.get("bad_short"):
        parts += _short(rule, short)
    parts += (f"## {title}\n\n{text}" for title, text in sections(rule))
    if bad := examples.get("bad"):
        parts += _long(rule, bad, examples.get("good"))
    return "\n\n".join([*parts, "## Facts", _facts(rule)]) + "\n"


def reported(case: Case) -> list[tuple[str, Finding]]:
    """What the linter reports of a rule's own case, run on it here and now, each with its place in the case."""
    with tempfile.TemporaryDirectory() as folder:
        root = materialize(case, case.path, Path(folder).resolve() / "project")
        report = lint(root)
    own = [finding for finding in report.findings if finding.rule == case.symbol]
    return [(f"line {report.sources[finding.span.path].position(finding.span.start)[0]}", finding) for finding in own]


def _brief(rule: Rule) -> str:
    fix = "no fix" if rule.applicability is None else f"{fix_level(rule)} fix"
    return f"{rule.consequence.value} · {rule.severity.label} · {'on by default' if rule.default else 'opt-in'} · {fix} · {rule.code}"


def _short(rule: Rule, case: Case) -> Iterator[str]:
    """The example of a few lines with the reported ones marked, what is printed for them, and the change that ends it."""
    files = small(rule.symbol)
    yield "## Example"
    for file in files:
        yield from [f"`{file.name}`"] * (len(files) > 1)
        yield code(file.name, _marked(file))
    found = reported(case)
    for place, finding in found:
        yield f"`ldlm-lint` reports {place}:"
        yield f"> **{rule.consequence.value}**: {rule.text(finding.args)}"
    yield f"## Fix\n\n{_applied(rule, found) if files[0].applied else _BY_HAND}"
    for file in files:
        if changed := change(file):
            yield diff(changed)


def _marked(file: Small) -> str:
    """The lines of an example with a mark on the reported ones; that a comment may stand there the fixture shows, which has one."""
    lines = enumerate(file.bad.splitlines(), 1)
    return "".join(f"{line}{MARK if number in file.reported else ''}\n" for number, line in lines)


def _applied(rule: Rule, found: Iterable[tuple[str, Finding]]) -> str:
    levels = {finding.fix.applicability for _, finding in found if finding.fix is not None}
    safe = levels == {Applicability.SAFE} and not rule.trade
    return f"`ldlm-lint {'--fix' if safe else fixing(rule)}` writes:"


def _long(rule: Rule, bad: Case, good: Case | None) -> Iterator[str]:
    yield "## Longer example"
    yield f"<details>\n<summary>Code with the defect, and what is not reported</summary>\n\n**With the defect**\n\n{_files(contents(bad.path))}"
    if bad.fixed.exists():
        yield f"**What `{fixing(rule)}` changes**\n\n{_patch(contents(bad.path), contents(bad.fixed))}"
    if good is not None:
        yield f"**Not reported**\n\n{_files(contents(good.path))}"
    yield "</details>"


def _files(files: Mapping[str, bytes]) -> str:
    """The files of an example as fenced code, each under its name where there are several."""
    blocks = []
    for name, data in files.items():
        if text := shown(data):
            blocks.append((f"`{name}`\n\n" if len(files) > 1 else "") + code(name, text))
    return "\n\n".join(blocks)


def _patch(before: Mapping[str, bytes], after: Mapping[str, bytes]) -> str:
    parts: list[str] = []
    for name in sorted(before):
        old, new = shown(before[name]).splitlines(keepends=True), shown(after[name]).splitlines(keepends=True)
        parts += difflib.unified_diff(old, new, name, name, n=_CONTEXT)
    return diff("".join(parts))


def _facts(rule: Rule) -> str:
    facts = {
        "code": rule.code,
        "consequence": rule.consequence.value,
        "severity": rule.severity.label,
        "confidence": rule.confidence.label,
        "default": default(rule),
        "fix": fix_level(rule),
        "reads": ", ".join(_ARTEFACTS[kind] for kind in rule.reads),
        "since": f"{rule.since} ({rule.status})",
        "instead": rule.successor,
        "old names": ", ".join(rule.old_names),
    }
    given = {name: text for name, text in facts.items() if text}
    return "\n".join((_row(given), "|---" * len(given) + "|", _row(given.values())))


def _row(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def stale(wanted: Mapping[str, str], folder: Path) -> list[Path]:
    """The pages that are missing, differ from what is wanted, or belong to no rule any more."""
    differing = [folder / name for name, text in wanted.items() if not _holds(folder / name, text)]
    return differing + [path for path in sorted((folder / PAGES).glob("*")) if f"{PAGES}/{path.name}" not in wanted]


def _holds(path: Path, text: str) -> bool:
    return path.is_file() and path.read_text(encoding="utf-8") == text


def write(wanted: Mapping[str, str], folder: Path) -> None:
    """Write the pages that differ, and remove those of rules that are gone."""
    (folder / PAGES).mkdir(parents=True, exist_ok=True)
    for path in stale(wanted, folder):
        name = path.relative_to(folder).as_posix()
        if name in wanted:
            path.write_text(wanted[name], encoding="utf-8", newline="\n")
        else:
            path.unlink()


def main(arguments: list[str] | None = None) -> int:
    """Write the pages, or with ``--check`` compare them; 1 where one is out of date."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; exit with 1 where a page is out of date")
    parser.add_argument("--output", type=Path, default=DOCS, metavar="FOLDER", help="the folder in place of docs/")
    options = parser.parse_args(arguments)
    wanted = pages()
    if not options.check:
        write(wanted, options.output)
        return 0
    outdated = stale(wanted, options.output)
    for path in outdated:
        print(f"{path} is out of date: run `python scripts/gen_docs.py`", file=sys.stderr)
    return 1 if outdated else 0


if __name__ == "__main__":
    sys.exit(main())
