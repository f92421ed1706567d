"""The first screen: what is worst comes first, what repeats is shown once, and nothing that was found is out of the counts."""

from __future__ import annotations

import io
import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from calling import Enter, Run
from collected import for_every
from test_report import BASE, make_rule

from ldlm_lint.model import (
    Applicability,
    Confidence,
    Consequence,
    Edit,
    Finding,
    Fix,
    Frequency,
    Report,
    Rule,
    Severity,
    Span,
)
from ldlm_lint.report import text
from ldlm_lint.report.markdown import MOST_OF_A_COMMENT
from ldlm_lint.report.ranking import GROUPS, ORDERS, ordered
from ldlm_lint.report.view import View
from ldlm_lint.rules import ALL, by_symbol
from ldlm_lint.source import Kind, Source

LINE = b"value = 1\n"
CRASH = make_rule("W7105", "may-crash", "%(what)s may crash", Consequence.CRASH)
HANG = make_rule("R7234", "may-hang", "%(what)s may hang", Consequence.HANG)
STEP = make_rule("W7507", "slow-step", "%(what)s waits for the device in every single step of the loop: log less", Consequence.SLOW)
RULES = {one.symbol: one for one in (CRASH, HANG, STEP._replace(frequency=Frequency.STEP), make_rule("E7108", "slow-run", "it is slow"))}


class Evidence:
    """As much of `Support` as the order of findings asks for."""

    words = "seen"

    def __init__(self, verdict: str) -> None:
        self.verdict = type("Verdict", (), {"value": verdict})


def found(rule: str, path: str, line: int, what: str = "x", **more: object) -> Finding:
    start = (line - 1) * len(LINE)
    span = Span(f"/p/{path}", start, start + 5)
    return Finding(rule, RULES[rule].code, span, (("what", what),) if "%" in RULES[rule].message else (), **more)


def view_of(*findings: Finding, **more: object) -> View:
    sources = {one.span.path: Source(one.span.path, LINE * 2000, Kind.PYTHON) for one in findings}
    return View(Report(tuple(sorted(findings, key=lambda one: one.order)), sources=sources, files=len(sources)), BASE, RULES, **more)


def shown(view: View) -> str:
    stream = io.StringIO()
    text.write(view, stream)
    return stream.getvalue()


def test_one_block_for_a_rule_with_its_first_place_in_full() -> None:
    same = [found("may-crash", f"c{number}.yaml", 2, "batch_size=0") for number in range(6)]
    got = shown(view_of(*same, found("may-hang", "z.py", 1), quiet=True))
    assert got == (
        "hang: may-hang (R7234), 1 place\nx may hang\n    --> z.py:1:1\n   1 | value = 1\n     | ^^^^^\n\n"
        "crash: may-crash (W7105), 6 places\nbatch_size=0 may crash\n    --> c0.yaml:2:1\n   2 | value = 1\n     | ^^^^^\n"
        "also: c1.yaml:2:1\nalso: c2.yaml:2:1\nalso: c3.yaml:2:1\n… 2 more: --select may-crash --format full\n\n"
    ).replace("    -->", " -->").replace("   1 |", "1 |").replace("   2 |", "2 |").replace("     |", "  |")


def test_many_of_one_rule_do_not_drown_a_crash() -> None:
    many = [found("slow-step", f"src/{number % 40}.py", number, f"`loss_{number}.item()`") for number in range(1, 1001)]
    lines = shown(view_of(*many, found("may-crash", "zoo/last.py", 9), found("may-crash", "zoo/last.py", 10))).splitlines()
    assert lines[0] == "crash: may-crash (W7105), 2 places"
    assert len(lines) < 30
    assert "… 996 more: --select slow-step --format full" in lines
    assert "Found 1002 findings: 2 crash, 1000 slow." in lines


def test_a_repository_with_a_finding_of_every_rule_is_short() -> None:
    findings = [
        Finding(rule.symbol, rule.code, Span(f"/p/{number}.py", at * 10, at * 10 + 5))
        for number, rule in enumerate(ALL)
        for at in range(20)
    ]
    sources = {one.span.path: Source(one.span.path, LINE * 30, Kind.PYTHON) for one in findings}
    lines = shown(View(Report(tuple(findings), sources=sources), BASE, by_symbol)).splitlines()
    assert len(lines) < 11 * len(ALL) + 20
    words = [line.partition(":")[0] for line in lines if re.match(r"[a-z-]+: [a-z0-9-]+ \(", line)]
    # What is of level info has one line for each rule below the others.
    loud = [rule for rule in ALL if rule.severity > Severity.INFO]
    assert len(words) == len(loud)
    assert [rule.symbol for rule in ALL if not any(rule.symbol in line for line in lines)] == []
    assert [one.value for one in Consequence if one.value in words] == list(dict.fromkeys(words))


def test_the_other_places_say_what_is_different_those_with_news_first() -> None:
    places = [found("slow-step", "a.py", 1, "`loss.item()`"), found("slow-step", "a.py", 2, "`loss.item()`")]
    places += [found("slow-step", "b.py", number, f"`norm_{number}.item()`") for number in (3, 4)]
    got = shown(view_of(*places, quiet=True))
    assert re.findall(r"(?m)^also: (.*)$", got) == [
        "b.py:3:1  `norm_3.item()` waits for the …",
        "b.py:4:1  `norm_4.item()` waits for the …",
        "a.py:2:1",
    ]


def test_a_difference_behind_many_equal_words_is_in_sight() -> None:
    rule = make_rule("W7601", "late", "one two three four five six seven eight nine ten %(what)s and so on for ever", Consequence.DISK)
    findings = [
        Finding("late", rule.code, Span("/p/a.py", at * 10, at * 10 + 5), (("what", what),)) for at, what in enumerate(("here", "there"))
    ]
    view = View(Report(tuple(findings), sources={"/p/a.py": Source("/p/a.py", LINE * 9, Kind.PYTHON)}), BASE, {"late": rule})
    assert "also: a.py:2:1  … eight nine ten there and so on …\n" in shown(view)


def test_messages_that_differ_in_a_line_number_say_the_same() -> None:
    whats = ("the loop at line 7", "the loop at line 12", "the loader of a.py:7", "the loader of b-c.py:90", "the loop at line 3")
    got = shown(view_of(*(found("may-crash", "a.py", line, what) for line, what in enumerate(whats, 1)), quiet=True))
    assert re.findall(r"(?m)^also: (.*)$", got) == ["a.py:3:1  the loader of a.py:7 may crash", "a.py:2:1", "a.py:4:1  the loader of b-c.py:90 may crash", "a.py:5:1"]


def test_a_fix_that_two_rules_share_is_shown_once() -> None:
    edit = Edit(Span("/p/a.py", 8, 9), "2")
    fix = Fix("set it", (edit,), Applicability.UNSAFE, "it differs")
    got = shown(view_of(found("may-hang", "a.py", 1, fix=fix), found("may-crash", "a.py", 1, fix=fix), quiet=True))
    assert got.count("1 + value = 2") == 1
    assert "help: R7234 at a.py:1:1 has the same fix, shown above\n" in got


def test_hostile_names_stay_text() -> None:
    evil = [found("may-crash", f"e\x1b[2J\u202e{number}.py", 1, f"\x1b]0;{number}\x07[bold]") for number in range(9)]
    for by in GROUPS:
        got = shown(view_of(*evil, group_by=by))
        assert not set("\x1b\x07\u202e") & set(got)
        assert "[bold]" in got


SURE, UNSURE = Confidence.HIGH, Confidence.LOW
RANKED = [
    pytest.param(found("may-hang", "z.py", 9), found("may-crash", "a.py", 1), id="consequence-before-place-and-severity"),
    pytest.param(found("slow-step", "z.py", 1, confidence=UNSURE), found("slow-run", "a.py", 1), id="frequency-before-confidence"),
    pytest.param(found("may-crash", "z.py", 1), found("may-crash", "a.py", 1, confidence=UNSURE), id="confidence-before-place"),
    pytest.param(
        found("may-crash", "z.py", 1, confidence=UNSURE, evidence=Evidence("verified")),
        found("may-crash", "a.py", 1),
        id="verified-before-confidence",
    ),
    pytest.param(found("slow-run", "z.py", 1), found("may-hang", "a.py", 1, evidence=Evidence("refuted")), id="refuted-last"),
    pytest.param(
        found("may-crash", "a.py", 1, evidence=Evidence("inconclusive")), found("may-crash", "b.py", 1), id="inconclusive-is-nothing"
    ),
    pytest.param(found("may-crash", "a.py", 2), found("may-crash", "a.py", 10), id="line"),
]


@for_every("first, second", RANKED)
def test_what_is_shown_first(first: Finding, second: Finding) -> None:
    assert ordered([first, second], RULES, "consequence") == ordered([second, first], RULES, "consequence") == [first, second]


def test_other_orders() -> None:
    findings = [found("slow-run", "b.py", 1), found("may-hang", "c.py", 1), found("may-crash", "a.py", 1), found("slow-step", "d.py", 1)]
    names = {order: [one.rule for one in ordered(findings, RULES, order)] for order in ORDERS}
    assert names == {
        "consequence": ["may-hang", "may-crash", "slow-step", "slow-run"],
        "severity": ["slow-run", "may-crash", "slow-step", "may-hang"],
        "rule": ["may-crash", "may-hang", "slow-run", "slow-step"],
        "path": ["may-crash", "slow-run", "may-hang", "slow-step"],
    }


def test_files_and_single_findings_as_blocks() -> None:
    findings = [found("slow-step", "a.py", 1), *(found("may-crash", "a.py", line) for line in range(2, 9)), found("may-hang", "b.py", 1)]
    by_file = shown(view_of(*findings, group_by="file", quiet=True))
    assert by_file.startswith("b.py, 1 finding\nhang R7234 may-hang: x may hang\n --> b.py:1:1\n")
    assert "\n\na.py, 8 findings\ncrash W7105 may-crash: x may crash\n --> a.py:2:1\n" in by_file
    assert "\nalso: a.py:3:1  crash W7105 may-crash: x may crash\n" in by_file
    assert "\n… 4 more: a.py --format full\n" in by_file
    alone = shown(view_of(*findings, group_by="none", sort="path", quiet=True))
    assert re.findall(r"(?m)^ *--> (.*):1$", alone) == [f"a.py:{line}" for line in range(1, 9)] + ["b.py:1"]
    assert "also" not in alone


BEAT = "export TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC=12000000\ntorchrun train.py\n"
LOADER = "from torch.utils.data import DataLoader\n\nloader = DataLoader(data, prefetch_factor=2)\n"
DROPOUT = """\
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP


def main(model, loader, optimizer):
    model = DDP(model.cuda())
    for x in loader:
        loss = model(x).mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        print(loss.item())
"""


@pytest.fixture
def project(enter: Enter) -> Path:
    return enter({"pyproject.toml": "", "a.sh": BEAT, "b.py": LOADER, "train.py": DROPOUT})


def consequences(out: str) -> list[str]:
    return re.findall(r"(?m)^([a-z-]+): [a-z0-9-]+ \(", out)


def test_consequences_select_and_ignore(project: Path, run: Run) -> None:
    everything = consequences(run()[1])
    assert everything == sorted(everything, key=[one.value for one in Consequence].index) and {"hang", "crash"} < set(everything)
    assert set(consequences(run("--select", "hang,crash")[1])) == {"hang", "crash"}
    assert set(consequences(run("--select", "hang,crash", "--ignore", "E7104")[1])) == {"hang"}
    assert set(consequences(run("--ignore", "hang,crash")[1])) == set(everything) - {"hang", "crash"}
    assert consequences(run("--select", "W7201", "--ignore", "hang")[1]) == ["hang"]
    (project / "pyproject.toml").write_text('[tool.ldlm-lint]\nselect = ["crash", "hang"]\nper-file-ignores = { "*.sh" = ["hang"] }\n')
    assert consequences(run()[1]) == ["crash"]
    (project / "pyproject.toml").write_text('[tool.ldlm-lint]\nselect = ["crashes"]\n')
    assert 'unknown rule "crashes", did you mean "crash"?' in run()[2]


def test_a_consequence_does_not_switch_opt_in_rules_on(project: Path, run: Run) -> None:
    selected = run("--select", "slow", "--show-settings")[1].splitlines()
    optional = {rule.symbol for rule in ALL if rule.consequence is Consequence.SLOW and not rule.default}
    assert optional and optional.isdisjoint(selected) and "host-sync-in-training-loop" in selected
    assert optional < set(run("--extend-select", "slow", "--show-settings")[1].splitlines())
    assert {rule["consequence"] for rule in json.loads(run("rules", "hang", "--format", "json")[1])["rules"]} == {"hang"}
    assert "is the consequence of" in run("explain", "hang")[2]
    assert "which `ldlm-lint rules 71` lists" in run("explain", "ldlm-data")[2]


def test_confidence_filters_what_is_shown_fixed_and_failed(project: Path, run: Run) -> None:
    (project / "a.sh").unlink()
    code, out, _ = run("--select", "W7507")
    assert code == 1 and "host-sync" in out
    for form in ("text", "full", "concise", "json", "sarif", "github", "gitlab", "junit", "markdown"):
        code, out, _ = run("--select", "W7507", "--min-confidence", "high", "--format", form)
        assert code == 0 and "host-sync" not in out.replace("--select", ""), form
    out = run("--select", "W7507", "--min-confidence", "high")[1]
    assert out == "No findings.\n2 files read, 1 finding below --min-confidence.\n"
    before = (project / "train.py").read_bytes()
    assert run("--diff", "--unsafe-fixes", "--min-confidence", "high", "--select", "W7507,R7227")[1].count("train.py") > 0
    run("--fix", "--unsafe-fixes", "--select", "W7507", "--min-confidence", "high")
    assert (project / "train.py").read_bytes() == before


def test_what_the_baseline_knows_is_not_gone_because_it_is_unsure(project: Path, run: Run) -> None:
    run("baseline")
    code, out, err = run("--min-confidence", "high")
    assert (code, err) == (0, "") and "gone" not in out and "in the baseline" in out


@pytest.mark.parametrize("form", ["json", "sarif", "gitlab", "junit"])
def test_formats_for_programs_are_not_sorted(project: Path, run: Run, form: str) -> None:
    code, out, err = run("--sort", "rule", "--format", form)
    assert (code, out) == (2, "")
    assert "--sort does not apply to the format" in err and "text, full, concise, github, markdown" in err


def test_names_of_formats_are_those_of_ruff(project: Path, run: Run) -> None:
    assert run("--output-format", "grouped")[:2] == run("--format", "text")[:2] == run()[:2]
    assert run("--output-format", "concise") == run("--format", "concise")
    full = run("--format", "full", "--quiet")[1]
    assert run("--group-by", "none", "--sort", "path", "--quiet")[1] == full
    assert "--group-by does not apply to the format full, only to text" in run("--format", "full", "--group-by", "file")[2]
    (project / "pyproject.toml").write_text('[tool.ldlm-lint]\noutput-format = "full"\n')
    assert run("--quiet")[1] == full
    (project / "pyproject.toml").write_text('[tool.ldlm-lint]\noutput-format = "grouped"\n')
    assert run("--quiet")[1] == run("--quiet", "--format", "text")[1]


def test_the_commands_that_a_report_proposes_look_at_the_same(project: Path, run: Run) -> None:
    (project / "sub dir").mkdir()
    (project / "sub dir" / "a.sh").write_text(BEAT)
    out = run("--select", "hang,crash", "--level", "warning", "sub dir")[1]
    assert "ldlm-lint --fix --interactive --select hang,crash --level warning 'sub dir'\n" in out
    assert "ldlm-lint baseline --select hang,crash --level warning 'sub dir'\n" in out
    commands = [shlex.split(command) for command in re.findall(r"(?m)^(?:(?:Next: |      ).*?  |        )ldlm-lint (.*)$", out)]
    assert [words[0] for words in commands] == ["--diff", "--fix", "baseline", "explain", "probe"]
    assert run(*commands[0])[1].startswith("diff --git")
    assert run(*commands[3])[0] == 0
    assert run(*commands[2])[0] == 0 and run("--select", "hang,crash", "sub dir")[:2] == (
        0,
        "No findings.\n1 file read, 1 finding in the baseline.\n",
    )
    assert "ldlm-lint baseline" not in run("--min-confidence", "medium")[1]
    assert "ldlm-lint --diff --unsafe-fixes --select 72 .\n" in run("--select", "72", "a.sh", "b.py", "train.py", "sub dir")[1]


def test_a_long_command_has_a_line_of_its_own(project: Path, run: Run) -> None:
    (project / ("long " * 20)).mkdir()
    (project / ("long " * 20) / "a.sh").write_text(BEAT)
    out = run("--select", "hang", "long " * 20)[1]
    assert re.search(r"(?m)^Next: see the changes without writing them\n {8}ldlm-lint --diff --unsafe-fixes --select hang 'long ", out)
    assert all(not one.startswith("Next: ") or len(one) <= 120 for one in out.splitlines())


def test_a_text_from_stdin_has_no_files_to_go_on_with(project: Path) -> None:
    command = [sys.executable, "-m", "ldlm_lint", "-", "--stdin-filename", "x.sh"]
    done = subprocess.run(command, input=BEAT, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "ldlm-lint explain " in done.stdout and "ldlm-lint --" not in done.stdout and "baseline" not in done.stdout


def annotations(view: View) -> list[str]:
    from ldlm_lint.report.github import render

    return render(view).splitlines()


def test_annotations_say_what_github_does_not_show() -> None:
    rules = {**RULES, "told": make_rule("I7304", "told", "it is told", Consequence.CONFIG)}
    told = [Finding("told", "I7304", Span("/p/a.py", 0, 5 + number)) for number in range(4)]
    warnings = [found("slow-step", "a.py", line) for line in range(1, 16)]
    got = annotations(View(Report((*warnings, *told), sources=view_of(*warnings).report.sources), BASE, rules))
    assert [line.split(" ")[0] for line in got] == ["::warning"] * 15 + ["::notice"] * 5
    assert "::5 warnings more: GitHub shows 10 annotations of each level in a step." in got[-1]
    assert "title=slow%3A slow-step (ldlm-lint W7507)," in got[0]
    few = View(Report((*warnings[:10], *told), sources=view_of(*warnings).report.sources), BASE, rules)
    assert len(annotations(few)) == 14 and " more: " not in annotations(few)[-1]


def test_the_count_of_hidden_annotations_is_not_hidden_itself() -> None:
    got = annotations(view_of(*(found("may-hang", "a.py", line) for line in range(1, 31))))
    notices = [line for line in got if line.startswith("::notice")]
    assert "::21 notices more: " in notices[9]
    assert len(notices) == 31


def comment(view: View) -> str:
    from ldlm_lint.report.markdown import render

    return render(view)


def test_a_comment_for_a_pull_request_fits_and_counts_what_it_leaves_out() -> None:
    many = [found("slow-step", f"{'d' * 80}/{line}.py", line, "`|<x>@`" * 50) for line in range(1, 900)]
    got = comment(view_of(*many, found("may-crash", "z.py", 1), since="main"))
    assert len(got) <= len(got.encode()) <= MOST_OF_A_COMMENT + 200 < 65_536
    left_out = int(re.findall(r"\n\.\.\. and (\d+) more findings\.\n", got)[0])
    rows = re.findall(r"(?m)^\| [^|]*:\d+:\d+ \|", got)
    assert len(rows) + left_out == 900
    assert got.startswith("<!-- ldlm-lint -->\n## ldlm-lint: 900 findings on changed lines\n\n1 crash, 899 slow\n\n| consequence |")
    assert got.count("<details>") == got.count("</details>") == 1
    rules = {f"r{number}": make_rule("W7601", f"r{number}", "x" * 500, Consequence.DISK) for number in range(400)}
    each = tuple(Finding(name, "W7601", Span("/p/a.py", 0, 1)) for name in rules)
    got = comment(View(Report(each), BASE, rules, since="main"))
    assert len(got.encode()) < 65_536 and re.search(r"\n\.\.\. and \d+ more rules\.\n", got)


def test_a_comment_mentions_nobody_and_links_to_nothing_of_a_checked_file() -> None:
    evil = "@octocat #1 https://evil.example www.evil.example WWW.evil.example a@b.example <!-- --> </details> ![x](y) | `a`"
    got = comment(view_of(found("may-crash", "@team/#2.py", 1, evil), since="main"))
    visible = re.sub(r"https://github\.com/ldlm-lint/\S+", "", got)
    assert not re.search(r"[@#]\w|(?i:www\.)|[a-z]://", visible)
    assert got.count("</details>") == 1 and "![x]" not in visible and got.count("<!-- ldlm-lint -->") == 1


def test_every_rule_says_how_often() -> None:
    often: dict[Frequency, list[Rule]] = {one: [rule for rule in ALL if rule.frequency is one] for one in Frequency}
    assert all(often.values())
    # What is named after the step happens in every one.
    assert {rule.symbol for rule in ALL if rule.symbol.endswith(("-in-training-loop", "-per-step"))} <= {rule.symbol for rule in often[Frequency.STEP]}
