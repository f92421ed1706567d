"""Code that is not a script's own: strings for other shells, Python in here-documents, commands for functions."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from collected import for_every

from ldlm_lint import engine
from ldlm_lint.checkers.scripts.lint import lint
from ldlm_lint.config import Config
from ldlm_lint.model import Applicability, Edit, Finding, Fix, Span
from ldlm_lint.rules import ALL
from ldlm_lint.shell import stand_ins
from ldlm_lint.shell.launch_code import codes
from ldlm_lint.shell.scanner import scan
from ldlm_lint.source import Kind, Source

OPTIONS = Config(options={option.name: option.default for rule in ALL for option in rule.options}).facts
BLOCKING = "TORCH_NCCL_BLOCKING_WAIT=1"


def read(script: str) -> Source:
    return Source.from_bytes("run.sh", script.encode(), Kind.SHELL)


def findings(script: str) -> list[tuple[str, str]]:
    """The rule and the text of each finding's place."""
    source = read(script)
    return [(one.rule, source.slice(one.span)) for one in found(source)]


def found(source: Source) -> tuple[Finding, ...]:
    return lint(source, OPTIONS).findings


FUNCTIONS = {
    'launch() { torchrun "$@"; }\nlaunch train.py --x 1': ["torchrun train.py --x 1"],
    'launch() { torchrun --n 2 "$1" --lr "${2}"; }\nlaunch a.py 1\nlaunch b.py 2': [
        "torchrun --n 2 a.py --lr 1",
        "torchrun --n 2 b.py --lr 2",
    ],
    'launch() { local s=$1; shift; torchrun x.py "$@"; }\nlaunch a b c': ["torchrun x.py b c"],
    'launch() { torchrun "${@:2}"; }\nlaunch a b.py': ["torchrun b.py"],
    'run() { echo "$@"; "$@"; }\nrun python train.py': ["python train.py"],
    'run() { echo "$@"; }\nrun python train.py': [],
    'run() { time "$@" || exit 1; }\nrun ls\nrun torchrun a.py': ["torchrun a.py"],
    'launch() { torchrun "$@"; }': ["torchrun $@"],
    'launch() { torchrun train.py; }\nlaunch a': ["torchrun train.py"],
}


@for_every(("script", "expected"), FUNCTIONS.items(), ids=FUNCTIONS)
def test_launches_through_functions(script: str, expected: list[str]) -> None:
    assert [" ".join(word.text for word in one.words) for one in scan(read(script)).launches] == expected


STRINGS = {
    "bash -c 'torchrun train.py --x 1'": ["torchrun train.py --x 1"],
    'srun bash -c "torchrun train.py --x 1"': ["torchrun train.py --x 1"],
    "nohup /bin/bash -lc 'cd a; python train.py' &": ["python train.py"],
    "bash -eo pipefail -c 'python train.py'": ["python train.py"],
    "docker run -it image sh -c 'python train.py'": ["python train.py"],
    'srun bash -c "torchrun --node_rank=\\$SLURM_PROCID train.py"': ["torchrun --node_rank=_$SLURM_PROCID train.py"],
    'bash -c "python train.py --name \\"a b\\" --x"': ["python train.py --name a b --x"],
    'bash -c "python train.py --name=\\"a b\\""': [],
    "ssh host 'torchrun train.py'": [],
    "ssh host bash -c 'torchrun train.py'": [],
    "echo bash -c 'torchrun train.py'": [],
    "bash run.sh -c 'torchrun train.py'": [],
    "bash -c \"$CMD\"": [],
}


@for_every(("script", "expected"), STRINGS.items(), ids=STRINGS)
def test_strings_for_other_shells(script: str, expected: list[str]) -> None:
    source = read(f"# é\n{script}\n")
    seen = [launch for code in codes(source, scan(source))[1:] for launch in code.script.launches]
    assert [" ".join(word.text for word in one.words) for one in seen] == expected
    assert all(source.slice(one.span)[:6] in ("torchr", "python") for one in seen)


def test_what_a_string_exports_is_seen_at_its_place() -> None:
    script = f"srun bash -c 'export {BLOCKING}; torchrun train.py'\n"
    assert findings(script) == [("nccl-blocking-wait", BLOCKING)]
    (one,) = found(read(script))
    assert one.fix is not None
    assert [read(script).slice(edit.span) for edit in one.fix.edits] == [f"export {BLOCKING}; "]


@pytest.mark.parametrize("head", ["srun bash -c '", "srun bash -c 'cd a\n  "])
def test_removing_the_first_statement_keeps_the_quote(head: str) -> None:
    script = f"{head}export {BLOCKING}\n  torchrun train.py'\n"
    source = read(script)
    (one,) = found(source)
    assert one.fix is not None
    for edit in one.fix.edits:
        assert "'" not in source.slice(edit.span)


def test_a_string_is_a_shell_of_its_own() -> None:
    inner = "srun bash -c 'torchrun train.py | tee log'\n"
    assert [rule for rule, _ in findings("set -o pipefail\n" + inner)] == ["pipeline-hides-failure"]
    assert findings("srun bash -c 'set -o pipefail; torchrun train.py | tee log'\n") == []
    assert findings("srun bash -o pipefail -c 'torchrun train.py | tee log'\n") == []
    source = read(inner)
    (one,) = found(source)
    assert one.fix is not None
    assert [(edit.span.start, edit.text) for edit in one.fix.edits] == [(inner.index("torchrun"), "set -o pipefail; ")]


LOADER = 'import torch\ntorch.save(model, "a")\nos.environ["NCCL_BLOCKING_WAIT"] = "1"\n'
SETTING = ("nccl-blocking-wait", 'os.environ["NCCL_BLOCKING_WAIT"] = "1"')


def told_of_project(script: str) -> list[tuple[str, str]]:
    """The same for a project that has the script alone: Python in it is a program of the project."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder).resolve()
        (root / "pyproject.toml").write_text("")
        (root / "run.sh").write_bytes(script.encode())
        report = engine.run([root], Config.load(root), base=root)
        source = read(script)
        return [(one.rule, source.slice(one.span)) for one in report.findings]


PYTHON = {
    "python - <<'EOF'\nimport os\n{}EOF": True,
    "python3 <<EOF\nimport os\n{}EOF": True,
    "srun python -u - <<\"EOF\" | tee log\nimport os\n{}EOF": True,
    "python <<EOF\nimport os\nx = '$HOME'\nn = $N\n{}EOF": True,
    "python <<EOF\nimport os\n$CODE\n{}EOF": False,
    "python <<EOF\nimport os\nn = $(cat <<'X'\n1\nX\n)\n{}EOF": False,
    "cat <<'EOF' > a.py\nimport os\n{}EOF": False,
    "cat > job.py <<EOF\nimport os\n{}EOF": False,
    "cat > job.py <<'EOF'\nimport os\n{}EOF\ntorchrun job.py": True,
    "tee ./job.py <<'EOF' > log\nimport os\n{}EOF\npython job.py": True,
    "cat >> job.py <<'EOF'\nimport os\n{}EOF\ntorchrun job.py": False,
    "torchrun job.py\ncat > job.py <<'EOF'\nimport os\n{}EOF": False,
    "python train.py <<'EOF'\nimport os\n{}EOF": False,
    "python -m train <<'EOF'\nimport os\n{}EOF": False,
    "ssh host python <<'EOF'\nimport os\n{}EOF": False,
    "tee a.py <<'EOF'\nimport os\n{}EOF": False,
    "python -c 'import os\n{}'": True,
    "python -c \"import os\n$X\n{}\"": False,
    "python - <<'EOF'\nimport os\nif (\n{}EOF": False,
}


@for_every(("script", "seen"), PYTHON.items(), ids=PYTHON)
def test_python_in_a_script(script: str, seen: bool) -> None:
    code = LOADER.replace('"', '\\"') if 'c "' in script else LOADER
    assert (SETTING in told_of_project("# é\n" + script.replace("{}", code) + "\n")) is seen
    assert "unparsable-file" not in {rule for rule, _ in findings(script.replace("{}", code))}


def test_an_unknown_name_of_the_same_length_stands_for_what_the_shell_fills_in() -> None:
    filled = stand_ins.filled(b'x = f($A, "a/$B", ${C:-1}, `date`)  # $D\n')
    assert filled is not None
    assert filled.data == b"x = f(_A, ______, _______, ______)  # _D\n"
    assert filled.written == {"_A": "$A", "______": "…", "_______": "${C:-1}", "_D": "$D"}
    assert stand_ins.filled(b"x = 1\n$MORE\n") is None
    assert stand_ins.filled(b"x = ${A\n") is None


def test_a_fix_writes_nothing_that_the_shell_would_fill_in() -> None:
    place = Span("run.sh", 0, 1)
    for text in ("f(_A)", "f($A)", "`f`"):
        finding = Finding("x", "W1", place, (("call", "f(_A, _B)"),), fix=Fix("t", (Edit(place, text),), Applicability.SAFE))
        shown = stand_ins.as_written(finding, {"_A": "$A"})
        assert shown.fix is None
        assert shown.args == (("call", "f($A, _B)"),)


def test_a_fix_that_would_end_the_string_is_not_offered() -> None:
    script = "python -c 'import os\nos.environ[\"NCCL_BLOCKING_WAIT\"] = \"1\"'\n"
    assert all("'" not in edit.text for one in found(read(script)) if one.fix for edit in one.fix.edits)


def test_a_script_that_is_written_is_data() -> None:
    assert findings(f"cat > job.sbatch <<EOF\nexport {BLOCKING}\ntorchrun train.py | tee log\nEOF\nsbatch job.sbatch\n") == []
    assert findings(f"sed -i 's/export A/export {BLOCKING}/' x.sh\n") == []
    assert findings(f"eval \"$(echo export {BLOCKING})\"\n") == []


def test_a_variable_that_is_unset_before_the_launch_is_not_in_force() -> None:
    assert findings(f"export {BLOCKING}\npython prepare.py\ntorchrun train.py\nunset TORCH_NCCL_BLOCKING_WAIT\n")
    assert findings(f"export {BLOCKING}\nunset TORCH_NCCL_BLOCKING_WAIT\ntorchrun train.py\n") == []


def test_a_string_that_is_evaluated_may_hold_quotes_that_end_and_begin_it() -> None:
    text = 'cmd="NCCL_TREE_THRESHOLD=0 torchrun train.py --schedule "LE" --lr 1"\neval ${cmd}\n'
    source = Source.from_bytes("/run.sh", text.encode(), Kind.SHELL)
    inner = codes(source, scan(source))[1]
    assert [one.name for one in inner.script.assignments] == ["NCCL_TREE_THRESHOLD"]
    assert [word.text for word in inner.script.launches[0].words][-3:] == ["LE", "--lr", "1"]
