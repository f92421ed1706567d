"""A command loads what it needs: nothing of the linter to show a run again, no reader of scripts for a Python file."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from pathlib import Path

import pytest

from ldlm_lint.project import QUESTIONS, questions

HEAVY = ("torch", "pylint", "rich", "bashlex", "tree_sitter", "pygls", "lsprotocol", "yaml", "tensorboard", "ldlm_lint.probe", "ldlm_lint.monitor")
LINTER = ("astroid", "pylint", "packaging", "pathspec", "ldlm_lint.rules", "ldlm_lint.engine", "ldlm_lint.checkers", "argparse")
PLAIN = "from datetime import timedelta\n\nimport torch.distributed as dist\n\ndist.init_process_group(\"nccl\", timeout=timedelta(days=10))\n"


def loaded(code: str, *words: str) -> set[str]:
    """The modules that are loaded after some code."""
    tail = "\nimport json\nprint(json.dumps(list(sys.modules)), file=sys.__stdout__)"
    run = subprocess.run([sys.executable, "-c", f"import io, sys\n{code}{tail}", *words], capture_output=True, text=True, check=True)
    return set(json.loads(run.stdout))


@pytest.mark.parametrize("warm", [False, True], ids=["first", "again"])
def test_what_a_check_loads(tmp_path: Path, warm: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LDLM_LINT_CACHE_DIR", str(tmp_path / "cache"))
    (tmp_path / "plain.py").write_text(PLAIN)
    run = "sys.stdout = io.StringIO()\nfrom ldlm_lint.entry import run\nrun()"
    words = (str(tmp_path / "plain.py"),)
    modules = loaded(run, *words)
    assert "ldlm_lint.engine" in modules
    if warm:
        modules = loaded(run, *words)
        assert modules.isdisjoint(LINTER)
    assert modules.isdisjoint(HEAVY)


def test_what_is_asked_before_there_is_a_tree_loads_no_trees() -> None:
    assert loaded("import ldlm_lint.projects, ldlm_lint.linting").isdisjoint({"astroid", "ldlm_lint.python.flow", *HEAVY})


SAVES_IN_A_LOOP = """\
import torch


def train(model, loader, optimizer, folder):
    step = 0
    for batch in loader:
        model(batch.cuda()).mean().backward()
        optimizer.step()
        step += 1
        torch.save(model.state_dict(), str(folder / f"{step}.pt"))
"""


def test_astroid_paints_no_picture_of_the_builtins(tmp_path: Path) -> None:
    # That takes 0.1 s and 12 MB, and happens where a builtin's name is looked up by astroid's own means.
    (tmp_path / "train.py").write_text(SAVES_IN_A_LOOP)
    run = (
        "import io, sys\nfrom astroid.manager import AstroidManager\nfrom ldlm_lint.cli import main\nsys.stdout = io.StringIO()\n"
        "code = main(['check', '--no-cache', sys.argv[1]])\nsys.exit(9 if 'builtins' in AstroidManager().astroid_cache else code)"
    )
    assert subprocess.run([sys.executable, "-c", run, str(tmp_path)], check=False).returncode == 1


def test_every_question_is_in_its_room() -> None:
    for room, kinds in questions._ROOMS.items():
        assert set(importlib.import_module(f"{questions.__name__}.{room}").QUESTIONS) == set(kinds)
    assert len(QUESTIONS) == sum(map(len, questions._ROOMS.values()))
    with pytest.raises(KeyError):
        QUESTIONS["unheard-of"]
    rooms = {path.stem for path in Path(questions.__file__).parent.glob("*.py")} - {"__init__", "base"}
    assert {room for room in rooms if hasattr(importlib.import_module(f"{questions.__name__}.{room}"), "QUESTIONS")} == {*questions._ROOMS}


ENDING = """
import atexit, sys
from ldlm_lint.entry import main
atexit.register(print, "at exit")
sys.argv = ["ldlm-lint", *sys.argv[1:]]
done = None
{before}
main()
print("went on")
done and done.set()
"""


@pytest.mark.parametrize(
    "before",
    ["", "sys.setprofile(lambda *_: None)", "import threading; done = threading.Event(); threading.Thread(target=done.wait).start()"],
    ids=["alone", "profiled", "with-a-thread"],
)
def test_the_process_ends_with_the_command_unless_somebody_waits(tmp_path: Path, before: str) -> None:
    (tmp_path / "plain.py").write_text(PLAIN)
    words = ("--no-cache", "--format", "concise", str(tmp_path / "plain.py"))
    done = subprocess.run([sys.executable, "-c", ENDING.format(before=before), *words], capture_output=True, text=True, check=False)
    lines = done.stdout.split("\n")
    assert "plain.py:5:" in lines[0] and "at exit" in lines and done.stderr == ""
    # The code of a process that goes on is that of the caller.
    assert ("went on" in lines, done.returncode) == ((True, 0) if before else (False, 1))


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
def test_a_report_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "plain.py").write_text(PLAIN)
    with open("/dev/full", "w") as full:
        run = subprocess.run([sys.executable, "-m", "ldlm_lint", "--no-cache", str(tmp_path)], stdout=full, stderr=subprocess.PIPE, check=False)
    assert run.returncode not in (0, 1) and run.stderr
