"""scripts/new_rule.py writes a skeleton that the tests reject part by part, until the rule is whole."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
NAME, CODE = "variable-deleted-by-hand", "W7599"
OWN_FILE = "ldlm_lint/checkers/memory/variable_deleted_by_hand.py"
# What a copy of the tree does not need: the other rules' fixtures would only make its tests slow. Compiled code makes them fast.
TESTS = ("tests/test_rule_texts.py", "tests/test_rules.py", "tests/test_explain.py")
LEFT_OUT = shutil.ignore_patterns(".*", "build", "dist", "*.egg-info", "venv", "fixtures", "examples")
PLACEHOLDER = re.compile(r'"write: [^"]*"')
DETECTION = """
    from ldlm_lint.model import Fix

    for call in code.calls({"gc.collect"}):
        yield code.finding(RULE, call.span, {}, fix=Fix("keep the garbage", (), Applicability.DISPLAY, "it may be needed"))
"""


def written(suffix: str) -> list[str]:
    """The fixtures of a rule with a fix that is applied."""
    return [f"{name}.{suffix}" for name in ("bad", "good", "bad.fixed", "bad_short", "bad_short.fixed")]


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A copy of this checkout without fixtures."""
    return shutil.copytree(ROOT, tmp_path / "tree", ignore=LEFT_OUT)


@pytest.fixture(scope="module")
def unchanged(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy that no test changes."""
    return shutil.copytree(ROOT, tmp_path_factory.mktemp("unchanged") / "tree", ignore=LEFT_OUT)


def python(tree: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(tree), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=tree, env=environment)


def new_rule(tree: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return python(tree, "scripts/new_rule.py", *arguments)


def failures(tree: Path, *options: str) -> tuple[set[str], str]:
    """Which tests of the rule fail in the fast engine, and all that pytest prints of them."""
    done = python(tree, "-m", "pytest", "-q", "-p", "no:cacheprovider", *TESTS, "--rule", NAME, "-k", "not pylint", *options)
    assert "passed" in done.stdout, done.stdout + done.stderr
    return set(re.findall(r"^FAILED \S+::(\w+)", done.stdout, re.M)), done.stdout


def state(tree: Path) -> dict[str, bytes]:
    return {path.relative_to(tree).as_posix(): path.read_bytes() for path in tree.rglob("*") if path.is_file()}


def rewrite(path: Path, *changes: tuple[str, str]) -> None:
    text = path.read_text(encoding="utf-8")
    for old, new in changes:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    path.write_text(text, encoding="utf-8")


def fill_texts(tree: Path) -> None:
    path = tree / OWN_FILE
    rewrite(
        path,
        ('message="write: what is wrong at this place."', 'message="a name is deleted by hand"'),
        ('Reference("write: a primary source", "http://")', 'Reference("del", "https://docs.python.org/3/reference/")'),
        ('fix_safety="write: what the fix may change"', 'fix_safety="Shown only: the name may be read later."'),
    )
    path.write_text(PLACEHOLDER.sub('"A sentence."', path.read_text(encoding="utf-8")), encoding="utf-8")


def test_a_skeleton_is_red_until_its_parts_are_filled(tree):
    done = new_rule(tree, NAME, CODE, "--fix", "display")
    assert done.returncode == 0, done.stderr
    assert f"1. tests/fixtures/{NAME}/good.py:" in done.stdout

    red, printed = failures(tree)
    assert {
        "test_every_text_is_filled_with_sentences",
        "test_a_message_is_one_line_without_a_full_stop",
        "test_the_references_are_https_links_to_primary_sources",
        "test_fix_safety_says_the_level_first",
        "test_a_case_has_the_output_that_is_recorded",
    } <= red
    assert "write: what the rule finds, in one sentence" in printed
    assert f"{{('bad.py', 3, '{NAME}'): 1}}" in printed

    fill_texts(tree)
    red, _ = failures(tree)
    assert "test_a_case_has_the_output_that_is_recorded" in red
    assert not {one for one in red if "text" in one or "message" in one or "references" in one}

    fixtures = tree / "tests" / "fixtures" / NAME
    (fixtures / "bad.py").write_text(f'"""A loop."""\n\nimport gc\n\ngc.collect()  # expect: {NAME}\n', encoding="utf-8")
    (fixtures / "good.py").write_text('"""Nothing is collected here."""\n', encoding="utf-8")
    (fixtures / "bad_short.py").write_text(f"import gc\n\ngc.collect()  # expect: {NAME}\n", encoding="utf-8")
    (fixtures / "good_short.py").write_text("import gc\n\ngc.freeze()\n", encoding="utf-8")
    rewrite(tree / OWN_FILE, ("    yield from ()\n", DETECTION.removeprefix("\n")))
    red, printed = failures(tree)
    assert red == {"test_a_case_has_the_output_that_is_recorded"}, printed
    red, printed = failures(tree, "--update")
    assert not red, printed
    red, printed = failures(tree)
    assert not red, printed


@pytest.mark.parametrize(
    ("arguments", "files"),
    [
        ([NAME, CODE], {"bad.py", "good.py", "bad_short.py", "good_short.py"}),
        ([NAME, CODE, "--fix", "unsafe"], {*written("py")}),
        ([NAME, "I7299", "environment", "--reads", "sh", "--fix", "safe", "--opt-in"], {*written("sh")}),
        ([NAME, "I7299", "environment", "--reads", "cfg", "--fix", "unsafe"], {*written("yaml")}),
    ],
    ids=["plain", "unsafe", "shell", "configuration"],
)
def test_all_parts_are_written(arguments, files, tree):
    before = state(tree)
    done = new_rule(tree, *arguments)
    assert done.returncode == 0, done.stderr
    after = state(tree)
    modules = {"ldlm_lint/rules/environment.py"} if "--reads" in arguments else {OWN_FILE, "ldlm_lint/checkers/rule_files.py"}
    assert {name for name in after if after[name] != before.get(name)} - {"ldlm_lint/checkers/memory/__init__.py"} == {
        *modules,
        "CHANGELOG.md",
        *(f"tests/fixtures/{NAME}/{name}" for name in files),
    }
    assert after["CHANGELOG.md"].decode().count(f": `{NAME}`.\n") == 1
    ask = f"from ldlm_lint.rules import by_symbol; rule = by_symbol['{NAME}']; print(rule.code, rule.reads, rule.default)"
    reads = next((kind for kind in ("sh", "cfg") if kind in arguments), "py")
    assert python(tree, "-c", ask).stdout == f"{arguments[1]} ('{reads}',) {'--opt-in' not in arguments}\n"


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["nccl-blocking-wait", CODE], "nccl-blocking-wait is the name, or an old name, of nccl-blocking-wait (W7207)"),
        ([NAME, "W7502"], "W7502 is taken: missing-activation-checkpointing has R7502"),
        ([NAME, "W7899", "environment", "--reads", "sh"], "W7899 is of family 78, environment.py is not; no file has that family"),
        ([NAME, "W7999"], "W7999 is of family 79, which has no folder"),
        ([NAME, "X7599"], "X7599 is no code"),
        (["Deleted", CODE], "Deleted is no name of a rule"),
        ([NAME, CODE, "memories", "--reads", "sh"], "there is no ldlm_lint/rules/memories.py"),
    ],
    ids=["name", "code", "family", "unknown family", "letter", "spelling", "file"],
)
def test_what_cannot_be_a_rule_is_refused_and_nothing_is_written(arguments, reason, unchanged):
    before = state(unchanged)
    done = new_rule(unchanged, *arguments)
    assert done.returncode == 2
    assert reason in done.stderr
    assert state(unchanged) == before


def test_a_rule_is_not_declared_twice(tree):
    assert new_rule(tree, NAME, CODE).returncode == 0
    again = new_rule(tree, NAME, "W7598")
    assert again.returncode == 2
    assert f"{NAME} is the name, or an old name, of {NAME} ({CODE})" in again.stderr
    (tree / "tests" / "fixtures" / "some-other-name").mkdir()
    assert "tests/fixtures/some-other-name is there already" in new_rule(tree, "some-other-name", "W7598").stderr
