"""The speed benchmark: it runs the command it says, over the files it says, and reports what they used."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parent.parent / "benchmarks" / "lint_speed.py"
BURNT_SECONDS = 0.5
HELD_MIB = 96
FAKE_LINTER = f"""
import sys, time
from pathlib import Path
Path(__file__).with_suffix(".log").open("a").write(" ".join(sys.argv[1:]) + "\\n")
held = b"x" * ({HELD_MIB} * 2**20)
while time.process_time() < {BURNT_SECONDS}:
    pass
sys.exit(1)
"""
posix_only = pytest.mark.skipif(sys.platform == "win32", reason="Windows does not account for child processes")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Two Python files that are linted, one of which does not parse, and files that are not Python or ignored."""
    project = tmp_path / "project"
    project.mkdir()
    files = {
        "pyproject.toml": "",
        ".gitignore": "ignored.py\n",
        "a.py": "x = 1\ny = 2\n",
        "b.py": "x = (\n",
        "ignored.py": "z = 3\n",
        "train.sh": "python a.py\n",
    }
    for name, text in files.items():
        (project / name).write_text(text, encoding="utf-8")
    return project


def benchmark(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the script to its end."""
    command = [sys.executable, str(SCRIPT), *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


def fake_linter(directory: Path, text: str = FAKE_LINTER) -> str:
    """The command of a program that stands in for the linter."""
    script = directory / "linter.py"
    script.write_text(text, encoding="utf-8")
    return shlex.join([sys.executable, str(script)])


@posix_only
def test_reports_what_the_command_used(project: Path) -> None:
    """CPU time and memory are those of a program whose use of both is known."""
    command = fake_linter(project.parent)

    done = benchmark("--json", "--runs", "2", "--command", command, str(project))

    assert done.returncode == 0, done.stderr
    (row,) = json.loads(done.stdout)
    assert (row["files"], row["lines"], row["unparsable"]) == (2, 3, 1)
    assert BURNT_SECONDS <= row["lint"]["cpu_seconds"] < 4 * BURNT_SECONDS
    assert 0 < row["parse"]["cpu_seconds"] < BURNT_SECONDS
    assert row["ratio"] == pytest.approx(row["lint"]["cpu_seconds"] / row["parse"]["cpu_seconds"])
    assert HELD_MIB < row["lint"]["peak_mib"] < 2 * HELD_MIB
    assert 1 < row["parse"]["peak_mib"] < HELD_MIB
    log = (project.parent / "linter.log").read_text(encoding="utf-8")
    assert log.splitlines() == [f"--format json --no-cache {project}"] * 2


@posix_only
def test_runs_keep_what_python_compiles(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else each run of a checkout compiles all of its modules, which no user waits for."""
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    asking = "import os, sys; sys.exit(7 if 'PYTHONDONTWRITEBYTECODE' in os.environ else 0)"

    done = benchmark("--runs", "1", "--command", fake_linter(project.parent, asking), str(project))

    assert done.returncode == 0, done.stderr


@posix_only
def test_prints_a_table(project: Path) -> None:
    """The columns line up under their heads."""
    done = benchmark("--runs", "1", "--command", fake_linter(project.parent), str(project))

    assert done.returncode == 0, done.stderr
    head, row = done.stdout.splitlines()
    assert " ".join(head.split()) == "directory files lines lint CPU s ast CPU s ratio lint MiB ast MiB"
    assert row.split()[:3] == [str(project), "2", "3"]
    assert len(head) == len(row)


@posix_only
@pytest.mark.parametrize(
    ("linter", "message"),
    [
        pytest.param("import sys; sys.exit(7)", "ended with 7", id="unknown-exit-code"),
        pytest.param("import sys; print('bad option', file=sys.stderr); sys.exit(2)", "bad option", id="usage-error"),
    ],
)
def test_a_failing_command_is_no_figure(project: Path, linter: str, message: str) -> None:
    """A linter that ended early must not look like a fast one."""
    done = benchmark("--runs", "1", "--command", fake_linter(project.parent, linter), str(project))

    assert (done.returncode, done.stdout) == (2, "")
    assert message in done.stderr


@posix_only
def test_a_directory_without_python_is_no_figure(project: Path) -> None:
    """There is nothing to compare with."""
    for file in project.glob("*.py"):
        file.unlink()

    done = benchmark("--command", fake_linter(project.parent), str(project))

    assert (done.returncode, done.stdout) == (2, "")
    assert "no Python file" in done.stderr


def test_says_that_windows_cannot_measure(project: Path) -> None:
    """Where the system has no wait4 one line says so."""
    without_wait4 = (
        "import os, runpy, sys\n"
        "if hasattr(os, 'wait4'): del os.wait4\n"
        f"sys.argv = ['lint_speed.py', {str(project)!r}]\n"
        f"runpy.run_path({str(SCRIPT)!r}, run_name='__main__')\n"
    )
    done = subprocess.run([sys.executable, "-c", without_wait4], capture_output=True, text=True, check=False)

    assert (done.returncode, done.stdout) == (2, "")
    assert "Windows" in done.stderr


PEERS = SCRIPT.with_name("peers.py")


def against_peers(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the comparison to its end."""
    command = [sys.executable, str(PEERS), "--json", "--runs", "1", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


@posix_only
def test_a_peer_s_time_stands_beside_ours(project: Path) -> None:
    """The installed program of the peer is run on the same directory, and the sums are those of the rows."""
    environments = project.parent / "environments"
    peer = environments / "hotpath-ai==0.1.0" / "bin" / "hotpath"
    peer.parent.mkdir(parents=True)
    peer.write_text(f'#!/bin/sh\necho "$@" >> "{environments}/log"\nexit 1\n')
    peer.chmod(0o755)
    other = project.parent / "other"
    other.mkdir()

    done = against_peers(
        *("--command", fake_linter(project.parent), "--environments", str(environments), "--peer", "hotpath"),
        *(str(project), str(other)),
    )

    assert done.returncode == 0, done.stderr
    first, second, both = json.loads(done.stdout)
    assert [row["directory"] for row in (first, second, both)] == ["project", "other", "all"]
    assert min(row["cpu_seconds"]["ldlm-lint"] for row in (first, second)) >= BURNT_SECONDS > first["cpu_seconds"]["hotpath"]
    for name, seconds in both["cpu_seconds"].items():
        assert seconds == pytest.approx(first["cpu_seconds"][name] + second["cpu_seconds"][name])
    assert both["ratio"]["hotpath"] == pytest.approx(both["cpu_seconds"]["ldlm-lint"] / both["cpu_seconds"]["hotpath"])
    log = (environments / "log").read_text(encoding="utf-8")
    assert log.splitlines() == [f"analyze {path.resolve()} --format json" for path in (project, other)]


@posix_only
def test_growth_lints_more_and_more_copies(project: Path) -> None:
    """The directories that are linted hold one, two and four copies of all files."""
    count = (
        "import sys, time; from pathlib import Path\n"
        "files = len(list(Path(sys.argv[-1]).rglob('a.py')))\n"
        "while time.process_time() < 0.2 * files: pass\n"
    )

    done = against_peers("--growth", "--command", fake_linter(project.parent, count), str(project))

    assert done.returncode == 0, done.stderr
    rows = json.loads(done.stdout)
    assert [row["directory"] for row in rows] == ["1 x project", "2 x project", "4 x project"]
    assert all(row["cpu_seconds"]["ldlm-lint"] >= 0.2 * copies for row, copies in zip(rows, (1, 2, 4), strict=True))
