"""pylint with the plugin, as processes of its own: its score, reports and exit code are its own, and our messages are added."""

from __future__ import annotations

import builtins
import io
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pylint.lint import Run
from pylint.reporters import CollectingReporter

from ldlm_lint import engine
from ldlm_lint.configurations import Configurations
from ldlm_lint.pylint_host.run import Run as RunOfEngine
from ldlm_lint.rules import by_symbol

PLUGIN = "--load-plugins=ldlm_lint"
PACKAGE = '''"""Reads."""
import os


def read(path):
    """Read."""
    unused = 1
    with open(path, encoding="utf-8") as file:
        return file.read()


def chosen(one, two, three):
    """Choose."""
    result = []
    for item in one:
        if item in two:
            result.append(item)
        elif item in three:
            result.append(item * 2)
    print(sum(result))
    return result
'''
TRAIN = '''"""Trains."""
import os
from datetime import timedelta

import torch
import torch.distributed as dist

dist.init_process_group("nccl", timeout=timedelta(days=10))


def main(model, loader):
    """Train."""
    optimizer = torch.optim.AdamW(model.cuda().parameters())
    for batch in loader:
        model(batch).backward()
        optimizer.step()
'''
SCRIPT = "export TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC=12000000\ntorchrun train.py\n"
OURS = {
    ("train.py", 8, "excessive-collective-timeout"),
    ("train.py", 13, "optimizer-not-fused"),
    ("run.sh", 1, "excessive-heartbeat-timeout"),
}


def pylint(folder: Path, *arguments: str, stdin: str | None = None) -> subprocess.CompletedProcess[str]:
    """Run pylint in a folder; what it remembers of its last run is kept beside that."""
    package = str(Path(engine.__file__).parent.parent)
    home, cache = folder.parent / "home", folder.parent / "cache"
    environment = os.environ | {"PYTHONPATH": package, "PYLINTHOME": str(home), "LDLM_LINT_CACHE_DIR": str(cache)}
    return subprocess.run(
        [sys.executable, "-m", "pylint", *arguments],
        capture_output=True, text=True, cwd=folder, env=environment, check=False, input=stdin,
    )  # fmt: skip


def ours(done: subprocess.CompletedProcess[str]) -> set[tuple[str, int, str]]:
    """Our messages in a report as text: path, line and symbol."""
    found = re.findall(r"^([^\s:]+):(\d+):\d+: [A-Z](?:68|7\d)\d\d: .* \(([\w-]+)\)$", done.stdout, re.M)
    assert "Traceback" not in done.stderr, done.stderr
    return {(path, int(line), symbol) for path, line, symbol in found}


def score(done: subprocess.CompletedProcess[str]) -> float:
    found = re.search(r"rated at (-?[\d.]+)/10", done.stdout)
    assert found, done.stdout + done.stderr
    return float(found[1])


@pytest.fixture
def clean(tmp_path: Path) -> Path:
    """Files with findings of pylint's and none of ours."""
    folder = tmp_path / "clean"
    (folder / "package").mkdir(parents=True)
    (folder / "pyproject.toml").write_text("")
    (folder / "package" / "__init__.py").write_text("")
    (folder / "package" / "files.py").write_text(PACKAGE)
    (folder / "main.py").write_text(PACKAGE.replace("def read", "def read_again"))
    return folder


@pytest.fixture
def training(tmp_path: Path) -> Path:
    """A training program with a finding that its file tells, one that the project tells, and one in a script."""
    folder = tmp_path / "training"
    folder.mkdir()
    for name, text in (("pyproject.toml", ""), ("train.py", TRAIN), ("run.sh", SCRIPT)):
        (folder / name).write_text(text)
    return folder


@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param(["package", "main.py"], id="score"),
        pytest.param(["-ry", "-j2", "package", "main.py"], id="reports-of-workers"),
        pytest.param(["--fail-under=9.9", "-fjson2", "-j2", "package"], id="below-the-mark"),
    ],
)
def test_without_findings_of_ours_nothing_changes(clean: Path, arguments: list[str]) -> None:
    """Twice, since the second run is compared with the first."""
    outcomes = []
    for plugin in ([], [PLUGIN]):
        runs = [pylint(clean, *plugin, *arguments) for _ in range(2)]
        outcomes.append([(done.returncode, done.stdout, done.stderr) for done in runs])
        for left in clean.parent.glob("home/*"):
            left.unlink()
    assert outcomes[0] == outcomes[1]
    if arguments == ["package", "main.py"]:
        assert "previous run" in outcomes[1][1][1]


@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param(["-ry", "--recursive=y", "."], id="reports"),
        pytest.param(["-fjson", "package"], id="json"),
        pytest.param(["-fcolorized", "--fail-under=5", "package"], id="above-the-mark"),
        pytest.param(["--fail-on=unused-import", "--fail-under=1", "package"], id="fail-on"),
        pytest.param(["--errors-only", "package"], id="errors-only"),
        pytest.param(["--disable=all", "package"], id="nothing"),
        pytest.param(["--disable=all", "--enable=unused-import", "package"], id="one-of-pylint"),
        pytest.param(["--from-stdin", "main.py"], id="stdin"),
        pytest.param(["nosuchfile.py"], id="no-file"),
    ],
)
def test_without_findings_of_ours_no_option_changes_anything(
    clean: Path, arguments: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """In this process: what pylint prints, and how it ends."""
    monkeypatch.chdir(clean)
    outcomes = []
    for plugin in ([], [PLUGIN]):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(PACKAGE.encode())))
        with pytest.raises(SystemExit) as ended:
            Run(["--rcfile=", "--persistent=n", "--clear-cache-post-run=y", *plugin, *arguments])
        outcomes.append((ended.value.code, *capsys.readouterr()))
    assert outcomes[0] == outcomes[1]


@pytest.mark.parametrize("jobs", ["-j1", "-j2"])
def test_our_messages_count_as_those_of_pylint_do(training: Path, jobs: str) -> None:
    """Ten statements, and two warnings of ours and an advice; a script has messages and no statements."""
    options = [jobs, "--disable=import-error", "train.py"]
    alone, done = pylint(training, *options), pylint(training, PLUGIN, *options)
    assert ours(done) == OURS
    assert (alone.returncode, done.returncode) == (4, 4 | 8)
    assert score(alone) == pytest.approx(9, abs=0.01)
    assert score(done) == pytest.approx(6, abs=0.01)
    assert f"(previous run: {score(alone):.2f}/10" in done.stdout
    assert pylint(training, PLUGIN, *options, f"--fail-under={score(done) - 0.1}").returncode == 0
    assert pylint(training, PLUGIN, *options, "--fail-under=1", "--fail-on=excessive-heartbeat-timeout").returncode == 12
    assert pylint(training, PLUGIN, *options, "--exit-zero").returncode == 0


def test_reports_are_the_same_with_workers(training: Path) -> None:
    (training / "other.py").write_text(PACKAGE)
    options = ["-ry", "--disable=import-error,duplicate-code", "--persistent=n", PLUGIN, "train.py", "other.py"]
    alone, workers = (pylint(training, jobs, *options).stdout.partition("Report\n")[2] for jobs in ("-j1", "-j2"))
    assert alone == workers
    by_module = dict(re.findall(r"^\|(train|other|run\.sh) *\|\d\S+ *\|(\S+) *\|", alone, re.M))
    # An unused import, an unused variable in `other`, and our two.
    assert by_module == {"train": "40.00", "other": "40.00", "run.sh": "20.00"}


def test_a_message_of_another_checker_stays_where_it_is(training: Path) -> None:
    """``duplicate-code`` reports at the module that pylint is at, after we have reported on scripts."""
    for name in ("one.py", "two.py"):
        (training / name).write_text(PACKAGE)
    for jobs in ("-j1", "-j2"):
        options = ["-fjson", jobs, "--enable=duplicate-code", "train.py", "one.py", "two.py"]
        paths = []
        for plugin in ([], [PLUGIN]):
            messages = json.loads(pylint(training, *plugin, *options).stdout)
            paths.append([one["path"] for one in messages if one["symbol"] == "duplicate-code"])
        assert paths[0] == paths[1] != []


def test_stdin_is_answered_in_full_whatever_the_number_of_jobs(training: Path) -> None:
    """pylint gives stdin to no worker, also where its configuration asks for some."""
    text = TRAIN.replace("import os\n", "")
    for jobs in ("-j1", "-j2"):
        done = pylint(training, PLUGIN, jobs, "--disable=import-error", "--from-stdin", "train.py", stdin=text)
        assert ours(done) == {(path, line - (path == "train.py"), symbol) for path, line, symbol in OURS}


@pytest.mark.parametrize("jobs", ["-j1", "-j2"])
def test_a_comment_that_silences_a_finding_is_of_use(training: Path, jobs: str) -> None:
    """Also where the program decides, which pylint does not wait for: no comment about what it finds counts as useless."""
    text = TRAIN.replace("days=10))", "days=10))  # pylint: disable=excessive-collective-timeout")
    text = text.replace("parameters())", "parameters())  # pylint: disable=ldlm-optimizer")
    text = text.replace("optimizer.step()", "optimizer.step()  # pylint: disable=optimizer-not-fused")
    (training / "train.py").write_text(text)
    options = ["--disable=all", "--enable=ldlm-distributed,optimizer-not-fused,useless-suppression"]
    done = pylint(training, PLUGIN, jobs, *options, "train.py")
    assert ours(done) == {one for one in OURS if one[0] == "run.sh"}
    useless = re.findall(r"train.py:(\d+):\d+: I0021: Useless suppression of '([\w-]+)'", done.stdout)
    assert not {one for one in useless if one[1] in {symbol for _, _, symbol in OURS}}


@pytest.mark.parametrize("jobs", ["-j1", "-j2"])
def test_comments_hold_in_each_file_on_their_line(training: Path, jobs: str) -> None:
    """Messages are added after the last file, about all of them: each file has its own comments, and those of none other."""
    silent = TRAIN.replace("days=10))", "days=10))  # pylint: disable=excessive-collective-timeout")
    block = TRAIN.replace('"""Train."""', '"""Train."""\n    # pylint: disable=ldlm-optimizer')
    for name, text in (("a.py", silent), ("b.py", block), ("c.py", f"# pylint: skip-file\n{TRAIN}"), ("d.py", TRAIN)):
        (training / name).write_text(text)
    found = ours(pylint(training, PLUGIN, jobs, "--disable=all", "--enable=ldlm-lint", "a.py", "b.py", "c.py", "d.py"))
    names = {("a.py", 13, "optimizer-not-fused"), ("b.py", 8, "excessive-collective-timeout")}
    assert found == names | {("d.py", line, name) for path, line, name in OURS if path == "train.py"} | {one for one in OURS if one[0] == "run.sh"}


def test_a_file_is_parsed_once_more_than_by_the_engine(in_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    parsed: list[object] = []
    runs, lint, compiled = [], engine.run, compile

    def spied(source: object, *arguments: Any, **more: Any) -> object:
        parsed.append(source)
        return compiled(source, *arguments, **more)  # type: ignore[call-overload]

    def times() -> list[int]:
        counts = [sum(text.strip() in str(one) for one in parsed) for text in (TRAIN, PACKAGE)]
        parsed.clear()
        return counts

    monkeypatch.setattr(engine, "run", lambda *arguments, **more: runs.append(arguments) or lint(*arguments, **more))
    monkeypatch.setattr(builtins, "compile", spied)
    (in_folder / "other.py").write_text(PACKAGE)
    lint([in_folder], Configurations(in_folder), base=in_folder)
    alone = times()
    Run(["--rcfile=", "--persistent=n", PLUGIN, "train.py", "other.py"], reporter=CollectingReporter(), exit=False)
    # A tree that the engine has at hand from before is not made again.
    assert len(runs) == 1
    assert all(0 < count <= before + 1 for count, before in zip(times(), alone, strict=True))


@pytest.mark.parametrize("jobs", ["-j1", "-j2"])
@pytest.mark.parametrize(
    ("broken", "line", "said"),
    [
        pytest.param("[tool.ldlm-lint]\nbad-key = 1\n", 2, "bad-key: unknown key", id="key"),
        pytest.param("[tool.ldlm-lint]\npedantic = 'yes'\n", 2, "pedantic: must be true or false", id="type"),
        pytest.param("\n[tool.ldlm-lint]\nselect = ['no-such-rule']\n", 3, 'select: unknown rule "no-such-rule"', id="rule"),
    ],
)
def test_a_broken_setting_is_one_message_at_its_line(training: Path, jobs: str, broken: str, line: int, said: str) -> None:
    (training / "pyproject.toml").write_text(broken)
    (training / "other.py").write_text(PACKAGE)
    done = pylint(training, PLUGIN, "--rcfile=", jobs, "--disable=import-error", "train.py", "other.py")
    assert ours(done) == {("pyproject.toml", line, "ldlm-configuration-error")}
    assert done.stdout.count("ldlm-configuration-error") == 1
    assert f"skips the files under it: {said}" in done.stdout
    assert (done.returncode, done.stdout.count("unused-import"), done.stderr) == (2 | 4, 2, "")
    assert "rated at" in done.stdout


def test_a_broken_setting_is_one_message_in_json(training: Path) -> None:
    (training / "pyproject.toml").write_text("[tool.ldlm-lint]\nbad-key = 1\n")
    messages = json.loads(pylint(training, PLUGIN, "-fjson", "-j2", "train.py").stdout)
    (found,) = (one for one in messages if one["message-id"].startswith(("E68", "W7", "R7")))
    assert (found["path"], found["line"], found["type"]) == ("pyproject.toml", 2, "error")


def test_a_broken_setting_is_silent_where_nothing_of_ours_is_wanted(training: Path) -> None:
    (training / "pyproject.toml").write_text("[tool.ldlm-lint]\nbad-key = 1\n")
    for options in (["--disable=ldlm-lint"], ["--disable=all", "--enable=unused-import"], ["--disable=ldlm-configuration-error"]):
        assert ours(pylint(training, PLUGIN, *options, "train.py")) == set()
    assert len(ours(pylint(training, PLUGIN, "--disable=all", "--enable=optimizer-not-fused", "train.py"))) == 1


@pytest.fixture
def in_folder(training: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Path]:
    monkeypatch.chdir(training)
    monkeypatch.setenv("LDLM_LINT_CACHE_DIR", str(tmp_path / "cache"))
    yield training


def test_runs_of_one_process_do_not_know_each_other(in_folder: Path) -> None:
    """As a server of pylint asks, which keeps its process."""
    options = ["--rcfile=", "--persistent=n", "--clear-cache-post-run=y", PLUGIN, "train.py"]
    expected = {symbol for _, _, symbol in OURS}
    for text, wanted in ((TRAIN, expected), (TRAIN.replace("days=10", "minutes=10"), expected - {"excessive-collective-timeout"})):
        (in_folder / "train.py").write_text(text)
        reporter = CollectingReporter()
        Run(options, reporter=reporter, exit=False)
        assert {one.symbol for one in reporter.messages if one.symbol in expected} == wanted


def in_process(*options: str) -> list[tuple[str, int, str, str]]:
    """Our messages of a run in this process: file, line, symbol and text."""
    reporter = CollectingReporter()
    Run(["--rcfile=", "--persistent=n", PLUGIN, *options, "train.py"], reporter=reporter, exit=False)
    return [(Path(one.path).name, one.line, one.symbol, one.msg) for one in reporter.messages if one.symbol in by_symbol]


def test_a_table_that_is_not_read_is_a_warning(in_folder: Path) -> None:
    (in_folder / "pyproject.toml").write_text('\n[tool.ldlm_lint]\nignore = ["ALL"]\n')
    found = in_process()
    text = "[tool.ldlm_lint] is not read; the table is called [tool.ldlm-lint]"
    assert ("pyproject.toml", 2, "ldlm-configuration-not-read", text) in found
    assert {(path, line, symbol) for path, line, symbol, _ in found} >= OURS


def test_all_errors_of_a_configuration_are_reported(in_folder: Path) -> None:
    (in_folder / "pyproject.toml").write_text("[tool.ldlm-lint]\nbad-key = 1\npedantic = 'yes'\nlevel = 'loud'\n")
    assert [(path, line) for path, line, _, _ in in_process()] == [("pyproject.toml", 2), ("pyproject.toml", 3), ("pyproject.toml", 4)]


def test_a_failure_at_the_end_costs_no_message_of_pylint(in_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise ValueError("of ours")

    monkeypatch.setattr(RunOfEngine, "findings", fail)
    ((path, _, symbol, text),) = (one for one in in_process() if one[:3] not in OURS)
    assert (path, symbol) == ("train.py", "ldlm-internal-error")
    assert "ValueError: of ours" in text


def test_control_characters_of_a_file_do_not_reach_the_terminal(in_folder: Path) -> None:
    (in_folder / "run.sh").write_text(SCRIPT.replace("12000000", '"12000000\x1b[31m"'))
    (in_folder / "pyproject.toml").write_text('[tool.ldlm-lint]\nignore = ["\\u001b[31m"]\n')
    assert all(text.isprintable() for _, _, _, text in in_process())
    (in_folder / "pyproject.toml").write_text("")
    texts = [text for path, _, _, text in in_process() if path == "run.sh"]
    assert texts and all(text.isprintable() for text in texts)
