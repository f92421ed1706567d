"""Where a report goes and how it looks: files, pipes, colours, a bar for whoever waits, and nothing imported that it does not need."""

from __future__ import annotations

import io
import os
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest
from calling import Enter, Run
from collected import for_every

from ldlm_lint.commands import progress
from ldlm_lint.files import disk
from ldlm_lint.report.console import console_of, wants_colour
from ldlm_lint.report.formats import FORMATS

BEAT = "export TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC=12000000\ntorchrun train.py\n"


@pytest.fixture
def project(enter: Enter) -> Path:
    return enter({"pyproject.toml": "", "run.sh": BEAT})


def test_a_report_in_a_file_is_what_stdout_would_get(project: Path, run: Run) -> None:
    for form in FORMATS:
        code, out, err = run("--format", form, "--output", "report")
        assert (code, out) == (1, ""), form
        assert err == "Found 1 finding: 1 hang. Written to report.\n"
        assert (project / "report").read_text(encoding="utf-8") == run("--format", form)[1]
    assert run("--quiet", "--output", "report")[1:] == ("", "")
    assert run("--output", "-", "--format", "concise") == run("--format", "concise")


def test_problems_of_a_report_in_a_file_are_seen_in_the_log(project: Path, run: Run) -> None:
    code, _, err = run("--format", "json", "--output", "report.json", ".", "gone")
    assert code == 3
    assert "error: gone: no such file or directory\n" in err


@pytest.mark.parametrize("place, words", [("none/report", "there is no directory none"), (".", "is a directory")])
def test_a_place_that_cannot_be_written_is_noticed_first(project: Path, run: Run, place: str, words: str) -> None:
    code, out, err = run("--output", place)
    assert (code, out) == (2, "")
    assert err == f"ldlm-lint: error: --output {place}: {words}\n"


def test_a_full_disk_leaves_the_old_report(project: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    (project / "report").write_text("old")

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(disk, "create", full)
    code, out, err = run("--output", "report")
    assert (code, out) == (3, "")
    assert err == "ldlm-lint: error: --output report: No space left on device\n"
    assert (project / "report").read_text() == "old"
    assert sorted(path.name for path in project.iterdir()) == ["pyproject.toml", "report", "run.sh"]


@pytest.mark.skipif(os.name == "nt", reason="named pipes of POSIX")
def test_a_report_for_a_pipe_goes_into_the_pipe(project: Path) -> None:
    command = f"{sys.executable} -m ldlm_lint --quiet --format concise --output >(cat) run.sh; wait"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False, cwd=project)
    assert done.stdout.startswith("run.sh:1:8: hang W7201 ")
    assert done.stderr == ""


@pytest.mark.skipif(os.name == "nt", reason="links and modes of POSIX")
def test_a_report_keeps_link_and_mode(project: Path, run: Run) -> None:
    real = project.parent / "real"
    real.write_text("old")
    real.chmod(0o640)
    (project / "report").symlink_to(real)
    run("--output", "report", "--format", "concise")
    assert (project / "report").is_symlink()
    assert real.read_text().startswith("run.sh:1:8: hang W7201 ")
    assert stat.S_IMODE(real.stat().st_mode) == 0o640


def test_a_patch_goes_into_a_file_too(project: Path, run: Run) -> None:
    patch = run("--diff", "--unsafe-fixes")[1]
    assert patch.startswith("diff --git a/run.sh b/run.sh\n")
    assert run("--diff", "--unsafe-fixes", "--output", "fixes.patch")[:2] == (1, "")
    assert (project / "fixes.patch").read_text() == patch


@for_every(
    "choice, environ, terminal, expected",
    [
        ("auto", {}, True, True),
        ("auto", {}, False, False),
        ("auto", {"NO_COLOR": "1"}, True, False),
        ("auto", {"NO_COLOR": ""}, True, True),
        ("auto", {"FORCE_COLOR": "1"}, False, True),
        ("auto", {"FORCE_COLOR": "1", "NO_COLOR": "1"}, True, False),
        ("auto", {"TERM": "dumb"}, True, False),
        ("always", {"NO_COLOR": "1", "TERM": "dumb"}, False, True),
        ("never", {"FORCE_COLOR": "1"}, True, False),
    ],
)
def test_who_decides_about_colours(choice: str, environ: dict[str, str], terminal: bool, expected: bool) -> None:
    class Stream:
        def isatty(self) -> bool:
            return terminal

    assert wants_colour(Stream(), choice, environ) is expected


def test_colours_of_the_report(project: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "\x1b" not in run()[1]
    assert "\x1b[1;31mhang\x1b[0m: " in run("--color", "always")[1]
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert "\x1b" in run()[1]
    assert "\x1b" not in run("--color", "never")[1]
    assert "\x1b" not in run("--format", "concise")[1]
    assert console_of(sys.stdout).color_system == "standard"
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b" not in run()[1]


def test_formats_for_programs_import_nothing_that_draws(project: Path) -> None:
    program = (
        "import sys\nfrom ldlm_lint.cli import main\n"
        "for name in ('concise', 'json', 'github', 'gitlab', 'sarif', 'junit', 'markdown'):\n"
        "    main(['--format', name, '--output', 'report'])\n"
        "for name in ('rich', 'torch', 'pygls', 'shtab', 'yaml'):\n    print(name, name in sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=project)
    assert done.stdout.split() == [
        "rich",
        "False",
        "torch",
        "False",
        "pygls",
        "False",
        "shtab",
        "False",
        "yaml",
        "False",
    ]


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_bar_is_drawn_for_whoever_waits_at_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(progress, "DELAY", 0.0)
    terminal = Terminal()
    with progress.bar(quiet=False, stream=terminal) as tell:
        tell(1, 4)
        time.sleep(0.11)
        tell(2, 4)
    drawn = terminal.getvalue()
    assert "checking" in drawn and "2/4" in drawn
    # The cursor is shown again, and the line is empty.
    assert drawn.rstrip("\r\n").endswith(("\x1b[2K", "\x1b[?25h", "\x1b[1A\x1b[2K"))


def test_a_short_run_a_pipe_and_a_dumb_terminal_have_no_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    terminal = Terminal()
    with progress.bar(quiet=False, stream=terminal) as tell:
        tell(1, 1)
    assert terminal.getvalue() == ""
    monkeypatch.setattr(progress, "DELAY", 0.0)
    with progress.bar(quiet=True, stream=terminal) as tell:
        assert tell is None
    with progress.bar(quiet=False, stream=io.StringIO()) as tell:
        assert tell is None
    monkeypatch.setenv("TERM", "dumb")
    with progress.bar(quiet=False, stream=terminal) as tell:
        assert tell is None


@pytest.mark.parametrize(
    "arguments", [("check",), ("--fix", "--unsafe-fixes"), ("--diff",), ("--add-ignores",), ("baseline",)], ids=" ".join
)
def test_every_command_that_lints_files_has_a_bar(
    project: Path, run: Run, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...]
) -> None:
    terminal = Terminal()
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(progress, "DELAY", 0.0)
    monkeypatch.setattr(sys, "__stderr__", terminal)
    (project / "train.py").write_text("import torch\n")
    run(*arguments)
    assert "checking" in terminal.getvalue()
