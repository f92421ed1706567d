"""Evidence on disk: its schema, what is written and read back, hostile files, and `probe judge`."""

from __future__ import annotations

import ast
import io
import json
import os
from copy import deepcopy
from dataclasses import replace
from pathlib import Path

import jsonschema
import pytest
from calling import Run as Command
from calling import calling
from collected import for_every
from dossiers import INCONCLUSIVE, REFUTED, UNUSED, VERIFIED, judged, site, written

import ldlm_lint.evidence.verdicts as verdicts_package
from ldlm_lint.cli import main
from ldlm_lint.evidence import files
from ldlm_lint.evidence.dossier import load
from ldlm_lint.evidence.model import (
    Arm,
    Environment,
    Evidence,
    EvidenceError,
    Judgement,
    Measurement,
    Run,
    Scope,
    Site,
    Status,
    Verdict,
    from_json,
    to_json,
)
from ldlm_lint.evidence.places import Linted, followed, line_map
from ldlm_lint.evidence.verdicts import ROOMS, assess
from ldlm_lint.files.edited import apply_edits
from ldlm_lint.model import Edit, Span
from ldlm_lint.probe.micro.table import EXPERIMENTS
from ldlm_lint.report.verdict_table import write_verdicts
from ldlm_lint.report.verdicts import amount, figure
from ldlm_lint.rules import ALL, by_symbol
from ldlm_lint.source import Kind, Source

DOCS = Path(__file__).parent.parent / "docs"
SHARED = ("site", "arm", "measurement", "scope", "judgement")
HASH = "0" * 64
SCOPE = Scope("cuda", "cuda", 20, (0, 1), 2)
FIGURE = Measurement(
    "default / fused", 4.42, "x", (4.33, 4.47), 25, 1.05, 1.006, "process_time", (Arm("fused", 1, 0.5, 2, 25, "ms"),)
)
WHOLE = Evidence(
    Run(
        "watch", "a", ("torchrun", "train.py"), "/project", 1, 1, 2, 7, "host", Status.CRASHED, 20, 1.5, "now", "Error"
    ),
    Environment("3.11", "2.13", "cuda", cpus=2, load=(1.0, 2, 3), cpu_pressure=0.5, variables={"NCCL_DEBUG": "INFO"}),
    {"optimizers": [{"site": {"path": "train.py", "line": 3, "sha256": HASH}}]},
    (
        Judgement(
            UNUSED, "claim", Verdict.VERIFIED, "reason", SCOPE, (Site("train.py", 3, 4, HASH, "main"),), FIGURE, True
        ),
    ),
    {"host_syncs": "not on a CPU"},
    ("a note",),
    0.03,
)


def schema(name: str) -> dict:
    return json.loads((DOCS / f"{name}.schema.json").read_text())


def valid(document: object, name: str) -> None:
    jsonschema.Draft202012Validator.check_schema(schema(name))
    jsonschema.validate(document, schema(name), cls=jsonschema.Draft202012Validator)


def test_what_is_written_is_what_the_schema_says_and_what_is_read(tmp_path):
    path = files.write(WHOLE, tmp_path)
    valid(json.loads(path.read_text()), "evidence")
    assert files.read(tmp_path) == [WHOLE]


@for_every("status", Status)
def test_compact_evidence_is_the_same_in_one_line(tmp_path: Path, status: Status) -> None:
    odd = {"named": {1: (2, float("inf"))}, "kind": Status.FINISHED, "pair": {(1, 2): {3}}}
    one = replace(WHOLE, run=replace(WHOLE.run, status=status))
    for found in (one, replace(one, observations=odd), replace(one, observations={"kind": Status.FINISHED})):
        path = files.write(found, tmp_path, compact=True)
        assert path.read_text().count("\n") == 1
        document = json.loads(path.read_text())
        valid(document, "evidence")
        assert document == json.loads(files.write(found, tmp_path).read_text())


def test_evidence_is_read_in_the_order_of_run_and_rank(tmp_path: Path) -> None:
    for pid, (run_id, rank, second) in enumerate([("a", 1, 3), ("a", 0, 4), ("b", 0, 1), ("c", 0, 3)]):
        run = replace(WHOLE.run, run_id=run_id, rank=rank, pid=pid, started=f"2026-01-01T00:00:0{second}")
        files.write(replace(WHOLE, run=run), tmp_path)
    assert [(one.run.run_id, one.run.rank) for one in files.read(tmp_path)] == [("b", 0), ("a", 0), ("a", 1), ("c", 0)]


def test_the_schemas_agree_on_what_they_share():
    first, *others = (schema(name)["$defs"] for name in ("evidence", "verdicts", "findings"))
    assert all(other[part] == first[part] for other in others for part in SHARED)


@for_every(
    ("place", "bad"),
    [
        (("schema",), "ldlm-evidence/2"),
        (("run",), []),
        (("run", "rank"), "1"),
        (("run", "status"), "gone"),
        (("run", "command"), "ls"),
        (("environment", "load"), [None]),
        (("environment", "variables"), {"A": 1}),
        (("observations",), [1]),
        (("judgements",), {"a": 1}),
        (("judgements", 0), 7),
        (("judgements", 0, "rule"), ["x"]),
        (("judgements", 0, "verdict"), "maybe"),
        (("judgements", 0, "sites"), None),
        (("judgements", 0, "sites", 0, "line"), True),
        (("judgements", 0, "sites", 0, "path"), {}),
        (("judgements", 0, "scope", "ranks"), {"a": 1}),
        (("judgements", 0, "measured", "ci95"), [1]),
        (("judgements", 0, "measured", "value"), "4"),
        (("unavailable",), {"a": 1}),
        (("notes",), "x"),
        (("overhead_seconds",), None),
    ],
)
def test_a_value_of_another_type_is_no_evidence(place, bad):
    document = json.loads(json.dumps(to_json(WHOLE)))
    assert from_json(deepcopy(document)) == WHOLE
    inner = document
    for key in place[:-1]:
        inner = inner[key]
    inner[place[-1]] = bad
    with pytest.raises(EvidenceError):
        from_json(document)


@for_every(
    "text", ["", "[" * 100_000, "{}", "[1]", '"x"', "nul", '{"schema": "ldlm-evidence/1"}', "\x00"]
)
def test_a_file_that_is_no_evidence_is_named(tmp_path, text):
    path = tmp_path / "evidence-x.json"
    path.write_text(text)
    with pytest.raises(EvidenceError, match=r"evidence-x\.json"):
        files.read(tmp_path)


@for_every(
    "observed", [7, "x", [], [7], [[]], {}, {"a": 7}, [{"site": 7}], [{"site": {"path": 7}}], [None]]
)
def test_observations_of_another_shape_end_their_room_with_a_note(observed):
    topics = {
        name
        for room in ROOMS
        for node in ast.walk(ast.parse((Path(verdicts_package.__file__).parent / f"{room}.py").read_text()))
        if isinstance(node, ast.Constant) and isinstance(name := node.value, str) and name.isidentifier()
    }
    for one in (dict.fromkeys(topics, observed), {}):
        assessed = assess([Evidence(Run("watch", "a", steps=3), Environment(), {"optimizers": observed, **one})])
        assert all(isinstance(note, str) for note in assessed.notes)


@for_every(
    "path",
    ["../train.py", "a/../train.py", "/etc/passwd", "C:\\train.py", "", ".", "/", "train.py/..", "\x00", "x" * 9999],
)
def test_a_path_of_evidence_only_chooses_among_the_files_that_are_linted(path):
    opened = []

    def source(name: str) -> Source:
        opened.append(name)
        return Source(name, b"x = 1\n", Kind.PYTHON)

    linted = Linted("/project", ["/project/train.py", "/project/sub/other.py"], source, {})
    found = linted.file_of(path, "/elsewhere", HASH)
    assert found in (None, "/project/train.py")
    assert set(opened) <= {"/project/train.py", "/project/sub/other.py"}
    assert (found is None) == (path != "C:\\train.py")


def test_places_move_with_the_lines_around_them():
    before = b"one\n  two\nthree\nfour\nfive\n"
    edits = [
        Edit(Span("/p/a.py", 0, 0), "zero\n"),
        Edit(Span("/p/a.py", 6, 9), "2\n2.5"),
        Edit(Span("/p/a.py", before.index(b"four"), before.index(b"five")), ""),
    ]
    after = b"zero\none\n  2\n2.5\nthree\nfive\n"
    assert apply_edits(before, edits) == after
    moves = line_map(before, edits)
    linted = Linted("/p", ["/p/a.py"], lambda path: Source(path, after, Kind.PYTHON), moves={"/p/a.py": moves})
    moved = [linted.lines("/p/a.py", Site("a.py", line)) for line in (1, 2, 3, 4, 5)]
    assert [(one.start, one.stop - 1) for one in moved] == [(2, 2), (3, 3), (5, 5), (6, 6), (6, 6)]
    assert linted.lines("/p/a.py", Site("a.py", 1, 5)) == range(2, 7)
    assert linted.lines("/p/a.py", Site("a.py", 77)) == range(77, 78)
    assert len(linted.lines("/p/a.py", Site("a.py", 1, 10**30))) < 10**6
    assert followed(moves, line_map(after, [Edit(Span("/p/a.py", 0, 5), "")]))[1:6] == (1, 2, 4, 5, 5)


def test_huge_numbers_of_ranks_take_no_memory(tmp_path):
    place = tmp_path / "train.py"
    place.write_text("x\n")
    one = Evidence(Run("watch", "a", world_size=10**12), Environment(), {"ddp": []})
    files.write(one, tmp_path)
    assert load([tmp_path]).judged == ()
    assert main(["probe", "judge", str(tmp_path)]) == 0


# What `ldlm-lint probe judge` prints.


@pytest.fixture
def judge(capsys: pytest.CaptureFixture[str]) -> Command:
    return calling(capsys, "probe", "judge")


def test_judge_prints_what_was_verified_first_and_exits_with_one(tmp_path, judge):
    place = tmp_path / "train.py"
    place.write_text("x\n")
    one, two = site(place, 1, tmp_path), site(place, 9, tmp_path)
    folder = written(
        tmp_path / "e", tmp_path, judged("optimizer-not-fused", INCONCLUSIVE, [one]), judged(UNUSED, VERIFIED, [two])
    )
    code, out, err = judge(folder)
    assert (code, err) == (1, "")
    lines = [" ".join(line.split()) for line in out.splitlines()]
    assert lines.index(f"verified {UNUSED} train.py:9") < lines.index("inconclusive optimizer-not-fused train.py:1")
    assert f"claim the claim of {UNUSED}" in lines and f"seen {UNUSED} was verified" in lines
    figure = "4.42x [4.33, 4.47] (25 rounds, counts from 1.05x, A/A noise 1.01x)"
    assert f"measured ratio: {figure}" in lines
    assert lines[-1] == "1 verified, 0 refuted, 1 inconclusive."
    code, out, _ = judge(written(tmp_path / "r", tmp_path, judged(UNUSED, REFUTED, [one])))
    assert (code, out.split()[:2]) == (0, ["not", "present"])
    assert out.splitlines()[-1] == "0 verified, 0 refuted, 0 inconclusive, 1 not present."


def test_only_what_fails_check_ends_with_one(tmp_path, judge, monkeypatch):
    place = tmp_path / "train.py"
    place.write_text("x\n")
    project = tmp_path / "project"
    project.mkdir()
    monkeypatch.chdir(project)
    settings = project / "pyproject.toml"
    # Not one that a CPU leaves open, or that never fails.
    some = (one for one in ALL if one.probe and not one.probe.device_bound and not one.trade and one.code[0] in "WE")
    opt_in = next(one.symbol for one in some if not one.default)
    for rule, text, expected in (
        # No activation checkpointing is a choice, speed for memory.
        ("missing-activation-checkpointing", "", 0),
        (opt_in, "", 0),
        (opt_in, f"[tool.ldlm-lint]\nextend-select = ['{opt_in}']\n", 1),
        (UNUSED, "", 1),
        (UNUSED, f"[tool.ldlm-lint]\nignore = ['{UNUSED}']\n", 0),
        (UNUSED, "[tool.ldlm-lint]\nfail-level = 'error'\n", 0),
        (UNUSED, "[tool.ldlm-lint]\nno-such-key = 1\n", 1),
    ):
        settings.write_text(text)
        folder = written(tmp_path / f"e-{rule}-{len(text)}", tmp_path, judged(rule, VERIFIED, [site(place, 1, tmp_path)]))
        code, out, _ = judge(folder)
        assert (code, "1 verified" in out) == (expected, True), (rule, text)


def test_judge_names_the_target(tmp_path, judge):
    folder = written(tmp_path / "e", tmp_path, judged("optimizer-not-fused", VERIFIED), kind="micro")
    for words, verified in (((), 0), (("--target", "cuda"), 0), (("--target", "cpu"), 1)):
        code, out, _ = judge(folder, *words)
        # An experiment is no defect that was seen in a program.
        assert (code, out.splitlines()[-1].split(",")[0]) == (0, f"{verified} verified")


def test_judge_says_which_ranks_are_missing_and_how_runs_ended(tmp_path, judge):
    files.write(WHOLE, tmp_path)
    _, out, _ = judge(tmp_path)
    assert "note: no evidence of rank 0: " in out
    assert "note: the program crashed with Error\n" in out
    assert "note: not observed: host syncs: not on a CPU\n" in out
    assert "note: a note\n" in out


def test_judge_writes_json(tmp_path, judge):
    files.write(WHOLE, tmp_path)
    code, out, _ = judge(tmp_path, "--json", "-")
    document = json.loads(out)
    valid(document, "verdicts")
    assert (code, document["summary"]) == (1, {"verified": 1, "refuted": 0, "inconclusive": 0})
    assert document["runs"][0]["exception"] == "Error"
    judge(tmp_path, "--json", tmp_path / "out.json")
    assert json.loads((tmp_path / "out.json").read_text()) == document
    assert judge(tmp_path, "--json", tmp_path / "no" / "out.json")[0] == 2


def test_judge_tells_which_findings_of_a_report_are_settled(tmp_path, judge, capsys, monkeypatch):
    project = tmp_path / "project"
    project.mkdir()
    (project / "train.py").write_text(
        "from torch.nn.parallel import DistributedDataParallel as DDP\n\n\ndef main(model, batch):\n"
        "    model = DDP(model, find_unused_parameters=True)\n    model(batch).mean().backward()\n"
    )
    monkeypatch.chdir(project)
    main(["check", "--isolated", "--format", "json", "."])
    (tmp_path / "lint.json").write_text(capsys.readouterr().out)
    place = site(project / "train.py", 5, project)
    folder = written(tmp_path / "e", project, judged(UNUSED, REFUTED, [place]))
    _, out, _ = judge(folder, "--findings", tmp_path / "lint.json")
    assert out.startswith("refuted ") and "0 verified, 1 refuted, 0 inconclusive.\n" in out
    assert f"note: the finding {UNUSED} at train.py:5: refuted\n" in out
    assert "note: 2 findings in the report, 1 of them without a verdict\n" in out
    (tmp_path / "lint.json").write_text('{"schema": "ldlm-lint/1", "findings": [{}]}')
    code, _, err = judge(folder, "--findings", tmp_path / "lint.json")
    assert (code, "not findings of schema" in err) == (3, True)


def test_judge_of_what_is_not_there_or_cannot_be_read(tmp_path, judge):
    assert judge(tmp_path / "nowhere")[0] == 2
    assert judge(tmp_path)[0] == 3
    (tmp_path / "evidence-x.json").write_text("{")
    code, out, err = judge(tmp_path)
    assert (code, out) == (3, "")
    assert "evidence-x.json" in err


@pytest.mark.skipif(os.name == "nt", reason="named pipes of POSIX systems")
def test_what_can_be_read_is_judged_although_another_file_is_broken(tmp_path, judge, capsys, monkeypatch):
    files.write(WHOLE, tmp_path)
    (tmp_path / "evidence-broken.json").write_text("{")
    os.mkfifo(tmp_path / "evidence-pipe.json")
    code, out, err = judge(tmp_path, tmp_path, tmp_path / files.name_of(WHOLE))
    assert (code, out.splitlines()[-1]) == (3, "1 verified, 0 refuted, 0 inconclusive.")
    assert "evidence-broken.json: not JSON" in err
    assert "evidence-pipe.json: not a regular file" in err
    (tmp_path / "lint").mkdir()
    (tmp_path / "lint" / "a.py").write_text("x = 1\n")
    monkeypatch.chdir(tmp_path / "lint")
    assert main(["check", "--isolated", "--evidence", str(tmp_path), "."]) == 0
    assert "note: " in (err := capsys.readouterr().err)
    assert "evidence-broken.json: not JSON" in err


def test_numbers_that_json_does_not_have_become_null(tmp_path, judge):
    measured = Measurement("norm", float("nan"), "x", (float("-inf"), float("inf")))
    judgement = Judgement(UNUSED, "claim", Verdict.INCONCLUSIVE, "reason", SCOPE, (), measured)
    written(tmp_path, tmp_path, judgement)
    document = json.loads(judge(tmp_path, "--json", "-")[1], parse_constant=pytest.fail)
    valid(document, "verdicts")
    assert document["verdicts"][0]["measured"]["value"] is None


# The table that all forms of `probe` print.


@for_every(
    ("value", "unit", "shown"),
    [
        (1.3123, "x", "1.31x"),
        (0.0001234, "s", "0.000123 s"),
        (9615756.0, "bytes", "9.17 MiB"),
        (512, "B", "512 B"),
        (81 * 2**30, "bytes", "81.00 GiB"),
        (1234567.0, "", "1,234,567"),
        (150.25, "ms", "150 ms"),
        (3, "kernels", "3 kernels"),
        (float("nan"), "bytes", "nan bytes"),
        (float("inf"), "x", "infx"),
    ],
)
def test_figures_are_short_and_have_units(value, unit, shown):
    assert amount(value, unit) == shown


def test_a_figure_without_a_value_is_empty():
    assert figure(None) == figure(Measurement("kernels", None)) == ""


def test_the_table_shows_no_control_characters_and_cuts_nothing_in_a_pipe():
    stream = io.StringIO()
    reason = "long " * 100 + "\x1b[31mred"
    write_verdicts([judged(UNUSED, VERIFIED, reason=reason)], stream, notes=["a\x1b[2Jnote"])
    assert "\x1b" not in stream.getvalue()
    assert "long " * 100 + "␛[31mred" in stream.getvalue()
    assert "note: a␛[2Jnote\n" in stream.getvalue()


# Which rules can be settled at all.


def _named_by_rooms() -> set[str]:
    """The rules whose names stand in the rooms that judge watched runs."""
    folder = Path(verdicts_package.__file__).parent
    trees = [ast.parse((folder / f"{room}.py").read_text()) for room in ROOMS]
    texts = {node.value for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Constant)}
    return {text for text in texts if text in by_symbol}


def test_each_rule_with_a_probe_has_a_judge_and_each_judge_a_rule_with_a_probe():
    watched = {rule.symbol for rule in ALL if rule.probe is not None and rule.probe.watched}
    assert watched == _named_by_rooms()


def test_the_experiments_that_rules_name_are_there_and_know_them():
    named = {rule.symbol: rule.probe.experiment for rule in ALL if rule.probe is not None and rule.probe.experiment}
    assert named == {rule: one.name for one in EXPERIMENTS for rule in one.rules}


def test_experiments_and_rules_agree_on_what_only_the_device_settles():
    for one in EXPERIMENTS:
        for symbol in one.bound:
            probe = by_symbol[symbol].probe
            assert probe.device_bound or probe.bound_experiment, symbol
