"""The table of verdicts: what stands in a row, in what order, and what would settle the open ones."""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from collected import for_every
from dossiers import INCONCLUSIVE, REFUTED, UNUSED, VERIFIED, judged, site, written

from ldlm_lint.cli import main
from ldlm_lint.evidence.amounts import duration
from ldlm_lint.evidence.model import Judgement, Measurement, Scope, Site, from_json, to_json
from ldlm_lint.evidence.settling import command, hint
from ldlm_lint.report.verdict_table import write_verdicts
from ldlm_lint.report.verdicts import figure

PLACE = (Site("train.py", 7),)
FUSED, RESTARTS = "optimizer-not-fused", "dataloader-without-persistent-workers"
LAUNCH = ("python", "train.py", "--config", "a b.yaml")


def _made(rule: str, verdict: Any = INCONCLUSIVE, settled_by: str = "", **changes: Any) -> Judgement:
    row = judged(rule, verdict, PLACE)
    return replace(row, **{"measured": None, "settled_by": settled_by, **changes})


def _written(judgements: Sequence[Judgement], **options: Any) -> str:
    stream = io.StringIO()
    write_verdicts(judgements, stream, **options)
    return stream.getvalue()


def test_rows_come_by_use_and_open_ones_by_what_would_settle_them() -> None:
    rows = [
        _made("unfused-attention", settled_by="device"),
        _made(RESTARTS, settled_by="steps"),
        _made(UNUSED, settled_by="ranks"),
        _made("compile-guarded-by-try"),
        _made("whole-model-checkpoint", REFUTED),
        _made("ddp-gradient-copy", VERIFIED),
        _made(FUSED, settled_by="device"),
        asked := _made("loss-graph-accumulation", REFUTED),
    ]
    said = [line for line in _written(rows, answered=[asked], launch=LAUNCH).splitlines() if line and line[0] != " "]
    assert [line.split("  ")[0] for line in said] == [
        "Seen in 50 steps on 2 ranks (cpu):",
        "verified",
        "refuted",
        "run it on the GPU machine: ldlm-lint probe run -- python train.py --config 'a b.yaml'",
        "inconclusive",
        "inconclusive",
        "gather the evidence of all ranks: ldlm-lint probe run -- python train.py --config 'a b.yaml'",
        "inconclusive",
        "watch more steps: ldlm-lint probe run --steps 250 -- python train.py --config 'a b.yaml'",
        "inconclusive",
        "inconclusive",
        "not present",
        "1 verified, 1 refuted, 5 inconclusive, 1 not present.",
    ]


def test_a_row_says_the_claim_before_what_was_seen_and_hides_counts_that_the_sentence_has() -> None:
    count = Measurement("parameters without gradient", 0.0, "parameters", n=72)
    peak = Measurement("peak memory", 3.0 * 2**30, "bytes")
    rows = [_made(UNUSED, VERIFIED, claim="it is said", reason="0 seen in 50 steps on 2 ranks (cpu)", measured=count)]
    lines = [" ".join(line.split()) for line in _written(rows).splitlines()]
    assert lines[:3] == [
        f"verified {UNUSED} train.py:7",
        "claim it is said",
        "seen 0 seen in 50 steps on 2 ranks (cpu)",
    ]
    assert "parameters without" not in _written(rows)
    assert "measured  peak memory: 3.00 GiB\n" in _written([replace(rows[0], measured=peak)])


@pytest.mark.parametrize("width", [60, 80, 120])
def test_a_terminal_gets_lines_of_its_width_and_nothing_is_lost(width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", str(width))
    words = [f"word{number}" for number in range(40)]
    rows = [_made(RESTARTS, VERIFIED, reason=" ".join(words)), _made("unbounded-checkpoints", settled_by="device")]
    text = re.sub(r"\x1b\[[0-9;]*m", "", _written(rows, launch=LAUNCH))
    table = text[: text.index("1 verified")]
    assert max(map(len, table.splitlines())) <= width
    assert [found for found in text.split() if found.startswith("word")] == words
    assert "train.py:7" in text


def test_an_experiment_that_refutes_a_claim_is_not_about_presence() -> None:
    row = replace(judged(FUSED, REFUTED), measured=None)
    assert _written([row], answered=[row]).startswith("refuted ")


def test_what_the_line_above_a_group_says_is_not_said_again() -> None:
    row = _made(FUSED, settled_by="device", reason="observed on cpu, but the rule is about cuda; no fused kernel ran")
    assert "seen      no fused kernel ran\n" in _written([row])


@pytest.mark.parametrize(
    ("device", "settled_by", "said"),
    [
        ("cpu", "device", "run it on the GPU machine"),
        ("cuda", "device", "run it on the training machine"),
        ("cpu", "ranks", "run it under torchrun"),
        ("cpu", "", ""),
        ("cpu", "of a later version", ""),
    ],
)
def test_an_open_verdict_says_what_would_settle_it(device: str, settled_by: str, said: str) -> None:
    row = judged(FUSED, INCONCLUSIVE, device=device)
    row = replace(row, settled_by=settled_by, scope=replace(row.scope, ranks=(0,), world_size=1))
    assert hint(row) == said
    assert hint(replace(row, verdict=VERIFIED)) == ""


def test_ranks_that_left_no_evidence_are_asked_for() -> None:
    row = replace(judged(FUSED, INCONCLUSIVE), settled_by="ranks")
    assert hint(row) == "gather the evidence of all ranks"
    assert command("ranks", LAUNCH, row.scope) == "ldlm-lint probe run -- python train.py --config 'a b.yaml'"


def test_a_launcher_is_kept_and_an_unknown_command_is_left_to_the_user() -> None:
    torchrun = ("torchrun", "--nproc-per-node", "1", "train.py")
    assert command("ranks", torchrun, Scope("cpu")) == "ldlm-lint probe run -- torchrun --nproc-per-node 1 train.py"
    assert command("device", (), Scope("cpu")) == "ldlm-lint probe run -- <your launch command>"


@for_every(
    ("seconds", "shown"),
    [(2.25, "2.25 s"), (0.9999, "1 s"), (0.25, "250 ms"), (143e-6, "143 us"), (36_000.0, "10 h"), (0.0, "0 us")],
)
def test_times_have_a_unit_that_fits(seconds: float, shown: str) -> None:
    assert duration(seconds) == shown
    assert figure(Measurement("", seconds, "s")) == shown


def test_what_would_settle_it_is_read_back(tmp_path) -> None:
    from ldlm_lint.evidence import files

    folder = written(tmp_path, tmp_path, row := _made(FUSED, settled_by="device"))
    (evidence,) = files.read(folder)
    assert evidence.judgements == (row,)
    values = to_json(evidence)
    del values["judgements"][0]["settled_by"]
    assert from_json(values).judgements[0].settled_by == ""


def test_a_finding_says_what_would_settle_it(tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text(
        "import torch\n\n\ndef main(model, batches):\n    optimizer = torch.optim.AdamW(model.cuda().parameters())\n"
        "    for batch in batches:\n        model(batch).mean().backward()\n        optimizer.step()\n"
    )
    place = site(tmp_path / "train.py", 5, tmp_path)
    written(tmp_path / "e", tmp_path, _made(FUSED, settled_by="device", sites=(place,)))
    main(["check", "--isolated", "--select", FUSED, "--evidence", "e", "train.py"])
    assert "(cpu); run it on the GPU machine\n" in capsys.readouterr().out
