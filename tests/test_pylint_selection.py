"""pylint selects: rules that are off in it are not asked, but where a comment switches them on."""

from __future__ import annotations

from pathlib import Path

import pytest
from pylint.lint import Run
from pylint.reporters import CollectingReporter

from ldlm_lint.checkers import project_run
from ldlm_lint.linting import selected_rules
from ldlm_lint.rules import ALL
from ldlm_lint.rules.linter import RULES

SLOW = 'import torch.distributed as dist\nfrom datetime import timedelta\n\ndist.init_process_group("nccl", timeout=timedelta(days=10))\n'
RULE = "excessive-collective-timeout"


def messages(folder: Path, *options: str) -> set[tuple[str, str]]:
    reporter = CollectingReporter()
    Run(["--rcfile=", "--persistent=n", "--load-plugins=ldlm_lint", *options, str(folder)], reporter=reporter, exit=False)
    return {(Path(one.path).name, one.symbol) for one in reporter.messages}


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[frozenset[str]]:
    """What each file that was linted was asked for."""
    monkeypatch.setenv("LDLM_LINT_CACHE_DIR", str(tmp_path / "cache"))
    seen, lint = [], project_run.lint_file

    def spied(path: Path, kind: object, config: object, *rest: object) -> object:
        seen.append(selected_rules(config))
        return lint(path, kind, config, *rest)

    monkeypatch.setattr(project_run, "lint_file", spied)
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
    assert messages(folder / "train.py", "--disable=all", "--enable=dataloader-without-prefetch") == {("train.py", RULE)}
    assert {rule.symbol for rule in ALL} <= asked[0]


def test_who_asks_for_unused_suppressions_gets_them_of_all_rules(folder: Path, asked: list[frozenset[str]]) -> None:
    messages(folder / "train.py", "--disable=all", "--enable=unused-suppression")
    assert {rule.symbol for rule in ALL} <= asked[0]
