"""What is reported in pylint: our configuration holds as in the command, and pylint's switches and comments stand above it.

Rules that are off are not asked, but where a comment switches them on.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from pylint.lint import Run
from pylint.reporters import CollectingReporter

from ldlm_lint import batch, engine
from ldlm_lint.configurations import Configurations
from ldlm_lint.linting import selected_rules
from ldlm_lint.rules import ALL, by_symbol
from ldlm_lint.rules.linter import RULES

# One rule that the file tells, one that the project tells, one that is off by default, one of a script.
PROGRAM = '''import torch
import torch.distributed as dist
from datetime import timedelta

torch.backends.cudnn.deterministic = True
dist.init_process_group("nccl", timeout=timedelta(days=10))


def main(model, loader):
    optimizer = torch.optim.AdamW(model.cuda().parameters())
    for batch in loader:
        model(batch.cuda()).backward()
        optimizer.step()
'''
SCRIPT = "export TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC=12000000\ntorchrun train.py\n"
TIMEOUT, FUSED, GUARD, HEARTBEAT = (
    *("excessive-collective-timeout", "optimizer-not-fused", "nondeterminism-guard-left-on", "excessive-heartbeat-timeout"),
)
ALL_FOUR = {TIMEOUT, FUSED, GUARD, HEARTBEAT}
SLOW = 'import torch.distributed as dist\nfrom datetime import timedelta\n\ndist.init_process_group("nccl", timeout=timedelta(days=10))\n'
RULE = "excessive-collective-timeout"


def messages(folder: Path, *options: str) -> set[tuple[str, str]]:
    reporter = CollectingReporter()
    Run(["--rcfile=", "--persistent=n", "--load-plugins=ldlm_lint", *options, str(folder)], reporter=reporter, exit=False)
    return {(Path(one.path).name, one.symbol) for one in reporter.messages}


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with findings of four rules; one of them is off by default."""
    monkeypatch.setenv("LDLM_LINT_CACHE_DIR", str(tmp_path / "cache"))
    made = tmp_path / "program"
    made.mkdir()
    for name, text in (("pyproject.toml", ""), ("train.py", PROGRAM), ("run.sh", SCRIPT)):
        (made / name).write_text(text)
    monkeypatch.chdir(made)
    return made


def reported(program: Path, *options: str) -> set[str]:
    """Which of the four rules pylint reports, where every message of ours is one of them."""
    found = {symbol for _, symbol in messages(program / "train.py", *options) if symbol in by_symbol}
    assert found <= ALL_FOUR
    return found


def by_command(program: Path) -> set[str]:
    report = engine.run([program], Configurations(program), base=program)
    return {finding.rule for finding in report.findings}


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        pytest.param("", ALL_FOUR - {GUARD}, id="defaults"),
        pytest.param('select = ["73"]', {FUSED}, id="select"),
        pytest.param('extend-select = ["nondeterminism-guard-left-on"]', ALL_FOUR, id="extend-select"),
        pytest.param('ignore = ["72"]', {FUSED}, id="ignore"),
        pytest.param('level = "warning"', {TIMEOUT, HEARTBEAT}, id="level"),
        pytest.param("pedantic = true", ALL_FOUR, id="pedantic"),
        pytest.param('exclude = ["train.py"]', {HEARTBEAT}, id="exclude"),
        pytest.param('exclude = ["*.sh"]', {TIMEOUT, FUSED}, id="exclude-script"),
        pytest.param('per-file-ignores = {"train.py" = ["72"]}', {FUSED, HEARTBEAT}, id="per-file-ignores"),
        pytest.param("collective-limit = 1000000", {FUSED, HEARTBEAT}, id="thresholds"),
    ],
)
def test_the_configuration_holds_as_in_the_command(program: Path, settings: str, expected: set[str]) -> None:
    (program / "pyproject.toml").write_text(f"[tool.ldlm-lint]\n{settings}\n")
    assert reported(program) == expected == by_command(program)


@pytest.mark.parametrize(
    ("settings", "options", "expected"),
    [
        pytest.param(f'ignore = ["{FUSED}"]', [f"--enable={FUSED}"], {FUSED, TIMEOUT, HEARTBEAT}, id="enable-above-ignore"),
        pytest.param('select = ["ALL"]', [f"--disable={GUARD}"], ALL_FOUR - {GUARD}, id="disable-above-select"),
        pytest.param('select = ["73"]', ["--enable=ldlm-distributed"], {FUSED, TIMEOUT, HEARTBEAT}, id="enable-above-select"),
        pytest.param('level = "warning"', ["--enable=R7301"], {FUSED, TIMEOUT, HEARTBEAT}, id="enable-above-level"),
        pytest.param("pedantic = true", ["--disable=ldlm-precision"], ALL_FOUR - {GUARD}, id="disable-above-pedantic"),
        pytest.param("", ["--disable=ldlm-lint"], set(), id="disable-all-of-ours"),
        pytest.param('ignore = ["ALL"]', ["--enable=ldlm-lint"], ALL_FOUR, id="enable-all-of-ours"),
        pytest.param("", ["--disable=all", "--enable=ldlm-lint"], ALL_FOUR, id="ours-alone"),
        pytest.param("", ["--disable=all", "--enable=ldlm-precision"], {GUARD}, id="a-family-alone"),
        pytest.param("", ["--enable=ldlm-lint", "--disable=ldlm-distributed"], {FUSED, GUARD}, id="all-but-a-family"),
        pytest.param("", ["--disable=ldlm-distributed", f"--enable={TIMEOUT}"], {TIMEOUT, FUSED}, id="one-of-a-family"),
        pytest.param("", ["--disable=ldlm-linter"], ALL_FOUR - {GUARD}, id="nothing-about-the-linter"),
        pytest.param("pedantic = true", ["--disable=R"], ALL_FOUR - {FUSED}, id="a-category"),
        pytest.param("", ["--errors-only"], set(), id="errors-only"),
        pytest.param('ignore = ["ALL"]', [f"--fail-on={TIMEOUT}"], {TIMEOUT}, id="fail-on"),
        pytest.param('per-file-ignores = {"*.py" = ["ALL"]}', ["--enable=ldlm-lint"], {HEARTBEAT}, id="where-rules-do-not-hold"),
        pytest.param('exclude = ["*.py"]', ["--enable=ldlm-lint"], {HEARTBEAT}, id="what-is-not-looked-at"),
    ],
)
def test_switches_of_pylint_stand_above_the_configuration(
    program: Path, settings: str, options: list[str], expected: set[str]
) -> None:
    (program / "pyproject.toml").write_text(f"[tool.ldlm-lint]\n{settings}\n")
    assert reported(program, *options) == expected


def test_a_finding_that_matters_less_is_below_the_level_as_in_the_command(program: Path) -> None:
    """Unless pylint is told to report its rule."""
    (program / "pkg").mkdir()
    (program / "pkg" / "__init__.py").write_text("")
    (program / "pkg" / "start.py").write_text(SLOW)
    (program / "train.py").write_text("import torch\n\nmodel = torch.nn.Linear(2, 2)\nfor _ in range(3):\n    model(torch.ones(2)).sum().backward()\n")
    (program / "run.sh").unlink()
    path = program / "pkg" / "start.py"

    def reported(*options: str) -> set[str]:
        return {symbol for _, symbol in messages(path, *options) if symbol in by_symbol}

    assert reported() == by_command(program) == {TIMEOUT}
    (program / "pyproject.toml").write_text('[tool.ldlm-lint]\nlevel = "warning"\n')
    assert reported() == by_command(program) == set()
    assert reported(f"--enable={TIMEOUT}") == {TIMEOUT}


def test_switches_of_pylints_configuration_stand_above_ours(program: Path) -> None:
    ours = f'[tool.ldlm-lint]\nselect = ["73", "{TIMEOUT}"]\n'
    theirs = f'[tool.pylint.main]\nload-plugins = ["ldlm_lint"]\n[tool.pylint."messages control"]\ndisable = ["{FUSED}"]\nenable = ["ldlm-precision"]\n'
    (program / "pyproject.toml").write_text(ours + theirs)
    reporter = CollectingReporter()
    Run(["--rcfile=pyproject.toml", "--persistent=n", "train.py"], reporter=reporter, exit=False)
    assert {one.symbol for one in reporter.messages if one.symbol in by_symbol} == {TIMEOUT, GUARD}


@pytest.mark.parametrize(
    ("comment", "expected"),
    [
        pytest.param(f"# pylint: enable={FUSED}", {FUSED}, id="name"),
        pytest.param(f"# pylint: enable={GUARD}", {GUARD}, id="off-by-default"),
        pytest.param("# pylint: enable=ldlm-precision", {GUARD}, id="family"),
        pytest.param("# pylint: enable=ldlm-lint", ALL_FOUR - {HEARTBEAT}, id="all-families"),
        pytest.param(f"# pylint: enable=ldlm-lint\n# pylint: disable={FUSED}", {TIMEOUT, GUARD}, id="switched-off-again"),
        pytest.param(f"# pylint: disable={FUSED}", set(), id="disable"),
    ],
)
@pytest.mark.parametrize("settings", ['ignore = ["ALL"]', 'per-file-ignores = {"*" = ["ALL"]}'])
def test_a_comment_stands_above_the_configuration(program: Path, settings: str, comment: str, expected: set[str]) -> None:
    (program / "pyproject.toml").write_text(f"[tool.ldlm-lint]\n{settings}\n")
    (program / "train.py").write_text(f"{comment}\n{PROGRAM}")
    assert reported(program) == expected


def test_a_comment_silences_a_family_in_both_hosts(program: Path) -> None:
    (program / "train.py").write_text(f"# pylint: disable=ldlm-distributed\n{PROGRAM}")
    assert reported(program) == by_command(program) == {FUSED, HEARTBEAT}
    (program / "train.py").write_text(f"# pylint: disable=ldlm-lint\n{PROGRAM}")
    assert reported(program) == by_command(program) == {HEARTBEAT}


def test_each_file_has_the_configuration_of_its_project(program: Path) -> None:
    """Whichever of them pylint is started for, and whatever the directory that it is started in."""
    (program / "pyproject.toml").write_text('[tool.ldlm-lint]\nignore = ["ALL"]\n')
    for name, settings in (("one", 'ignore = ["72"]'), ("two", 'select = ["72"]'), ("three", "bad-key = 1")):
        (program / name).mkdir()
        (program / name / "ldlm-lint.toml").write_text(settings)
        (program / name / f"train_{name}.py").write_text(PROGRAM)
    paths = [str(program / name / f"train_{name}.py") for name in ("one", "two", "three")]
    reporter = CollectingReporter()
    Run(["--rcfile=", "--persistent=n", "--load-plugins=ldlm_lint", "train.py", *paths], reporter=reporter, exit=False)
    found = {(Path(one.path).name, one.symbol) for one in reporter.messages if one.symbol in by_symbol}
    assert found == {
        ("train_one.py", FUSED),
        ("train_two.py", TIMEOUT),
        ("ldlm-lint.toml", "ldlm-configuration-error"),
    }


def listed(capsys: pytest.CaptureFixture[str], *options: str) -> tuple[set[str], set[str]]:
    """The messages of ours that pylint says are enabled, and those that are not."""
    with pytest.raises(SystemExit):
        Run(["--rcfile=", "--load-plugins=ldlm_lint", *options, "--list-msgs-enabled"], exit=False)
    enabled, _, disabled = capsys.readouterr().out.partition("Disabled messages:")
    names = [set(re.findall(r"^  ([\w-]+) \(", text, re.M)) & by_symbol.keys() for text in (enabled, disabled)]
    assert names[0] | names[1] == by_symbol.keys()
    return names[0], names[1]


def test_pylint_lists_what_the_configuration_and_its_switches_leave_on(
    program: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    enabled, disabled = listed(capsys)
    assert (ALL_FOUR & enabled, ALL_FOUR & disabled) == (ALL_FOUR - {GUARD}, {GUARD})
    (program / "pyproject.toml").write_text(f'[tool.ldlm-lint]\nselect = ["{GUARD}", "{FUSED}"]\n')
    assert ALL_FOUR & listed(capsys)[0] == {GUARD, FUSED}
    assert ALL_FOUR & listed(capsys, f"--disable={FUSED}", f"--enable={TIMEOUT}")[0] == {GUARD, TIMEOUT}


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[frozenset[str]]:
    """What each file that was linted was asked for."""
    monkeypatch.setenv("LDLM_LINT_CACHE_DIR", str(tmp_path / "cache"))
    seen, lint = [], batch.lint_file

    def spied(path: Path, kind: object, config: object, *rest: object) -> object:
        seen.append(selected_rules(config))
        return lint(path, kind, config, *rest)

    monkeypatch.setattr(batch, "lint_file", spied)
    return seen


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "project"
    made.mkdir()
    (made / "pyproject.toml").write_text("")
    (made / "train.py").write_text(SLOW)
    return made


def test_only_rules_that_are_on_are_asked(folder: Path, asked: list[frozenset[str]]) -> None:
    assert messages(folder / "train.py", "--disable=all", f"--enable={RULE}") == {("train.py", RULE)}
    assert asked == [{RULE, *(rule.symbol for rule in RULES if rule.default)}]


def test_a_comment_switches_a_rule_on(folder: Path, asked: list[frozenset[str]]) -> None:
    (folder / "train.py").write_text(f"# pylint: enable={RULE}\n{SLOW}")
    assert messages(folder / "train.py", "--disable=all", "--enable=nondeterminism-guard-left-on") == {("train.py", RULE)}
    assert {rule.symbol for rule in ALL} <= asked[0]


def test_who_asks_for_unused_suppressions_gets_them_of_all_rules(folder: Path, asked: list[frozenset[str]]) -> None:
    messages(folder / "train.py", "--disable=all", "--enable=unused-suppression")
    assert {rule.symbol for rule in ALL} <= asked[0]
