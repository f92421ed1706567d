"""Experiments and their processes: each ends alone, whatever it does, and all of them within the budget."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from collected import for_every

from ldlm_lint.cli import main
from ldlm_lint.evidence.files import read
from ldlm_lint.evidence.model import Judgement, Measurement, Scope, Status, Verdict, plain
from ldlm_lint.probe.micro import child, judging, runner, table
from ldlm_lint.probe.micro.experiment import Context, Experiment, settled
from ldlm_lint.probe.micro.sampling import Timing
from ldlm_lint.rules import ALL

RULE = "optimizer-not-fused"
SCOPE = Scope("cpu", "cpu")
VERIFIED = plain(Judgement(RULE, "claim", Verdict.VERIFIED, "seen", SCOPE, measured=Measurement("m", 1.5, "x")))
LINE = json.dumps({"kind": "judgement", "value": VERIFIED})

PRELUDE = """
import json, os, pathlib, sys, time
request = json.loads(pathlib.Path(sys.argv[1]).read_text())
results = open(request["results"], "a")
def say(line):
    results.write(line + "\\n"); results.flush()
"""


def program(monkeypatch, tmp_path: Path, text: str) -> None:
    """Let a program stand in for each experiment's process."""
    path = tmp_path / "experiment.py"
    path.write_text(PRELUDE + f"LINE = {LINE!r}\n" + text)
    monkeypatch.setattr(runner, "command", lambda request: [sys.executable, str(path), str(request)])


def experiment(name: str = "one", *rules: str, least: float = 0.1) -> Experiment:
    return Experiment(name, "fused", "title", rules or (RULE,), frozenset(), 1.0, least)


def ran(*experiments: Experiment, budget: float = 30.0, rules: frozenset[str] = frozenset()):
    said: list[tuple[str, str]] = []
    options = runner.Options(time.monotonic() + budget, budget, rules=rules)
    evidence, results = runner.run(experiments or (experiment(),), options, lambda *words: said.append(words))
    return evidence, results, said


def test_what_an_experiment_says_is_taken_in(monkeypatch, tmp_path):
    text = """
say(LINE)
say(json.dumps({"kind": "observation", "value": {"topic": "kernels", "values": {"a": 1}}}))
say(json.dumps({"kind": "note", "value": "a word"}))
"""
    program(monkeypatch, tmp_path, text)
    evidence, results, said = ran()
    assert [(one.rule, one.verdict, one.measured.value) for one in evidence.judgements] == [
        (RULE, Verdict.VERIFIED, 1.5)
    ]
    assert evidence.observations == {"one": {"kernels": {"a": 1}}} and evidence.notes == ("a word",)
    assert (evidence.run.kind, results.failed, results.finished) == ("micro", 0, 1)
    assert said[0] == ("one", "title") and said[1][1].startswith("done in")


def test_a_crash_takes_neither_what_was_done_nor_the_others(monkeypatch, tmp_path):
    text = """
if request["experiment"] == "crashes":
    say(LINE); say('{"kind": "judg')
    os.kill(os.getpid(), 11)
say(LINE)
"""
    program(monkeypatch, tmp_path, text)
    evidence, results, _ = ran(experiment("crashes", RULE, "tf32-disabled"), experiment("works", "unfused-attention"))
    verdicts = [(one.rule, one.verdict) for one in evidence.judgements]
    assert verdicts.count((RULE, Verdict.VERIFIED)) == 2
    lost = next(one for one in evidence.judgements if one.rule == "tf32-disabled")
    assert lost.verdict is Verdict.INCONCLUSIVE and "SIGSEGV" in lost.reason
    assert (results.failed, results.finished) == (1, 1) and "SIGSEGV" in evidence.unavailable["crashes"]


def test_an_exception_is_told_by_its_last_line(monkeypatch, tmp_path):
    program(monkeypatch, tmp_path, "raise RuntimeError('CUDA error: an illegal memory access was encountered')")
    evidence, results, _ = ran()
    assert evidence.judgements[0].reason.endswith("RuntimeError: CUDA error: an illegal memory access was encountered")
    assert results.failed == 1


def test_a_killed_process_may_have_been_out_of_memory(monkeypatch, tmp_path):
    program(monkeypatch, tmp_path, "os.kill(os.getpid(), 9)")
    assert "SIGKILL (out of memory?)" in ran()[0].judgements[0].reason


def test_a_hung_process_and_its_children_end_with_the_budget(monkeypatch, tmp_path):
    mark = tmp_path / "pid"
    text = f"""
say(LINE)
import subprocess
worker = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
pathlib.Path({str(mark)!r}).write_text(str(worker.pid))
time.sleep(600)
"""
    program(monkeypatch, tmp_path, text)
    began = time.monotonic()
    evidence, _, _ = ran(experiment("hangs", RULE, "tf32-disabled"), experiment("later", least=1.0), budget=6.0)
    assert time.monotonic() - began < 6.0
    assert evidence.unavailable == {"hangs": "cut off: budget (6 s)", "later": "not run: budget (6 s)"}
    assert {one.verdict for one in evidence.judgements if one.rule == RULE} >= {Verdict.VERIFIED}
    assert gone(int(mark.read_text()))


def gone(pid: int) -> bool:
    """Whether a process has ended, or will when its parent asks for it."""
    for _ in range(50):
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            return True
        if state == "Z":
            return True
        time.sleep(0.1)
    return False


def test_nothing_is_started_that_the_budget_does_not_allow(monkeypatch, tmp_path):
    program(monkeypatch, tmp_path, "raise SystemExit('was started')")
    evidence, results, _ = ran(experiment("a", least=5.0), budget=3.0)
    assert evidence.unavailable == {"a": "not run: budget (3 s)"} and results.failed == 0
    assert evidence.judgements[0].verdict is Verdict.INCONCLUSIVE


def test_a_rule_that_was_asked_for_alone_is_told_alone(monkeypatch, tmp_path):
    program(monkeypatch, tmp_path, "say(LINE)")
    evidence, _, _ = ran(experiment("one", RULE, "tf32-disabled"), rules=frozenset({"tf32-disabled"}))
    assert [one.rule for one in evidence.judgements] == ["tf32-disabled"]


@pytest.mark.parametrize(("code", "usage"), [(child.NO_TORCH, False), (child.NO_DEVICE, True)])
def test_without_torch_or_the_device_nothing_goes_on(monkeypatch, tmp_path, code, usage):
    program(monkeypatch, tmp_path, f"print('why'); sys.exit({code})")
    with pytest.raises(runner.ProbeError, match=r"^why") as raised:
        ran()
    assert raised.value.usage is usage


def test_the_command_writes_table_json_and_evidence(monkeypatch, tmp_path, capsys):
    program(monkeypatch, tmp_path, "say(LINE)")
    monkeypatch.setattr(runner, "has_torch", lambda: True)
    arguments = [
        "probe",
        "--only",
        RULE,
        "--budget",
        "20",
        "--json",
        str(tmp_path / "v.json"),
        "--out",
        str(tmp_path / "e"),
    ]
    assert main(arguments) == 0
    shown = capsys.readouterr()
    assert "verified" in shown.out and RULE in shown.out and "1 verified, 0 refuted, 0 inconclusive." in shown.out
    assert "fused-optimizer: " in shown.err
    assert json.loads((tmp_path / "v.json").read_text())["verdicts"][0]["rule"] == RULE
    assert read(tmp_path / "e")[0].judgements[0].verdict is Verdict.VERIFIED
    assert main([*arguments[:5], "--json", "-"]) == 0
    assert json.loads(capsys.readouterr().out)["summary"] == {"verified": 1, "refuted": 0, "inconclusive": 0}


def test_a_folder_that_cannot_be_written_hides_no_result(monkeypatch, tmp_path, capsys):
    program(monkeypatch, tmp_path, "say(LINE)")
    monkeypatch.setattr(runner, "has_torch", lambda: True)
    (tmp_path / "file").write_text("")
    for option in ("--out", "--json"):
        assert main(["probe", "--only", RULE, "--budget", "20", option, str(tmp_path / "file" / "below")]) == 3
        shown = capsys.readouterr()
        assert "1 verified" in shown.out and "error: " in shown.err and "Traceback" not in shown.err


def test_the_command_fails_where_every_experiment_did(monkeypatch, tmp_path):
    program(monkeypatch, tmp_path, "sys.exit(3)")
    monkeypatch.setattr(runner, "has_torch", lambda: True)
    assert main(["probe", "--only", "ddp", "--budget", "20"]) == 3


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--only", "no-such-thing"], "no experiment has the name or tests the rule no-such-thing"),
        (["--budget", "0"], "--budget needs at least 1 second"),
        (["--budget", "nan"], "--budget needs at least 1 second"),
        (["--budget", "soon"], "invalid float value"),
        (["--device", "tpu"], "invalid choice"),
    ],
)
def test_wrong_usage(words, said, capsys):
    assert main(["probe", *words]) == 2
    assert said in capsys.readouterr().err


def test_without_torch_the_command_says_what_to_install(monkeypatch, capsys):
    monkeypatch.setattr(runner, "has_torch", lambda: False)
    assert main(["probe", "--budget", "5"]) == 2
    assert "python -m pip install torch" in capsys.readouterr().err


def test_a_broken_torch_is_a_failure(monkeypatch, tmp_path, capsys):
    (tmp_path / "torch").mkdir()
    (tmp_path / "torch" / "__init__.py").write_text("raise OSError('libtorch_cpu.so: undefined symbol')\n")
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}{os.pathsep}{os.environ.get('PYTHONPATH', '')}")
    monkeypatch.setattr(runner, "has_torch", lambda: True)
    assert main(["probe", "--only", "precision", "--budget", "20"]) == 3
    assert "torch cannot be imported (OSError: libtorch_cpu.so: undefined symbol)" in capsys.readouterr().err


def test_the_table_names_rules_that_exist_each_once():
    symbols = {rule.symbol for rule in ALL}
    rules = [rule for one in table.EXPERIMENTS for rule in one.rules]
    assert set(rules) <= symbols and len(rules) == len(set(rules))
    assert all(one.bound <= set(one.rules) for one in table.EXPERIMENTS)


def test_rules_and_experiments_name_each_other():
    named = {rule.symbol: rule.probe for rule in ALL if rule.probe is not None and rule.probe.experiment}
    for one in table.EXPERIMENTS:
        assert {symbol for symbol, probe in named.items() if probe.experiment == one.name} == set(one.rules)
        bound = {symbol for symbol in one.rules if named[symbol].device_bound or named[symbol].bound_experiment}
        assert one.bound == bound


def test_experiments_are_named_by_name_rule_or_code():
    assert len(table.selected([])[0]) == len(table.EXPERIMENTS)
    by_rule, rules = table.selected(["tf32-disabled"])
    assert [one.name for one in by_rule] == ["precision"] and rules == {"tf32-disabled"}
    by_code, rules = table.selected(["r7301"])
    assert [one.name for one in by_code] == ["fused-optimizer"] and rules == {RULE}
    both, rules = table.selected(["ddp", "tf32-disabled"])
    assert [one.name for one in both] == ["precision", "ddp"] and "ddp-gradient-copy" in rules
    assert [one.name for one in table.selected(["fused"])[0]] == ["fused-optimizer"]
    for name in ("dd", "optimizer-not-fuse", "e", "", "-"):
        with pytest.raises(LookupError):
            table.selected([name])


def context(**values) -> Context:
    return Context(**{"torch": None, "device": "cpu", "target": "", "seed": 0, "end": 0.0, "scratch": "", **values})


@for_every(
    ("device", "target", "verdict"),
    [
        ("cpu", "", Verdict.INCONCLUSIVE),
        ("cpu", "cuda", Verdict.INCONCLUSIVE),
        ("cpu", "cpu", Verdict.VERIFIED),
        ("cuda", "", Verdict.VERIFIED),
        ("cuda", "cuda", Verdict.VERIFIED),
        ("cuda", "cpu", Verdict.INCONCLUSIVE),
    ],
)
def test_a_device_settles_only_its_own_rules(device, target, verdict):
    here = context(device=device, target=target, bound=frozenset({RULE}))
    bound = settled(here, Judgement(RULE, "", Verdict.VERIFIED, "why", here.scope(), measured=Measurement("m", 2.0)))
    assert bound.verdict is verdict and bound.measured.value == 2.0
    free = Judgement("ddp-gradient-copy", "", Verdict.REFUTED, "why", here.scope())
    assert settled(here, free) is free


def timing(clock: str, rounds: int = 20, effect: float = 2.0, pressure: float | None = 1.0) -> Timing:
    """Samples that differ by a thousandth."""
    noise = [1 + number % 7 / 1000 for number in range(rounds)]
    samples = {
        "slow": [effect * one for one in noise],
        "fast": noise[::-1],
        judging.TWIN: [effect * one for one in noise],
    }
    return Timing(clock, {clock: samples}, 3, pressure)


def compared(found: Timing, **options) -> Judgement:
    gpu_busy = options.pop("gpu_busy", "")
    device = "cuda" if gpu_busy else "cpu"
    return judging.compared(context(gpu_busy=gpu_busy, device=device), RULE, "claim", found, "slow", "fast", **options)


def test_a_comparison_carries_what_it_rests_on():
    found = compared(timing("process_time"), detail={"kernels": {"a": 1}})
    assert found.verdict is Verdict.VERIFIED and "2.00 times as long" in found.reason
    measured = found.measured
    assert (measured.n, measured.threshold, measured.clock, measured.unit) == (20, 1.05, "process_time", "x")
    assert measured.ci95[0] <= measured.value <= measured.ci95[1] and measured.noise_band >= 1
    assert next((one.name, one.inner, one.unit) for one in measured.arms) == ("slow", 3, "ms")
    assert measured.detail["kernels"] == {"a": 1}


def test_pressure_spoils_the_wall_clock_and_not_the_cpu_clock():
    spoilt = compared(timing("perf_counter", pressure=20.5))
    assert spoilt.verdict is Verdict.INCONCLUSIVE and "waited for a CPU" in spoilt.reason
    assert spoilt.measured.value == pytest.approx(2.0, rel=0.01)
    assert compared(timing("perf_counter", pressure=19.5)).verdict is Verdict.VERIFIED
    assert compared(timing("perf_counter", pressure=None)).verdict is Verdict.VERIFIED
    assert compared(timing("process_time", pressure=90.0)).verdict is Verdict.VERIFIED


def test_a_gpu_that_others_use_decides_nothing():
    found = compared(timing("perf_counter"), gpu_busy="2 other processes on GPU 0")
    assert found.verdict is Verdict.INCONCLUSIVE and found.reason.startswith("2 other processes on GPU 0")


def test_no_difference_refutes_unless_something_stood_in():
    assert compared(timing("process_time", effect=1.0)).verdict is Verdict.REFUTED
    stand_in = compared(timing("process_time", effect=1.0), stand_in="a sleep")
    assert stand_in.verdict is Verdict.INCONCLUSIVE and "does not refute it for yours" in stand_in.reason


def test_too_few_rounds_are_said():
    assert "5 of 15 rounds" in compared(timing("process_time", rounds=5)).reason
    assert "no time was left" in compared(timing("process_time", rounds=1)).reason


def test_an_interruption_keeps_what_was_measured(monkeypatch, tmp_path, capsys):
    program(monkeypatch, tmp_path, "say(LINE)")
    real, asked = runner._wait, []

    def wait(*arguments):
        asked.append(real(*arguments))
        if len(asked) == 2:
            raise KeyboardInterrupt
        return asked[-1]

    monkeypatch.setattr(runner, "_wait", wait)
    monkeypatch.setattr(runner, "has_torch", lambda: True)
    assert main(["probe", "--budget", "30", "--out", str(tmp_path / "e")]) == 130
    assert len(asked) == 2
    (evidence,) = read(tmp_path / "e")
    assert evidence.run.status is Status.INTERRUPTED and RULE in {one.rule for one in evidence.judgements}
    assert "not run: interrupted" in capsys.readouterr().out


PARENT = """
import subprocess, sys
child = "import os, time; from ldlm_lint.probe.micro.child import leave_with; leave_with(os.getppid()); "
process = subprocess.Popen([sys.executable, "-c", child + "print('up', flush=True); time.sleep(600)"],
                           start_new_session=True, stdout=subprocess.PIPE)
process.stdout.readline()
print(process.pid, flush=True)
process.wait()
"""


@pytest.mark.skipif(not hasattr(os, "getppid") or sys.platform == "win32", reason="process groups of POSIX")
def test_an_experiment_does_not_outlive_the_command():
    command = subprocess.Popen([sys.executable, "-c", PARENT], stdout=subprocess.PIPE, text=True)
    child_id = int(command.stdout.readline())
    command.terminate()
    command.wait(10)
    command.stdout.close()
    assert gone(child_id)
