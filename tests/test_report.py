"""What the reports look like: the text to the character, the JSON against its published schema."""

from __future__ import annotations

import io
import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
from collected import for_every
from jsonschema import Draft202012Validator
from rich.cells import cell_len

from ldlm_lint.autofix.apply import Applied
from ldlm_lint.model import (
    Applicability,
    Confidence,
    Consequence,
    Edit,
    Finding,
    Fix,
    Identity,
    Problem,
    Reference,
    Related,
    Report,
    Rule,
    Span,
)
from ldlm_lint.report import full, summary
from ldlm_lint.report.cells import clean
from ldlm_lint.report.console import wants_colour
from ldlm_lint.report.excerpt import excerpt
from ldlm_lint.report.json import document, render
from ldlm_lint.report.page import page
from ldlm_lint.report.patch import patch
from ldlm_lint.report.view import Fixed, View
from ldlm_lint.rules import ALL
from ldlm_lint.source import Kind, Source

BASE = Path("/p")
SCHEMA = json.loads((Path(__file__).parents[1] / "docs" / "findings.schema.json").read_text(encoding="utf-8"))


def make_rule(code: str, symbol: str, message: str, consequence: Consequence = Consequence.SLOW) -> Rule:
    texts = dict.fromkeys(("summary", "rationale", "cost", "exceptions", "versions", "verification"), "Some text.")
    return Rule(
        code=code,
        symbol=symbol,
        consequence=consequence,
        message=message,
        references=(Reference("NCCL", "https://example.org/nccl"),),
        reads=("sh",),
        triggers=(),
        **texts,
    )


RULES = {
    one.symbol: one
    for one in (
        make_rule("W7201", "heartbeat", "%(name)s waits %(days).1f days"),
        make_rule("W7206", "monitoring-off", "monitoring is off"),
        make_rule("R7301", "not-fused", "fused is not set"),
        make_rule("E7104", "no-workers", "no workers", Consequence.CRASH),
    )
}
SCRIPT = Source("/p/run.sh", b"# launch\nexport BEAT=12000000\nexport MON=0\n\ntorchrun train.py\n", Kind.SHELL)
MODULE = Source("/p/src/train.py", "ü = 1\n\topt = Adam(\n\t\tü,\n\t)\nrun(opt)\n".encode(), Kind.PYTHON)


def span(source: Source, piece: str) -> Span:
    start = source.data.index(piece.encode())
    return Span(source.path, start, start + len(piece.encode()))


def sample() -> Report:
    block = Fix(
        "set BEAT to 1800; set MON to 1",
        (Edit(span(SCRIPT, "12000000"), "1800"), Edit(span(SCRIPT, "MON=0"), "MON=1")),
        Applicability.UNSAFE,
        "the watchdog comes into force",
    )
    call = span(MODULE, "Adam(\n\t\tü,\n\t)")
    end = Span(MODULE.path, call.end - 2, call.end - 2)
    return Report(
        findings=(
            Finding(
                "heartbeat",
                "W7201",
                span(SCRIPT, "BEAT=12000000"),
                (("name", "BEAT"), ("days", 138.88)),
                related=(Related(span(MODULE, "run(opt)"), "the run that waits"),),
                fix=block,
            ),
            Finding("monitoring-off", "W7206", span(SCRIPT, "MON=0"), fix=block),
            Finding(
                "not-fused",
                "R7301",
                call,
                confidence=Confidence.MEDIUM,
                fix=Fix("set fused", (Edit(end, "\t\tfused=True,\n"),), Applicability.SAFE),
            ),
            Finding(
                "no-workers",
                "E7104",
                span(MODULE, "run(opt)"),
                fix=Fix("think about it", (), Applicability.DISPLAY, "it depends"),
            ),
        ),
        problems=(Problem("/p/gone.py", 1, "no such file or directory"),),
        files=3,
        suppressed=1,
        unseen=(("/p/run.sh", 7), ("/p/run.sh", 9)),
        excluded=1,
        requested=4,
        sources={source.path: source for source in (SCRIPT, MODULE)},
    )


def written(report: Report, **arguments: object) -> str:
    stream = io.StringIO()
    full.write(View(report, BASE, RULES, colour=wants_colour(stream), **arguments), stream)
    return stream.getvalue()


EXPECTED = """\
slow W7201 heartbeat: BEAT waits 138.9 days
 --> run.sh:2:8
  |
1 | # launch
2 | export BEAT=12000000
  |        ^^^^^^^^^^^^^
3 | export MON=0
  |
 ::: src/train.py:5 the run that waits
help: set BEAT to 1800; set MON to 1
  - export BEAT=12000000
  - export MON=0
2 + export BEAT=1800
3 + export MON=1
note: unsafe fix: the watchdog comes into force

slow W7206 monitoring-off: monitoring is off
 --> run.sh:3:8
  |
2 | export BEAT=12000000
3 | export MON=0
  |        ^^^^^
  |
help: W7201 at run.sh:2:8 has the same fix, shown above

slow R7301[*] not-fused: fused is not set
 --> src/train.py:2:8
  |
1 |   ü = 1
2 |       opt = Adam(
  |  ___________^
3 | |         ü,
4 | |     )
  | |_____^
5 |   run(opt)
  |
help: set fused
4 +         fused=True,

crash E7104 no-workers: no workers
 --> src/train.py:5:1
  |
4 |     )
5 | run(opt)
  | ^^^^^^^^
  |
help: think about it
note: not applied by --fix: it depends

Found 4 findings: 1 crash, 3 slow.
[*] 1 fixable with --fix, 2 fixable after a decision (--fix --interactive), 1 to fix by hand.
3 files read, 1 finding suppressed, 2 parts of scripts and configurations not understood, 1 named path excluded, 1 problem.
Not understood: run.sh:7, run.sh:9.
Next: see the changes without writing them         ldlm-lint --diff
      apply the safe fixes (1 finding)             ldlm-lint --fix
      decide on each fix (3 findings)              ldlm-lint --fix --interactive
      accept these findings, report only new ones  ldlm-lint baseline
      read why it matters and when to ignore it    ldlm-lint explain no-workers
"""


def test_full_text() -> None:
    assert written(sample()) == EXPECTED


def test_quiet_leaves_the_footer_out() -> None:
    assert written(sample(), quiet=True) == EXPECTED[: EXPECTED.index("Found 4")]
    assert written(Report(()), quiet=True) == ""


def test_unsafe_marks_what_the_flags_would_fix() -> None:
    got = written(sample(), unsafe=True)
    assert "slow W7201[*] heartbeat" in got
    assert "crash E7104 no-workers" in got
    assert "[*] 3 fixable with --fix --unsafe-fixes, 1 to fix by hand.\n" in got


def test_footer_without_findings_and_after_fixing() -> None:
    assert written(Report((), files=1)) == "No findings.\n1 file read.\n"
    places = tuple(Applied("heartbeat", f"/p/{name}.sh", line) for line, name in enumerate("abcd", 1))
    places = (Applied("not-fused", "/p/tune.ipynb", 7, cell=3), *places)
    after = written(Report((), files=2), fixed=Fixed(5, 5, places=places))
    assert after == (
        "Fixed 5 findings in 5 files:\n  4 heartbeat: a.sh:1, b.sh:2, c.sh:3 and 1 more\n  1 not-fused: tune.ipynb:cell 3\n"
        "No findings remain.\n2 files read.\nNext: undo these fixes  ldlm-lint undo\n"
    )
    assert written(Report((), files=2), fixed=Fixed(0, 0)) == "No findings.\n2 files read.\n"
    remaining = written(sample(), fixed=Fixed(1, 1, "Silenced"))
    assert "Silenced 1 finding in 1 file.\n4 findings remain: 1 crash, 3 slow.\n" in remaining
    assert "ldlm-lint baseline" not in remaining


@pytest.mark.parametrize(
    "found, line",
    [(None, ""), (6, ""), (7, "  1 more finding gone with them\n"), (3, "  3 new findings became visible through the fixes\n")],
)
def test_what_was_found_is_what_was_fixed_what_is_gone_and_what_remains(found: int | None, line: str) -> None:
    places = (Applied("not-fused", "/p/a.py", 1), Applied("not-fused", "/p/a.py", 2))
    got = written(sample(), fixed=Fixed(2, 1, places=places, found=found))
    assert f"Fixed 2 findings in 1 file:\n  2 not-fused: a.py:1, a.py:2\n{line}4 findings remain: " in got


def test_where_no_fix_is_safe_that_is_said() -> None:
    report = replace(sample(), findings=sample().findings[:2])
    got = written(report, fixed=Fixed(0, 0))
    assert "\nNothing was fixed.\n2 findings remain: 2 slow.\nNone has a safe fix, 2 fixable after a decision" in got
    assert "ldlm-lint --fix --interactive\n" in got and "ldlm-lint --fix\n" not in got and "undo" not in got
    assert "None has a safe fix, 1 to fix by hand.\n" in written(replace(report, findings=sample().findings[3:]))


def test_the_numbers_of_the_summary_add_up() -> None:
    for first, last in ((0, 1), (1, 3), (0, 4)):
        for unsafe in (False, True):
            view = View(replace(sample(), findings=sample().findings[first:last]), BASE, RULES, unsafe=unsafe)
            for text in (summary.found(view).partition(":")[2], summary.fixes(view)):
                assert sum(map(int, re.findall(r"\d+", text))) == last - first


def test_what_the_gate_holds_back_is_counted() -> None:
    gone = Identity("src/train.py", "not-fused", "Trainer.setup", "Adam(m)")
    report = Report((), files=1, root="/p/", baselined=1, unchanged=2, stale=((gone, 3),))
    assert written(report) == (
        "No findings.\n1 file read, 1 finding in the baseline, 2 findings on unchanged lines.\n"
        "3 known findings of the baseline gone, see ldlm-lint baseline --update\n"
    )
    got = document(report, base=BASE, rules=RULES)
    Draft202012Validator(SCHEMA).validate(got)
    assert (got["summary"]["baselined"], got["summary"]["unchanged"]) == (1, 2)
    fingerprint = got["summary"]["stale"][0].pop("fingerprint")
    assert got["summary"]["stale"] == [
        {"rule": "not-fused", "path": "src/train.py", "symbol": "Trainer.setup", "count": 3}
    ]
    assert len(fingerprint) == 32


def test_colours_only_where_they_are_wanted(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "\x1b" not in written(sample())
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm-256color")
    assert "\x1b[1;33mslow\x1b[0m W7201" in written(sample())
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b" not in written(sample())


def block(data: bytes, piece: bytes, message: str = "no workers") -> str:
    source = Source("/p/x.py", data, Kind.PYTHON)
    start = data.index(piece)
    finding = Finding("no-workers", "E7104", Span(source.path, start, start + len(piece)))
    rules = {"no-workers": make_rule("E7104", "no-workers", message)}
    stream = io.StringIO()
    report = Report((finding,), sources={source.path: source})
    full.write(View(report, BASE, rules, quiet=True), stream)
    return stream.getvalue()


def test_markup_of_the_source_is_text() -> None:
    got = block(b"x = '[bold red]'[:smile:]\n", b"[:smile:]", "[link=x]y[/link]")
    assert "1 | x = '[bold red]'[:smile:]\n" in got
    assert "E7104 no-workers: [link=x]y[/link]\n" in got


def test_escape_sequences_do_not_reach_the_terminal() -> None:
    got = block(b"x = '\x1b[31m\xc2\x9b\x7f\xe2\x80\xae' + bad\n", b"bad", "a\x1bb")
    assert not set("\x1b\x9b\x7f\u202e") & set(got)
    assert "1 | x = '␛[31m�␡�' + bad\n  |                  ^^^\n" in got


def test_tabs_and_wide_characters_line_up() -> None:
    got = block("\tx = '模型'\t+ bad\n".encode(), b"bad").splitlines()
    line, marks = got[3], got[4]
    assert cell_len(line[: line.index("bad")]) == cell_len(marks[: marks.index("^")])
    assert marks.count("^") == 3


def test_a_wide_span_is_marked_in_cells() -> None:
    got = block("x = 模型\n".encode(), "模型".encode())
    assert "1 | x = 模型\n  |     ^^^^\n" in got


def test_long_lines_are_never_wrapped_and_keep_the_span_in_sight() -> None:
    got = block(b"x = '" + b"a" * 500 + b"'; bad = 1; y = '" + b"b" * 500 + b"'\n", b"bad", "m" * 300)
    assert "m" * 300 in got
    line, marks = got.splitlines()[3:5]
    assert line[marks.index("^") : marks.rindex("^") + 1] == "bad"
    assert len(line) < 180
    assert line.startswith("1 | …") and line.endswith("…")


def test_many_lines_are_cut_in_the_middle() -> None:
    data = b"f(\n" + b"".join(b"    a%d,\n" % number for number in range(20)) + b")\n"
    rows = [
        (row.number, row.text) for row in excerpt(Source("/p/x.py", data, Kind.PYTHON), Span("/p/x.py", 0, len(data)))
    ]
    assert rows == [
        (1, "/ f("),
        (2, "|     a0,"),
        (3, "|     a1,"),
        (None, "| ... 17 more lines"),
        (21, "|     a19,"),
        (22, "| )"),
        (None, "|_^"),
    ]


@pytest.mark.parametrize(
    "data, start, end, expected",
    [
        pytest.param(b"a\nb\n", 2, 2, [(1, "a"), (2, "b"), (None, "^")], id="empty-span"),
        pytest.param(b"a\nb\n", 0, 2, [(1, "a"), (None, "^"), (2, "b")], id="span-with-its-line-break"),
        pytest.param(b"a\r\nb\r\n", 3, 6, [(1, "a"), (2, "b"), (None, "^")], id="carriage-return"),
        pytest.param(b"\xef\xbb\xbfa", 3, 4, [(1, "a"), (None, "^")], id="byte-order-mark"),
        pytest.param(b"a\n", 2, 2, [(1, "a"), (2, ""), (None, "^")], id="behind-the-last-line"),
    ],
)
def test_excerpt(data: bytes, start: int, end: int, expected: list[tuple[int | None, str]]) -> None:
    rows = excerpt(Source("/p/x.py", data, Kind.PYTHON), Span("/p/x.py", start, end))
    assert [(row.number, row.text) for row in rows] == expected


@for_every("text_", ["", "plain", "\t", "a\tb\tc", "模\t型", "e\u0301\tx", "\x00\x1b", "a\u200bb"])
def test_clean_text_adds_up(text_: str) -> None:
    for end in range(len(text_) + 1):
        assert clean(text_).startswith(clean(text_[:end]))
    assert "\t" not in clean(text_)


def changes(data: bytes, *edits: tuple[int, int, str]) -> list[tuple[str, int | None, str]]:
    source = Source("/p/x.py", data, Kind.PYTHON)
    made = [Edit(Span(source.path, start, end), new) for start, end, new in edits]
    return [(one.sign, one.number, one.text) for one in patch(source, made)]


@for_every(
    "data, edits, expected",
    [
        pytest.param(b"a\nb\nc\n", [(2, 3, "B")], [("-", None, "b"), ("+", 2, "B")], id="replace"),
        pytest.param(b"a\nb\nc\n", [(2, 4, "")], [("-", None, "b")], id="delete-a-line"),
        pytest.param(b"a\nb\nc\n", [(2, 2, "x\ny\n")], [("+", 2, "x"), ("+", 3, "y")], id="insert-lines"),
        pytest.param(b"a\nb", [(3, 3, "\nc")], [("+", 3, "c")], id="append-to-a-last-line-without-break"),
        pytest.param(b"a\r\nb\r\n", [(3, 4, "B")], [("-", None, "b"), ("+", 2, "B")], id="carriage-return"),
        pytest.param(b"a\nb\n", [(2, 3, "b")], [], id="nothing"),
        pytest.param(
            b"a\nb\nc\nd\ne\n",
            [(0, 2, ""), (8, 9, "E")],
            [("-", None, "a"), ("", None, ""), ("-", None, "e"), ("+", 4, "E")],
            id="two-places-and-new-numbers",
        ),
        pytest.param(
            b"a\nb\n",
            [(0, 1, "A"), (2, 3, "B")],
            [("-", None, "a"), ("-", None, "b"), ("+", 1, "A"), ("+", 2, "B")],
            id="adjacent-lines",
        ),
        pytest.param(
            b"f(a, b)\n", [(2, 5, ""), (6, 6, ", c")], [("-", None, "f(a, b)"), ("+", 1, "f(b, c)")], id="one-line"
        ),
    ],
)
def test_patch(data: bytes, edits: list[tuple[int, int, str]], expected: list[tuple[str, int | None, str]]) -> None:
    assert changes(data, *edits) == expected


def test_json_is_what_the_schema_says() -> None:
    Draft202012Validator.check_schema(SCHEMA)
    got = json.loads(render(View(sample(), BASE, RULES)))
    Draft202012Validator(SCHEMA).validate(got)
    assert got == document(sample(), base=BASE, rules=RULES)


def test_json_values() -> None:
    got = json.loads(render(View(sample(), BASE, RULES)))
    assert got["schema"] == "ldlm-lint/1"
    first, _, third, fourth = got["findings"]
    assert first == {
        "rule": "heartbeat",
        "code": "W7201",
        "consequence": "slow",
        "severity": "warning",
        "confidence": "high",
        "path": "run.sh",
        "line": 2,
        "column": 8,
        "end_line": 2,
        "end_column": 21,
        "message": "BEAT waits 138.9 days",
        "related": [{"path": "src/train.py", "line": 5, "message": "the run that waits"}],
        "fix": {
            "applicability": "unsafe",
            "title": "set BEAT to 1800; set MON to 1",
            "edits": [
                {"path": "run.sh", "start": 21, "end": 29, "text": "1800"},
                {"path": "run.sh", "start": 37, "end": 42, "text": "MON=1"},
            ],
        },
        "cell": None,
        "fingerprint": "a0b7850e8f117885d72aa3f9c5c31658",
        "evidence": None,
        "url": "https://github.com/ldlm-lint/ldlm-lint/blob/main/docs/rules/heartbeat.md",
    }
    assert (third["line"], third["column"], third["end_line"], third["end_column"]) == (2, 8, 4, 3)
    assert (third["confidence"], fourth["fix"]["applicability"]) == ("medium", "display")
    assert got["errors"] == [{"path": "gone.py", "line": 1, "message": "no such file or directory"}]
    assert got["summary"] == {
        "files": 3,
        "findings": 4,
        "errors": 1,
        "warnings": 2,
        "refactors": 1,
        "infos": 0,
        "fixable": {"safe": 1, "unsafe": 2},
        "suppressed": 1,
        "baselined": 0,
        "unchanged": 0,
        "unsure": 0,
        "unseen": 2,
        "unseen_places": [{"path": "run.sh", "line": 7}, {"path": "run.sh", "line": 9}],
        "excluded": 1,
        "stale": [],
    }


def test_json_paths_outside_of_the_base_and_odd_names() -> None:
    source = Source("/elsewhere/\udcff\n.py", b"x\n", Kind.PYTHON)
    finding = Finding("no-workers", "E7104", Span(source.path, 0, 1))
    printed = render(View(Report((finding,), sources={source.path: source}), BASE, RULES))
    assert printed.isascii()
    assert json.loads(printed)["findings"][0]["path"] == source.path


@for_every("rule", ALL, ids=lambda rule: rule.symbol)
def test_every_rule_has_a_page(rule: Rule) -> None:
    shown = page(rule)
    assert shown.startswith(f"{rule.symbol} ({rule.code})\n")
    for part in (rule.cost, rule.exceptions, rule.verification):
        assert " ".join(part.split()) in " ".join(shown.split())
    assert f"# ldlm-lint: ignore[{rule.symbol}] reason" in shown
    # Examples are code: they stand four columns in and are shown as they are.
    prose = [line for line in shown.splitlines() if "://" not in line and not line.startswith("    ")]
    assert max(map(len, prose)) <= 88


