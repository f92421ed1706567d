"""Several processes give the answer of one; where one dies, the file that it died of is named and the others are done."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ldlm_lint import engine, processors, workers
from ldlm_lint.cli import main
from ldlm_lint.config import Config
from ldlm_lint.linting import lint_file
from ldlm_lint.source import Kind

FORKS = pytest.mark.skipif(sys.platform != "linux", reason="what is patched here reaches a forked process alone")
LOADER = "from torch.utils.data import DataLoader\nloader = DataLoader(data, num_workers=4)\nfor epoch in range(3):\n    for batch in loader:\n        model(batch).backward()\n"
SCRIPT = "export NCCL_TIMEOUT=3600000\ntorchrun train.py\n"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    for number in range(6):
        (tmp_path / f"train{number}.py").write_text(LOADER)
        (tmp_path / f"run{number}.sh").write_text(SCRIPT)
    (tmp_path / "broken.py").write_text("def (:\n")
    (tmp_path / "binary.py").write_bytes(b"x = 1\n\0")
    return tmp_path


def test_jobs_change_nothing(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shown = []
    for jobs in ("1", "3", "auto"):
        code = main(["check", "--no-cache", "--format", "json", "--jobs", jobs, str(project)])
        shown.append((code, *capsys.readouterr()))
    assert shown[0] == shown[1] == shown[2]
    assert "train5.py" in shown[0][1]


@FORKS
def test_a_file_that_kills_its_process_is_named(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def deadly(path: Path, *rest: object) -> object:
        if path.name in ("run2.sh", "train3.py"):
            os.kill(os.getpid(), signal.SIGKILL)
        return lint_file(path, *rest)

    config = Config.load(project)
    whole = engine.run([project], config, base=project)
    monkeypatch.setattr(workers, "lint_file", deadly)
    report = engine.run([project], config, base=project, jobs=3)
    died = {Path(problem.path).name for problem in report.problems} - {"broken.py", "binary.py"}
    assert died == {"run2.sh", "train3.py"}
    spared = [one for one in whole.findings if Path(one.span.path).name not in died]
    assert [one for one in report.findings if one.rule != "ldlm-internal-error"] == spared


@FORKS
@pytest.mark.parametrize("jobs", ["1", "2"])
def test_ctrl_c_ends_every_process(tmp_path: Path, jobs: str) -> None:
    (tmp_path / "a.py").write_text(LOADER)
    (tmp_path / "b.py").write_text(LOADER)
    slow = (
        "import sys, time, pathlib\nfrom ldlm_lint import batch, cli, workers\n"
        "def lint(path, *rest):\n    (pathlib.Path(sys.argv[1]) / f'{path.name}.begun').touch()\n    time.sleep(60)\n"
        "workers.lint_file = batch.lint_file = lint\n"
        f"sys.exit(cli.main(['check', '--no-cache', '--jobs', '{jobs}', sys.argv[1]]))\n"
    )
    run = subprocess.Popen([sys.executable, "-c", slow, str(tmp_path)], start_new_session=True, stderr=subprocess.PIPE)
    until = time.monotonic() + 30
    while not list(tmp_path.glob("*.begun")) and time.monotonic() < until:
        time.sleep(0.02)
    os.killpg(run.pid, signal.SIGINT)
    _, error = run.communicate(timeout=30)
    assert (run.returncode, error.decode()) == (130, "ldlm-lint: error: interrupted\n")
    with pytest.raises(ProcessLookupError):
        os.killpg(run.pid, 0)


def test_auto_starts_processes_only_where_they_pay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processors, "_processors", lambda: 4)
    monkeypatch.setattr(processors, "forks", lambda: True)
    monkeypatch.setattr(processors.threading, "active_count", lambda: 1)
    files = [(tmp_path / "a.py", Kind.PYTHON)] * 3
    for size, count in ((10, 1), (processors.WORTH_A_PROCESS, 3), (3 * processors.WORTH_A_PROCESS, 4)):
        monkeypatch.setattr(processors, "size_of", lambda _, size=size: size)
        assert processors.count_for(0, files) == count
    assert processors.count_for(2, files) == 2
    assert processors.count_for(8, files) == 3


@pytest.mark.parametrize("word", ["0", "-1", "many", "1e3", "9999"])
def test_jobs_that_make_no_sense(word: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", f"--jobs={word}", "."]) == 2
    assert "not a number of processes" in capsys.readouterr().err
