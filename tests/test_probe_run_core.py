"""The parts of ``probe run`` by themselves: which steps count, who the anchor is, what a run's end means, what is copied."""

from __future__ import annotations

import dataclasses
import json
import socket
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from collected import for_every

from ldlm_lint.evidence import files
from ldlm_lint.evidence.account import notes_of
from ldlm_lint.evidence.model import Environment, Evidence, Run, Status
from ldlm_lint.probe import copies, launch, outcome, place, projects, sites, timing
from ldlm_lint.probe.launch import Ended
from ldlm_lint.probe.recording import identity_of
from ldlm_lint.probe.session import Observer, Phase, Session
from ldlm_lint.probe.settings import Settings
from ldlm_lint.probe.watcher import FORSAKEN_AFTER, Watcher


class Diary(Observer):
    topic = "diary"

    def __init__(self) -> None:
        self.lines: list[str] = []

    def on_backward(self, session: Session) -> None:
        self.lines.append("backward")

    def before_step(self, session: Session, optimizer: Any) -> None:
        self.lines.append("before")

    def after_step(self, session: Session) -> None:
        self.lines.append(f"after {session.step} {session.phase.value}")

    def stop_observing(self, session: Session) -> None:
        self.lines.append("stop observing")

    def profiled(self, session: Session, profile: Any) -> None:
        self.lines.append("profiled")

    def collect(self, session: Session) -> Any:
        return {"lines": len(self.lines)}


def _watcher(torch: Any, steps: int = 20, *observers: Observer) -> Watcher:
    watcher = Watcher(torch, "/", steps, observers=observers)
    watcher.start()
    return watcher


def test_observers_are_led_through_the_phases(torch: Any) -> None:
    diary = Diary()
    watcher = _watcher(torch, 5, diary)
    optimizer = torch.optim.Optimizer()
    for _ in range(6):
        torch.autograd.backward(None)
        optimizer.step()
    assert diary.lines == [
        *("backward", "before", "after 1 observe", "backward", "before", "after 2 observe"),
        *("backward", "before", "after 3 observe", "stop observing"),
        *("backward", "before", "after 4 profile", "profiled", "backward", "before", "after 5 time"),
    ]
    assert watcher.done
    found = watcher.finish()
    assert found["diary"] == {"lines": 17}


def test_everything_is_taken_back(torch: Any) -> None:
    owners = [(torch.autograd, "backward"), (torch.optim.Optimizer, "__init__"), (torch.nn.Module, "train")]
    before = [getattr(owner, name) for owner, name in owners]
    watcher = _watcher(torch, 5, Diary())
    optimizer = torch.optim.Optimizer()
    for _ in range(5):
        optimizer.step()
    watcher.finish()
    watcher.release()
    hooks = sys.modules["torch.optim.optimizer"]
    assert [getattr(owner, name) for owner, name in owners] == before
    assert (hooks.before, hooks.after) == ([], [])


def test_an_iteration_is_a_step_of_the_anchor_and_nested_steps_are_none(torch: Any) -> None:
    watcher = _watcher(torch)
    generator, critic = torch.optim.Optimizer(inner=torch.optim.Optimizer()), torch.optim.Optimizer()
    for _ in range(3):
        generator.step()
        for _ in range(5):
            critic.step()
    assert watcher.session.step == 3


def test_a_new_anchor_follows_one_that_is_gone_or_forsaken(torch: Any) -> None:
    watcher = _watcher(torch, 1000)
    first = torch.optim.Optimizer()
    first.step()
    del first
    second = torch.optim.Optimizer()
    second.step()
    assert watcher.session.step == 2
    third = torch.optim.Optimizer()
    for _ in range(FORSAKEN_AFTER + 3):
        third.step()
    assert watcher.session.step == 2 + 3


def test_a_step_that_raised_is_no_nesting(torch: Any) -> None:
    watcher = _watcher(torch)
    optimizer = torch.optim.Optimizer(inner=SimpleNamespace(step=lambda: 1 / 0))
    for _ in range(2):
        with pytest.raises(ZeroDivisionError):
            optimizer.step()
    optimizer.inner = None
    optimizer.step()
    assert watcher.session.step == 1


def test_an_optimizer_that_steps_late_takes_the_counting_over(torch: Any) -> None:
    watcher = _watcher(torch)
    for _ in range(4):
        torch.autograd.backward(None)
    optimizer = torch.optim.Optimizer()
    torch.autograd.backward(None)
    steps = watcher.session.step
    optimizer.step()
    assert watcher.session.step == steps + 1
    assert watcher.finish()["steps"]["unit"] == "optimizer step"


def test_an_error_of_the_probe_ends_its_topic_and_nothing_else(torch: Any) -> None:
    class Broken(Diary):
        topic = "broken"

        def before_step(self, session: Session, optimizer: Any) -> None:
            raise RuntimeError("ours")

    diary = Diary()
    watcher = _watcher(torch, 5, Broken(), diary)
    optimizer = torch.optim.Optimizer()
    for _ in range(5):
        optimizer.step()
    found = watcher.finish()
    assert "broken" not in found and "diary" in found
    assert watcher.session.unavailable["broken"] == "the probe's own error (RuntimeError: ours)"


def test_an_iteration_with_an_evaluation_is_not_the_one_that_is_profiled(torch: Any) -> None:
    diary = Diary()
    _watcher(torch, 9, diary)
    optimizer = torch.optim.Optimizer()
    for number in range(1, 10):
        if number == 4:
            torch.nn.Module().train(False)
        optimizer.step()
    assert diary.lines.index("profiled") == diary.lines.index("after 5 profile") + 1


def test_no_window_is_opened_inside_of_a_backward_pass(torch: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    watcher = _watcher(torch, 9, diary := Diary())
    optimizer = torch.optim.Optimizer()
    monkeypatch.setattr(torch._C, "_current_graph_task_id", lambda: 7)
    for _ in range(9):
        optimizer.step()
    assert "profiled" not in diary.lines
    assert "inside the backward pass" in watcher.session.unavailable["profiled step"]


def test_the_program_s_profiler_closes_the_window(torch: Any) -> None:
    diary = Diary()
    watcher = _watcher(torch, 9, diary)
    optimizer = torch.optim.Optimizer()
    for number in range(1, 10):
        if number == 4:
            with torch.autograd.profiler.profile() as own:
                assert torch.autograd.profiler.running == [own]
        optimizer.step()
    assert "profiled" not in diary.lines
    assert watcher.session.unavailable["profiled step"] == "the program started its own profiler"


def test_iterations_are_timed_by_phase_and_disturbed_ones_apart() -> None:
    clock = timing.Clock()
    for phase, why in ((Phase.OBSERVE, set()), (Phase.OBSERVE, {"first batch"}), (Phase.TIME, set())):
        clock.backward()
        clock.iteration(phase, why)
        clock.restart()
    found = clock.summary(Session(None, "/", step=3, backwards=3), "optimizer step")
    assert {name: one["n"] for name, one in found["seconds"].items()} == {"disturbed": 1, "time": 1}
    assert found["disturbed_by"] == {"first batch": 1}
    assert found["backward_passes_per_step"] == {"1": 3}


def test_ranks_are_the_group_s_where_there_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("RANK", "0"), ("LOCAL_RANK", "0"), ("WORLD_SIZE", "1")):
        monkeypatch.setenv(name, value)
    group = SimpleNamespace(is_available=lambda: True, is_initialized=lambda: True)
    group.get_rank, group.get_world_size = (lambda: 3), (lambda: 8)
    session = Session(SimpleNamespace(distributed=group), "/")
    place.settle(session)
    group.is_initialized = lambda: False
    place.settle(session)
    assert (session.rank, session.world_size) == (3, 8)


def test_the_device_is_the_parameters(monkeypatch: pytest.MonkeyPatch) -> None:
    cpu, gpu = (
        SimpleNamespace(device=SimpleNamespace(type=kind, index=at)) for kind, at in (("cpu", None), ("cuda", 2))
    )
    assert place.device_of([{"params": [cpu, gpu]}]).type == "cuda"
    assert place.device_of([{"params": [cpu]}]).type == "cpu"
    assert place.device_of([]) is None


def test_settings_survive_the_environment() -> None:
    settings = Settings("/out", "/root", "/shown", "id", ("python", "train.py"), 7, False, 12.5)
    assert Settings.from_environment({"LDLM_PROBE": settings.to_environment()}) == settings


def test_the_environment_of_the_command() -> None:
    found = launch.environment_of(
        Settings("/out", "/root"), {"PYTHONPATH": "/own", "WANDB_MODE": "online"}, offline=True
    )
    assert found["PYTHONPATH"].split(":")[1:] == ["/own"]
    assert Path(found["PYTHONPATH"].split(":")[0], "sitecustomize.py").is_file()
    assert (found["WANDB_MODE"], found["KINETO_LOG_LEVEL"]) == ("offline", "99")
    plain = launch.environment_of(Settings("/out", "/root"), {"KINETO_LOG_LEVEL": "3"})
    assert plain["KINETO_LOG_LEVEL"] == "3" and "WANDB_MODE" not in plain
    assert not plain["PYTHONPATH"].endswith(":")


def _evidence(
    rank: int = 0, status: Status = Status.STOPPED, steps: int = 8, exception: str = "", size: int = 1
) -> Evidence:
    run = Run(
        "watch",
        f"id-{rank}",
        rank=rank,
        world_size=size,
        pid=100 + rank,
        status=status,
        steps=steps,
        exception=exception,
    )
    return Evidence(run, Environment(), {"steps": {"count": steps, "backward_passes": steps}})


CRASHED = _evidence(0, Status.CRASHED, 5, "RuntimeError: Connection closed by peer", 2)
KILLED = _evidence(1, Status.KILLED, 7, "killed", 2)
CAUSE = _evidence(1, Status.CRASHED, 5, "ValueError: boom", 2)


@for_every(
    ("evidence", "ended", "code", "said"),
    [
        ([_evidence()], Ended(0), 0, ""),
        ([_evidence()], Ended(1), 0, ""),
        ([_evidence(status=Status.FINISHED)], Ended(1), 3, "the command ended with exit code 1; the evidence of 8 steps is kept"),
        ([_evidence(status=Status.TIMEOUT)], Ended(-2, timed_out=True, seconds=9.6), 3, "still running at the limit, ended after 10 s"),
        ([_evidence()], Ended(-9, timed_out=True), 0, ""),
        ([], Ended(-9, timed_out=True, seconds=3), 3, "ended after 3 s; no evidence: why"),
        ([_evidence(status=Status.INTERRUPTED)], Ended(-2, interrupted=True), 130, "interrupted; the evidence of 8 steps"),
        ([CRASHED, CAUSE], Ended(1), 3, "after 5 steps: ValueError: boom (rank 1); RuntimeError: Connection closed by peer (rank 0)"),
        ([_evidence(status=Status.CRASHED, steps=0, exception="E: x")], Ended(1), 3, "crashed before its first optimizer step: E: x"),
        ([KILLED, CRASHED], Ended(1), 3, "rank 1 was killed after step 7; the evidence of 7 steps is kept (RuntimeError: Conn"),
        ([KILLED, CAUSE], Ended(1), 3, "crashed after 5 steps: ValueError: boom (rank 1)"),
        ([], Ended(0), 3, "no evidence: why"),
        ([_evidence(status=Status.FINISHED, steps=0)], Ended(-9), 3, "no evidence: why; the command ended by signal 9"),
    ],
)  # fmt: skip
def test_the_end_of_a_run_decides_the_exit_code(evidence: list[Evidence], ended: Ended, code: int, said: str) -> None:
    found = outcome.judged(evidence, ended, lambda: "why")
    assert found[0] == code
    assert (said in found[1]) if said else found[1] == ""


def test_evidence_of_idle_processes_counts_only_where_it_explains_something(tmp_path: Path) -> None:
    launcher, failed = _evidence(0, Status.FINISHED, 0), _evidence(1, Status.CRASHED, 0, "ValueError: boom", 2)
    for one in (launcher, failed):
        files.write(one, tmp_path / ".idle")
    files.write(_evidence(0, size=2), tmp_path)
    found = outcome.outcome_of(tmp_path, "id", Ended(1))
    assert [(one.run.rank, one.run.steps) for one in found.evidence] == [(0, 8), (1, 0)]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["evidence-rank0-100.json", "evidence-rank1-101.json"]


@pytest.mark.parametrize(
    ("alive", "host", "status"),
    [([], "", Status.KILLED), ([100], "", Status.RUNNING), ([], "elsewhere", Status.RUNNING)],
    ids=["gone", "alive", "other-machine"],
)
def test_a_process_that_still_runs_is_not_called_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, alive: list[int], host: str, status: Status
) -> None:
    monkeypatch.setattr("ldlm_lint.probe.killed.members", lambda _: alive)
    one = _evidence(status=Status.RUNNING)
    one = dataclasses.replace(one, run=dataclasses.replace(one.run, host=host or socket.gethostname()))
    files.write(one, tmp_path, compact=True)
    found = outcome.outcome_of(tmp_path, "id", Ended(137, pid=1))
    assert [kept.run.status for kept in (*found.evidence, *files.read(tmp_path))] == [status, status]
    assert ("killed by signal 9 (SIGKILL) after step 8" in found.problem) == (status is Status.KILLED)


def test_evidence_of_other_runs_in_the_folder_is_left_alone(tmp_path: Path) -> None:
    files.write(_evidence(), tmp_path)
    (tmp_path / "evidence-rank9-1.json").write_text("{")
    found = outcome.outcome_of(tmp_path, "another", Ended(0))
    assert found.evidence == () and found.code == 3
    assert "evidence-rank9-1.json: not JSON" in found.notes[0]
    assert len(list(tmp_path.iterdir())) == 2


def test_trainings_of_one_command_are_runs_of_their_own() -> None:
    torchrun = {"LOCAL_WORLD_SIZE": "2", "MASTER_ADDR": "a", "MASTER_PORT": "1", "TORCHELASTIC_RUN_ID": "none"}
    again = {**torchrun, "TORCHELASTIC_RESTART_COUNT": "1"}
    nodes = {**torchrun, "TORCHELASTIC_RUN_ID": "x"}
    assert identity_of("id", 2, torchrun, pid=1, parent=5) == identity_of("id", 2, torchrun, pid=2, parent=5)
    assert identity_of("id", 2, torchrun, pid=1, parent=5) != identity_of("id", 2, torchrun, pid=1, parent=6)
    assert identity_of("id", 2, torchrun, pid=1, parent=5) != identity_of("id", 2, again, pid=1, parent=5)
    assert identity_of("id", 4, nodes, pid=1, parent=5) == identity_of("id", 4, nodes, pid=1, parent=6)


def test_the_account_says_the_same_of_all_ranks_once() -> None:
    both = [_evidence(rank, size=2) for rank in (0, 1)]
    assert next(iter(notes_of(both))).startswith("rank 0, 1: watched 8 optimizer steps on cpu")


def test_the_account_names_the_ranks_that_are_missing() -> None:
    assert any(note.startswith("no evidence of rank 1, 2:") for note in notes_of([_evidence(0, size=3)]))
    assert not any(note.startswith("no evidence") for note in notes_of([_evidence(0)]))


def test_the_command_is_found_before_it_runs(tmp_path: Path) -> None:
    (tmp_path / "train.py").touch()
    assert projects.command_of(["train.py", "--x"], tmp_path)[1:] == ["train.py", "--x"]
    assert projects.command_of([sys.executable, "-m", "pkg"], tmp_path) == [sys.executable, "-m", "pkg"]
    for words in ([], ["nothing-of-that-name"], ["python", "missing.py"]):
        with pytest.raises(projects.CommandError):
            projects.command_of(words, tmp_path)


def test_the_root_is_the_script_s_project(tmp_path: Path) -> None:
    nested = tmp_path / "project" / "scripts"
    nested.mkdir(parents=True)
    (nested / "train.py").touch()
    assert projects.root_of(["torchrun", "project/scripts/train.py"], tmp_path) == tmp_path
    (tmp_path / "project" / "setup.py").touch()
    assert projects.root_of(["torchrun", "project/scripts/train.py"], tmp_path) == tmp_path / "project"
    assert projects.root_of(["python", str(nested / "train.py")], nested) == tmp_path / "project"


def test_a_copy_has_what_git_would_keep(tmp_path: Path) -> None:
    project = tmp_path / "project"
    (project / "data").mkdir(parents=True)
    (project / "venv").mkdir()
    (project / "venv" / "pyvenv.cfg").touch()
    (project / "train.py").write_text("pass\n")
    (project / "data" / "x.bin").write_bytes(b"123")
    (project / "here").symlink_to("train.py")
    (project / "there").symlink_to("../outside")
    (tmp_path / "outside").write_text("o")
    made = copies.make(project, tmp_path / "copy", ["data"])
    assert (tmp_path / "copy" / "train.py").read_text() == "pass\n"
    assert (tmp_path / "copy" / "data").is_symlink()
    assert (tmp_path / "copy" / "here").readlink() == Path("train.py")
    assert (tmp_path / "copy" / "there").read_text() == "o"
    assert not (tmp_path / "copy" / "venv").exists()
    assert made.files == 3
    with pytest.raises(copies.CopyError, match="more than 4"):
        copies.make(project, tmp_path / "other", most_bytes=4)
    with pytest.raises(copies.CopyError, match="not empty"):
        copies.make(project, tmp_path / "copy")
    with pytest.raises(copies.CopyError, match="inside the project"):
        copies.make(project, project / "copy")
    with pytest.raises(copies.CopyError, match="nothing to link"):
        copies.make(project, tmp_path / "third", ["weights"])


def test_a_call_site_is_the_project_s_own_and_knows_its_lines(tmp_path: Path) -> None:
    source = "def make(call):\n    return call(\n        1,\n    )\n"
    (tmp_path / "train.py").write_text(source)
    names: dict[str, Any] = {}
    exec(compile(source, str(tmp_path / "train.py"), "exec"), names)
    found = names["make"](lambda _: sites.call_site(str(tmp_path), 1))
    assert (found["path"], found["line"], found["function"]) == ("train.py", 2, "make")
    assert found["end_line"] == (4 if sys.version_info >= (3, 11) else 2)
    assert sites.call_site(str(tmp_path / "elsewhere")) is None
    assert not sites.is_project(json.__file__, "/")
