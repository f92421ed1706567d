"""``probe run`` from the outside: what becomes of programs that train, end early, hang, swallow or are not seen at all.

The programs import a torch of a few dozen lines; the same with the real one is in `test_probe_run_torch`.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ldlm_lint.evidence import files
from ldlm_lint.evidence.model import Evidence, Status
from ldlm_lint.probe import launch

MINI = Path(__file__).parent / "probed" / "minitorch"
CLI = (sys.executable, "-m", "ldlm_lint", "probe")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    shutil.copy(MINI / "train.py", tmp_path / "train.py")
    (tmp_path / "pyproject.toml").touch()
    return tmp_path


def _environment(**more: str) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(MINI), "PYTHONDONTWRITEBYTECODE": "1", **more}


def _probe(project: Path, *words: str, **more: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*CLI, *words], cwd=project, env=_environment(**more), capture_output=True, text=True, timeout=120, check=False
    )


def _train(project: Path, *words: str, options: tuple[str, ...] = ()) -> subprocess.CompletedProcess[str]:
    return _probe(project, "run", "--out", "seen", *options, "--", sys.executable, "train.py", *words)


def _evidence(project: Path) -> list[Evidence]:
    return files.read(project / "seen")


def test_a_program_is_ended_after_its_steps_and_cleans_up(project: Path) -> None:
    done = _train(project, options=("--steps", "8"))
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [*(f"step {one}" for one in range(1, 8)), "cleaned up"]
    (one,) = _evidence(project)
    assert (one.run.status, one.run.steps, one.run.world_size) == (Status.STOPPED, 8, 1)
    assert one.run.command == (sys.executable, "train.py")
    assert one.run.root == str(project)
    assert one.observations["steps"]["backward_passes_per_step"] == {"1": 8}
    assert {phase: seen["n"] for phase, seen in one.observations["steps"]["seconds"].items()} == {
        "observe": 2,
        "profile": 1,
        "time": 4,
    }
    assert "side" in done.stderr or "checkpoints" in done.stderr
    assert not list((project / "seen").glob(".*"))


def test_a_program_may_run_to_its_end(project: Path) -> None:
    done = _train(project, options=("--steps", "8", "--no-stop"))
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-3:] == ["step 30", "cleaned up", "after the training"]
    (one,) = _evidence(project)
    assert (one.run.status, one.run.steps) == (Status.FINISHED, 30)


@pytest.mark.parametrize(
    ("ending", "code", "status", "steps", "said"),
    [
        ("crash", 3, Status.CRASHED, 5, "the program crashed after 5 steps: ValueError: as written"),
        ("exit", 3, Status.CRASHED, 5, "the program crashed after 5 steps: exit code 4"),
        ("leave", 0, Status.FINISHED, 5, ""),
        ("terminated", 3, Status.INTERRUPTED, 5, "by signal 15"),
        ("interrupted", 3, Status.INTERRUPTED, 5, "by signal 2"),
        (
            "early",
            3,
            Status.CRASHED,
            0,
            "before its first optimizer step: AssertionError: Torch not compiled with CUDA",
        ),
    ],
)
def test_evidence_is_kept_however_a_program_ends(
    project: Path, ending: str, code: int, status: Status, steps: int, said: str
) -> None:
    done = _train(project, ending)
    assert done.returncode == code, done.stderr
    (one,) = _evidence(project)
    assert (one.run.status, one.run.steps) == (status, steps)
    assert said in done.stderr


@pytest.mark.parametrize(("ending", "signal_name"), [("killed", "9 (SIGKILL)"), ("segfault", "11 (SIGSEGV)")])
@pytest.mark.parametrize("shell", [False, True], ids=["child", "shell"])
def test_a_process_that_is_killed_leaves_what_it_saw_in_its_whole_steps(
    project: Path, ending: str, signal_name: str, shell: bool
) -> None:
    words = (
        ["sh", "-c", f"{sys.executable} train.py {ending}; exit $?"] if shell else [sys.executable, "train.py", ending]
    )
    done = _probe(project, "run", "--out", "seen", "--", *words)
    assert done.returncode == 3
    assert f"killed by signal {signal_name} after step 5; the evidence of 5 steps is kept" in done.stderr
    (one,) = _evidence(project)
    assert (one.run.status, one.run.steps) == (Status.KILLED, 5)
    # The first iteration has no beginning; two are observed behind it, one is profiled.
    assert {phase: seen["n"] for phase, seen in one.observations["steps"]["seconds"].items()} == {
        "observe": 2,
        "profile": 1,
        "time": 1,
    }
    assert [path.name for path in (project / "seen").iterdir()] == [files.name_of(one)]


def test_an_exception_is_recorded_by_its_first_line(project: Path) -> None:
    _train(project, "crash")
    assert _evidence(project)[0].run.exception == "ValueError: as written"


def test_a_bare_except_cannot_keep_the_program_running(project: Path) -> None:
    done = _train(project, "swallow", options=("--steps", "8"))
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("swallowed") == 3
    assert "after the training" not in done.stdout
    assert _evidence(project)[0].run.steps == 8


def test_training_in_a_thread_is_ended_too(project: Path) -> None:
    done = _train(project, "thread", options=("--steps", "8"))
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "after the training"
    assert _evidence(project)[0].run.steps == 8


def test_without_an_optimizer_backward_passes_are_counted(project: Path) -> None:
    done = _train(project, "backward", options=("--steps", "8"))
    assert done.returncode == 0, done.stderr
    (one,) = _evidence(project)
    assert (one.run.steps, one.observations["steps"]["unit"]) == (8, "backward")
    assert "8 backward passes (no optimizer stepped)" in done.stderr


def test_a_forked_child_that_trains_leaves_the_evidence_and_its_parent_none(project: Path) -> None:
    done = _train(project, "fork", options=("--steps", "8"))
    assert done.returncode == 0, done.stderr
    (one,) = _evidence(project)
    assert (one.run.status, one.run.steps) == (Status.STOPPED, 8)


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (["-I", "train.py"], "the probe was not injected"),
        (["-E", "train.py"], "the probe was not injected"),
        (["-c", "print(1)"], "Python ran, but it never imported torch"),
        (["train.py", "idle"], "torch was imported, but no optimizer stepped"),
    ],
)
def test_what_was_not_seen_is_no_result(project: Path, command: list[str], said: str) -> None:
    done = _probe(project, "run", "--", sys.executable, *command)
    assert done.returncode == 3
    assert f"no evidence: {said}" in done.stderr or said in done.stderr
    assert not list((project / ".ldlm-lint" / "evidence").iterdir())


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["run"], "no command"),
        (["run", "--"], "no command"),
        (["run", "--", "no-such-launcher", "train.py"], "no-such-launcher: command not found"),
        (["nothing.py"], "nothing.py: no such file"),
        (["run", "--steps", "0", "--", "python", "train.py"], "not a number of steps"),
        (["run", "--max-seconds", "-1", "--", "python", "train.py"], "not a number of seconds"),
        (["run", "--out", "train.py", "--", "python", "train.py"], "cannot write evidence here"),
        (["run", "--link", "data", "--", "python", "train.py"], "--link needs --scratch"),
    ],
)
def test_wrong_usage_is_said_before_anything_runs(project: Path, words: list[str], said: str) -> None:
    done = _probe(project, *words)
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr


def test_arguments_behind_the_program_are_its_own(project: Path) -> None:
    (project / "echo.py").write_text("import sys\nprint(sys.argv[1:])\n")
    long = _probe(project, "run", "--steps", "3", "--", sys.executable, "echo.py", "--", "--steps", "9", "--out=x")
    short = _probe(project, "--steps", "3", "echo.py", "--", "--steps", "9", "--", "-h")
    assert long.stdout.strip() == "['--', '--steps', '9', '--out=x']"
    assert short.stdout.strip() == "['--steps', '9', '--', '-h']"


def test_json_on_stdout_is_alone_there(project: Path) -> None:
    done = _train(project, options=("--steps", "8", "--json", "-"))
    found = json.loads(done.stdout)
    assert found["schema"] == "ldlm-verdicts/1"
    assert [run["steps"] for run in found["runs"]] == [8]
    assert "step 7" in done.stderr


def test_a_closed_stdout_is_no_error(project: Path) -> None:
    command = f"{sys.executable} -m ldlm_lint probe run --out seen --steps 8 -- {sys.executable} train.py >&-"
    done = subprocess.run(["sh", "-c", command], cwd=project, env=_environment(), capture_output=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert _evidence(project)[0].run.steps == 8


def test_the_user_s_own_sitecustomize_still_runs_and_the_path_is_theirs(project: Path) -> None:
    own = project / "own"
    own.mkdir()
    (own / "sitecustomize.py").write_text("print('own sitecustomize ran')\n")
    (project / "train.py").write_text(
        "import sys, torch\nprint(sys.modules['sitecustomize'].__file__)\n"
        "print([one for one in sys.path if 'ldlm' in one and 'site' in one.split('/')])\n"
        "print(type(torch.__loader__).__name__, 'ldlm_lint.cli' in sys.modules, 'rich' in sys.modules)\n"
    )
    done = _probe(project, "run", "--", sys.executable, "train.py", PYTHONPATH=f"{MINI}{os.pathsep}{own}")
    # Once in the command itself, which is a Python process of the user's, too.
    assert done.stdout.splitlines() == [
        "own sitecustomize ran",
        "own sitecustomize ran",
        str(own / "sitecustomize.py"),
        "[]",
        "SourceFileLoader False False",
    ]


def test_the_program_needs_nothing_of_our_environment(project: Path) -> None:
    """An interpreter whose path holds neither ldlm-lint nor its dependencies."""
    (project / "bare.py").write_text(
        "import runpy, sys\nsys.path[:] = [one for one in sys.path if 'packages' not in one]\n"
        "sys.meta_path[:] = [one for one in sys.meta_path if 'editable' not in type(one).__name__.lower()]\n"
        "sys.argv = sys.argv[1:]\nrunpy.run_path('train.py', run_name='__main__')\n"
    )
    done = _probe(project, "run", "--out", "seen", "--steps", "8", "--", sys.executable, "bare.py", "train.py")
    assert done.returncode == 0, done.stderr
    assert _evidence(project)[0].run.steps == 8


def test_a_hanging_program_is_ended_and_says_where_it_was(project: Path) -> None:
    done = _train(project, "hang", options=("--max-seconds", "3"))
    assert done.returncode == 3
    (one,) = _evidence(project)
    assert (one.run.status, one.run.steps) == (Status.TIMEOUT, 5)
    assert "still running at the limit" in done.stderr
    (stacks,) = (project / "seen").glob("stacks-*.txt")
    assert "train.py" in stacks.read_text()


def test_a_process_that_is_blocked_in_c_still_dies_of_sigterm_and_leaves_its_evidence(project: Path) -> None:
    done = _train(project, "blocked")
    assert done.returncode == 3
    (one,) = _evidence(project)
    assert (one.run.status, one.run.steps) == (Status.INTERRUPTED, 5)


def test_processes_that_ignore_signals_in_sessions_of_their_own_are_killed(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kill = signal.SIGKILL
    monkeypatch.setattr(launch, "ESCALATION", ((signal.SIGINT, 0.5), (signal.SIGTERM, 0.5), (kill, 5.0)))
    environ = _environment(LDLM_TEST_MARK="a-run-of-its-own-4711")
    ended = launch.run(
        [sys.executable, "train.py", "deaf"], project, environ, run_id="a-run-of-its-own-4711", seconds=2.0
    )
    assert ended.timed_out
    assert launch.members("a-run-of-its-own-4711") == []


def test_an_interrupt_ends_the_program_and_keeps_the_evidence(project: Path) -> None:
    command = [*CLI, "run", "--out", "seen", "--", sys.executable, "train.py", "hang"]
    with subprocess.Popen(
        command, cwd=project, env=_environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None and process.stderr is not None
        while process.stdout.readline().strip() != "step 5":
            pass
        time.sleep(0.2)
        process.send_signal(signal.SIGINT)
        said = process.stderr.read()
        assert process.wait(60) == 130, said
    (one,) = _evidence(project)
    assert (one.run.status, one.run.steps) == (Status.INTERRUPTED, 5)
    assert "interrupted" in said


def test_evidence_that_cannot_be_written_is_said_and_changes_nothing_else(project: Path) -> None:
    (project / "train.py").write_text(
        (MINI / "train.py")
        .read_text()
        .replace("import torch\n", "import torch\nimport shutil\nshutil.rmtree('seen')\nopen('seen', 'w')\n")
    )
    done = _train(project, options=("--steps", "8"))
    assert done.returncode == 3
    assert "could not be written" in done.stderr
    assert "step 7" in done.stdout


@pytest.mark.skipif(shutil.which("git") is None, reason="needs git")
def test_a_scratch_copy_keeps_the_original_and_the_places(project: Path) -> None:
    (project / ".gitignore").write_text("data/\nseen/\n")
    (project / "data").mkdir()
    (project / "data" / "large.bin").write_bytes(b"x")
    (project / "train.py").write_text((MINI / "train.py").read_text() + "\n")
    with (project / "train.py").open("a") as file:
        file.write("open('written', 'w')\nimport os\nprint(os.path.exists('data/large.bin'), os.getcwd())\n")
    subprocess.run(["git", "init", "-q"], cwd=project, check=True)
    alone = _train(project, options=("--no-stop", "--scratch"))
    linked = _train(project, options=("--no-stop", "--scratch", "--link", "data"))
    assert (alone.returncode, linked.returncode) == (0, 0), alone.stderr + linked.stderr
    assert [done.stdout.splitlines()[-1].split()[0] for done in (alone, linked)] == ["False", "True"]
    assert "not in the copy: data/, seen/" in alone.stderr
    assert not (project / "written").exists()
    assert not Path(alone.stdout.split()[-1]).exists()
    assert {one.run.root for one in _evidence(project)} == {str(project)}
