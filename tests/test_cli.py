"""The command as a user runs it: exit codes, what is printed where, and one clear line for every bad input."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from calling import Enter, Run
from collected import for_every

from ldlm_lint import __version__, cli, engine
from ldlm_lint.commands import table
from ldlm_lint.commands.output import exit_code
from ldlm_lint.config import Config
from ldlm_lint.model import Finding, Problem, Report, Severity, Span

BEAT = "export TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC=12000000\n"
IGNORED = "export NCCL_TIMEOUT=7200\n"
LAUNCH = "torchrun train.py\n"
CLEAN = "#!/bin/bash\necho training\n"


@pytest.fixture
def project(enter: Enter) -> Path:
    return enter({"pyproject.toml": ""})


def finding(code: str) -> Finding:
    return Finding("some-rule", code, Span("/p/x.py", 0, 0))


@for_every(
    "report, fail_level, exit_zero, expected",
    [
        pytest.param(Report((), files=1, requested=1), Severity.REFACTOR, False, 0, id="clean"),
        pytest.param(Report((finding("I7102"),), files=1, requested=1), Severity.REFACTOR, False, 0, id="info"),
        pytest.param(Report((finding("R7301"),), files=1, requested=1), Severity.REFACTOR, False, 1, id="refactor"),
        pytest.param(Report((finding("R7301"),), files=1, requested=1), Severity.WARNING, False, 0, id="below"),
        pytest.param(Report((finding("E7104"),), files=1, requested=1), Severity.ERROR, False, 1, id="error"),
        pytest.param(Report((finding("I7102"),), files=1, requested=1), Severity.INFO, False, 1, id="info-fails"),
        pytest.param(Report((finding("E7104"),), files=1, requested=1), Severity.ERROR, True, 0, id="exit-zero"),
        pytest.param(Report((), excluded=2, requested=2), Severity.ERROR, False, 0, id="all-excluded"),
        pytest.param(Report((), excluded=1, requested=2), Severity.ERROR, False, 3, id="nothing-read"),
        pytest.param(Report((), requested=1), Severity.ERROR, True, 3, id="exit-zero-does-not-hide-nothing-read"),
        pytest.param(
            Report((finding("E7104"),), (Problem("/p", 1, "gone"),), files=1, requested=2),
            Severity.ERROR,
            False,
            3,
            id="problem",
        ),
        pytest.param(
            Report((), (Problem("/p", 1, "gone"), Problem("/q", 3, "unknown key", usage=True)), files=1, requested=2),
            Severity.ERROR,
            True,
            2,
            id="a-configuration-is-above-a-problem",
        ),
    ],
)
def test_exit_code(report: Report, fail_level: Severity, exit_zero: bool, expected: int) -> None:
    assert exit_code(report, Config(fail_level=fail_level), exit_zero=exit_zero) == expected


def test_findings_in_text(project: Path, run: Run) -> None:
    (project / "run.sh").write_text(BEAT)
    code, out, err = run("check", "run.sh")
    assert (code, err) == (1, "")
    assert out.startswith("hang: excessive-heartbeat-timeout (W7201), 1 place\n")
    assert "\n --> run.sh:1:8\n" in out
    assert "Found 1 finding: 1 hang.\n" in out
    assert "1 file read.\n" in out


def test_paths_alone_are_a_check_and_no_path_is_here(project: Path, run: Run) -> None:
    (project / "run.sh").write_text(BEAT)
    assert run("run.sh") == run("check", "run.sh")
    assert run("run.sh", "--quiet") == run("--quiet")
    assert run("--quiet", "--format", "text")[0] == 1


def test_directory_called_like_a_command(project: Path, run: Run) -> None:
    (project / "rules").mkdir()
    (project / "rules" / "run.sh").write_text(BEAT)
    assert run("./rules")[0] == 1
    assert run("rules")[0] == 0
    assert run("rules")[1].startswith("consequence ")


def test_clean_stdout_in_json(project: Path, run: Run) -> None:
    (project / "run.sh").write_text(BEAT)
    code, out, err = run("--format", "json", "run.sh", "missing.py")
    got = json.loads(out)
    assert (code, err) == (3, "")
    assert [one["rule"] for one in got["findings"]] == ["excessive-heartbeat-timeout"]
    assert got["errors"] == [{"path": "missing.py", "line": 1, "message": "no such file or directory"}]


@pytest.mark.parametrize(
    "arguments, rules",
    [
        (("--select", "W7204"), ["ineffective-environment-variable"]),
        (("--select", "nccl-blocking-wait"), []),
        (("--select", "W7201,W7204"), ["excessive-heartbeat-timeout", "ineffective-environment-variable"]),
        (
            ("--select", "W7201", "--select", "W7204"),
            ["excessive-heartbeat-timeout", "ineffective-environment-variable"],
        ),
        (("--ignore", "72"), []),
        (("--ignore", "excessive-heartbeat-timeout"), ["ineffective-environment-variable"]),
        (("--select", "R", "--extend-select", "W7204"), ["ineffective-environment-variable"]),
        (("--level", "error"), []),
        (("--level", "warning"), ["excessive-heartbeat-timeout", "ineffective-environment-variable"]),
    ],
)
def test_selection(
    project: Path, run: Run, arguments: tuple[str, ...], rules: list[str]
) -> None:
    (project / "run.sh").write_text(BEAT + IGNORED)
    code, out, _ = run("run.sh", "--format", "json", *arguments)
    assert [one["rule"] for one in json.loads(out)["findings"]] == rules
    assert code == bool(rules)


def test_levels_of_failure(project: Path, run: Run) -> None:
    (project / "run.sh").write_text(BEAT)
    assert run("run.sh", "--fail-level", "error")[0] == 0
    assert run("run.sh", "--fail-level", "warning")[0] == 1
    assert run("run.sh", "--exit-zero")[0] == 0
    assert run("run.sh", "--no-cache")[0] == 1


@pytest.mark.parametrize(
    "arguments, words",
    [
        (
            ("--select", "heartbeat-timeout"),
            'unknown rule "heartbeat-timeout", did you mean "excessive-heartbeat-timeout"?',
        ),
        (("--ignore", "W7299"), 'unknown rule "W7299"'),
        (("--select", ","), "argument --select: needs at least one name"),
        (("--level", "note"), "argument --level: invalid choice: 'note'"),
        (("--format", "xml"), "argument --format/--output-format: invalid choice: 'xml'"),
        (("--colour",), "unrecognized arguments: --colour"),
        (("--sel", "ALL"), "unrecognized arguments: --sel"),
        (("--config", "missing.toml"), "missing.toml: cannot be read: "),
        (("--config", "pyproject.toml"), "pyproject.toml: has no [tool.ldlm-lint] table"),
        (("--config", "pyproject.toml", "--isolated"), "--config and --isolated cannot be combined"),
        (("--diff", "--format", "json"), "--diff prints a patch"),
        (("explain", "heartbeat"), 'unknown rule "heartbeat"'),
        (("explain",), "the following arguments are required: NAME"),
        (("rules", "nix"), 'unknown rule "nix"'),
    ],
)
def test_usage_errors_are_one_line(
    project: Path, run: Run, arguments: tuple[str, ...], words: str
) -> None:
    (project / "run.sh").write_text(BEAT)
    code, out, err = run(*arguments)
    assert (code, out) == (2, "")
    assert err.startswith("ldlm-lint: error: ")
    assert words in err
    assert err.count("\n") == 1


def test_configuration_error_names_file_line_and_key(project: Path, run: Run) -> None:
    (project / "run.sh").write_text(BEAT)
    (project / "pyproject.toml").write_text("[tool.ldlm-lint]\nheartbeat-limt = 1\n")
    code, out, err = run("run.sh")
    where = (project / "pyproject.toml").as_posix()
    assert (code, out) == (2, "")
    assert err == f'ldlm-lint: error: {where}:2: heartbeat-limt: unknown key, did you mean "heartbeat-limit"?\n'
    assert run("run.sh", "--isolated")[0] == 1


def test_configuration_of_the_linted_path_is_used(project: Path, run: Run) -> None:
    inner = project / "inner"
    inner.mkdir()
    (inner / "run.sh").write_text(BEAT)
    (inner / "pyproject.toml").write_text("[tool.ldlm-lint]\nignore = ['72']\n")
    assert run("inner")[0] == 0
    assert run("inner", "--isolated")[0] == 1
    (inner / "other.toml").write_text("[tool.ldlm-lint]\nfail-level = 'error'\n")
    assert run("inner", "--config", "inner/other.toml")[0] == 0


def test_excluded_and_suppressed_are_counted(project: Path, run: Run) -> None:
    (project / "pyproject.toml").write_text("[tool.ldlm-lint]\nexclude = ['old.sh']\n")
    (project / "old.sh").write_text(BEAT)
    (project / "run.sh").write_text("# ldlm-lint: ignore[W7201] a long first step\n" + BEAT)
    code, out, err = run("old.sh")
    assert (code, err) == (0, 'note: old.sh: not checked: "old.sh" of `exclude` in pyproject.toml matches it\n')
    assert out == "Nothing was checked: all given paths are excluded.\n0 files read, 1 named path excluded.\n"
    assert run("run.sh")[:2] == (0, "No findings.\n1 file read, 1 finding suppressed.\n")


@pytest.mark.parametrize(
    "name, data, code, words",
    [
        pytest.param("missing.py", None, 3, "error: missing.py: no such file or directory\n", id="missing"),
        pytest.param("notes.md", b"x\n", 3, "error: notes.md: neither Python nor a shell script", id="another-kind"),
        pytest.param("nul.py", b"a = 1\n\0\n", 3, "cannot be read: the file contains NUL bytes\n --> nul.py:2:1", id="nul"),
        pytest.param("latin.py", b"# caf\xe9\n", 3, "cannot be read", id="another-encoding"),
        pytest.param("latin.sh", b"# ok\n# caf\xe9\n", 3, "latin.sh:2:1", id="shell-encoding"),
        pytest.param("coding.py", b"# coding: nope-8\n", 3, "its encoding is not known", id="unknown-encoding"),
        pytest.param("huge.py", b"#" * 5_000_001, 3, "larger than 5,000,000 bytes", id="huge"),
        pytest.param("empty.py", b"", 0, "", id="empty"),
        pytest.param("declared.py", b"# coding: latin-1\nx = '\xe9'\n", 0, "", id="declared-encoding"),
        pytest.param("mark.py", b"\xef\xbb\xbfx = 1\r\n", 0, "", id="byte-order-mark"),
    ],
)
def test_bad_input_is_one_line_and_the_rest_goes_on(
    project: Path, run: Run, name: str, data: bytes | None, code: int, words: str
) -> None:
    if data is not None:
        (project / name).write_bytes(data)
    (project / "run.sh").write_text(BEAT)
    got, out, err = run(name, "run.sh")
    assert got == (code or 1)
    # A file that exists is a finding at its line; a path that does not is one line on stderr. Neither is said twice.
    assert (out + err).count(words) == 1 or not words
    assert err.count("\n") == err.startswith("error: ")
    assert "hang: excessive-heartbeat-timeout (W7201)" in out


def test_syntax_error_is_a_finding(project: Path, run: Run) -> None:
    (project / "broken.py").write_text("import torch\nx = (\n")
    code, out, err = run("broken.py")
    assert (code, err) == (1, "")
    assert out.startswith("config: unparsable-file (E6802), 1 place\n")


def test_directory_without_anything_to_check(project: Path, run: Run) -> None:
    (project / "data").mkdir()
    code, out, err = run("data")
    assert code == 3
    assert err == "error: data: no Python file, shell script or configuration file to check here\n"
    assert out == "Nothing was checked.\n0 files read, 1 problem.\n"


def test_quiet(project: Path, run: Run) -> None:
    (project / "run.sh").write_text(CLEAN)
    assert run("run.sh", "--quiet") == (0, "", "")
    (project / "run.sh").write_text(BEAT)
    assert "Found" not in run("run.sh", "--quiet")[1]


def test_internal_error_has_its_own_code(
    project: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> Report:
        raise ZeroDivisionError("by zero")

    monkeypatch.setattr(engine, "run", fail)
    code, out, err = run(".")
    assert (code, out) == (3, "")
    assert err.endswith("ldlm-lint: error: internal error (ZeroDivisionError: by zero); please report this\n")
    assert "Traceback" in err


def test_interrupt(project: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object, **__: object) -> Report:
        raise KeyboardInterrupt

    monkeypatch.setattr(engine, "run", interrupt)
    assert run(".") == (130, "", "ldlm-lint: error: interrupted\n")


def test_version_and_help(run: Run) -> None:
    assert run("--version") == (0, f"ldlm-lint {__version__}\n", "")
    code, out, _ = run("--help")
    assert code == 0
    assert all(f"  {command.name} " in out for command in table.COMMANDS)
    assert "--unsafe-fixes" in run("check", "--help")[1]


def test_explain_and_rules(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLUMNS")
    assert run("explain", "W7201") == run("explain", "excessive-heartbeat-timeout")
    assert run("explain", "W7201")[1].startswith("hang W7201 excessive-heartbeat-timeout\n")
    assert len(run("rules", "R7301")[1].splitlines()) == 2


def test_fix_writes_safe_ones_and_tells_what_remains(project: Path, run: Run) -> None:
    (project / "run.sh").write_text(BEAT + IGNORED + LAUNCH)
    code, out, err = run("run.sh", "--fix")
    assert (code, err) == (1, "")
    assert (project / "run.sh").read_text() == BEAT + LAUNCH
    assert "Fixed 1 finding in 1 file:\n  1 ineffective-environment-variable: run.sh:2\n1 finding remains: 1 hang.\n" in out
    code, out, _ = run("run.sh", "--fix", "--unsafe-fixes")
    assert (code, out) == (
        0,
        "Fixed 1 finding in 1 file:\n  1 excessive-heartbeat-timeout: run.sh:1\nNo findings remain.\n1 file read.\n"
        "Next: undo these fixes  ldlm-lint undo\n",
    )
    assert (project / "run.sh").read_text() == BEAT.replace("12000000", "1800") + LAUNCH


def test_file_that_cannot_be_written_is_named(project: Path, run: Run) -> None:
    path = project / "run.sh"
    path.write_text(IGNORED + LAUNCH)
    path.chmod(0o444)
    code, out, err = run("run.sh", "--fix")
    path.chmod(0o644)
    assert code == 3
    assert err.startswith("error: run.sh: not fixed: ")
    assert "Nothing was fixed.\n1 finding remains: 1 config.\n" in out
    assert path.read_text() == IGNORED + LAUNCH


@pytest.mark.parametrize("flags", [(), ("--unsafe-fixes",)], ids=["safe", "unsafe"])
def test_diff_is_what_the_same_flags_write(
    project: Path, run: Run, flags: tuple[str, ...]
) -> None:
    path = project / "scripts" / "run.sh"
    path.parent.mkdir()
    path.write_bytes((BEAT + IGNORED + "# ü\n" + LAUNCH).replace("\n", "\r\n").encode())
    before = path.read_bytes()
    code, patch, err = run("scripts", "--diff", *flags)
    assert (code, err, path.read_bytes()) == (1, "", before)
    assert run("scripts", "--diff", "--fix", *flags)[1] == patch
    run("scripts", "--fix", *flags)
    after = path.read_bytes()
    assert after != before
    path.write_bytes(before)
    subprocess.run(["git", "init", "-q"], check=True)
    subprocess.run(["git", "apply", "-"], input=patch.encode(), check=True)
    assert path.read_bytes() == after
    assert run("scripts", "--diff", *flags)[1] == ""


def test_closed_pipe_is_no_traceback(project: Path) -> None:
    for number in range(400):
        (project / f"run{number}.sh").write_text(BEAT)
    command = [sys.executable, "-m", "ldlm_lint", "--format", "full", "."]
    environment = {**os.environ, "PYTHONPATH": str(Path(cli.__file__).parents[1])}
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment, text=True)
    assert process.stdout and process.stderr
    assert process.stdout.readline().startswith("hang W7201")
    process.stdout.close()
    assert process.stderr.read() == ""
    assert process.wait(60) == 141
    process.stderr.close()


def test_version_imports_nothing_heavy() -> None:
    environment = {**os.environ, "PYTHONPATH": str(Path(cli.__file__).parents[1])}
    probe = "import sys; from ldlm_lint.cli import main; main(['--version']); print(*sys.modules, sep='\\n')"
    done = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=True, env=environment)
    assert not {"astroid", "pylint", "rich", "pathspec", "bashlex", "tree_sitter"} & set(done.stdout.split())


def test_output_is_utf_8_whatever_the_console_says(project: Path) -> None:
    (project / "run.sh").write_text(BEAT.strip() + " # 模型\n", encoding="utf-8")
    environment = {**os.environ, "PYTHONPATH": str(Path(cli.__file__).parents[1]), "PYTHONIOENCODING": "cp1252"}
    done = subprocess.run([sys.executable, "-m", "ldlm_lint", "run.sh"], capture_output=True, env=environment)
    assert done.returncode == 1
    assert "# 模型" in done.stdout.decode("utf-8")
