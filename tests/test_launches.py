"""The launches of a project: which file runs, and what it is given."""

from __future__ import annotations

import pytest
from collected import for_every
from launched import ROOT, entry, programs


def given(script: str) -> dict[str, list[str] | None]:
    """The arguments of the one launch of a script, by name."""
    (program,) = programs({"run.sh": script, "train.py": ""})
    return {
        one.shown or "positional": None if one.values is None else [value.text for value in one.values]
        for one in program.arguments
    }


ENTRIES = {
    "beside the script": ("python train.py", ["train.py"], "run.sh", "train.py"),
    "of the root, from a folder of scripts": ("python train.py", ["train.py"], "scripts/run.sh", "train.py"),
    "between the script and the root": ("python train.py", ["a/train.py"], "a/scripts/b/run.sh", "a/train.py"),
    "the nearest of several": ("python train.py", ["train.py", "a/train.py"], "a/run.sh", "a/train.py"),
    "below a folder": ("python src/train.py", ["src/train.py"], "scripts/run.sh", "src/train.py"),
    "upwards": ("python ../train.py", ["train.py"], "scripts/run.sh", "train.py"),
    "after cd": ("cd src\npython train.py", ["train.py", "src/train.py"], "run.sh", "src/train.py"),
    "after cd to its own folder": (
        'cd "$(dirname "$0")"\npython train.py',
        ["train.py", "a/train.py"],
        "a/run.sh",
        "a/train.py",
    ),
    "after cd to the folder above": (
        'cd "$(dirname "$0")/.."\npython train.py',
        ["train.py", "a/train.py"],
        "a/run.sh",
        "train.py",
    ),
    "after cd to an unknown folder": ("cd $HOME/x\npython train.py", ["train.py"], "run.sh", "train.py"),
    "cd behind the launch": ("python train.py\ncd src", ["train.py", "src/train.py"], "run.sh", "train.py"),
    "of the script's own folder": (
        'D="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"\npython $D/train.py',
        ["train.py", "a/train.py"],
        "a/run.sh",
        "a/train.py",
    ),
    "of the folder above": (
        'D="$( cd "$( dirname "${BASH_SOURCE[0]}" )/.." && pwd )"\npython "$D/train.py"',
        ["train.py", "a/train.py"],
        "a/run.sh",
        "train.py",
    ),
    "two folders up": (
        'R=$(dirname $(dirname $(realpath "$0")))\npython $R/train.py',
        ["train.py", "a/train.py"],
        "a/run.sh",
        "train.py",
    ),
    "of the top of the repository": (
        "R=$(git rev-parse --show-toplevel)\npython $R/src/t.py",
        ["src/t.py"],
        "a/run.sh",
        "src/t.py",
    ),
    "in a substitution": ('python $(dirname "$0")/train.py', ["train.py", "a/train.py"], "a/run.sh", "a/train.py"),
    "of the working directory": ('python "$(pwd)/train.py"', ["train.py"], "scripts/run.sh", None),
    "in a variable": ("SCRIPT=src/train.py\npython $SCRIPT", ["src/train.py"], "run.sh", "src/train.py"),
    "composed": ("N=train\npython src/${N}.py", ["src/train.py"], "run.sh", "src/train.py"),
    "one of two": ("if x; then S=a.py; else S=b.py; fi\npython $S", ["a.py", "b.py"], "run.sh", None),
    "behind an unknown folder, alone of its name": (
        "python $CODE/tools/train.py",
        ["x/tools/train.py"],
        "run.sh",
        "x/tools/train.py",
    ),
    "behind an unknown folder, twice": ("python $CODE/train.py", ["x/train.py", "y/train.py"], "run.sh", None),
    "of another machine": ("python /home/me/p/tools/train.py", ["tools/train.py"], "run.sh", "tools/train.py"),
    "of another project": ("python /opt/other/train.py", ["train.py"], "run.sh", None),
    "unknown": ("python $1", ["train.py"], "run.sh", None),
    "a module": ("python -m pkg.train", ["pkg/__init__.py", "pkg/train.py"], "scripts/run.sh", "pkg/train.py"),
    "a module below src": ("torchrun -m pkg.train", ["src/pkg/train.py"], "scripts/run.sh", "src/pkg/train.py"),
    "a module after cd": ("cd src\npython -m train", ["src/train.py", "train.py"], "run.sh", "src/train.py"),
    "a package": ("python -m pkg", ["pkg/__init__.py", "pkg/__main__.py"], "run.sh", "pkg/__main__.py"),
    "a package that does not run": ("python -m pkg", ["pkg/__init__.py"], "run.sh", None),
    "a foreign module": ("python -m other.train", ["pkg/train.py"], "run.sh", None),
    "options and module in one variable": (
        'E="-m pkg.train"\ntorchrun --nproc_per_node 2 $E',
        ["pkg/train.py"],
        "run.sh",
        "pkg/train.py",
    ),
    "through srun": ("srun -N 2 torchrun --nproc_per_node 8 train.py", ["train.py"], "job.slurm", "train.py"),
    "a launcher in a variable": ('L="torchrun --nproc_per_node 8"\n$L train.py', ["train.py"], "run.sh", "train.py"),
    "an interpreter in a variable": ("PY=/opt/bin/python3\n$PY train.py", ["train.py"], "run.sh", "train.py"),
    "in a command that is built": ('CMD="torchrun train.py --x 1"\neval $CMD', ["train.py"], "run.sh", "train.py"),
    "behind options with a substitution": (
        'A="--nnodes 1 --master_port $((RANDOM + 1))"\ntorchrun $A --node_rank $(hostname -s | tail -c 2) train.py',
        ["train.py"],
        "run.sh",
        "train.py",
    ),
    "from a heredoc": (
        "read -r -d '' ARGS <<EOF\npkg.train \\\n  --lr 1\nEOF\ndeepspeed --module $ARGS\n",
        ["pkg/train.py"],
        "run.sh",
        "pkg/train.py",
    ),
}


@for_every(("script", "files", "at", "expected"), ENTRIES.values(), ids=ENTRIES)
def test_entries(script: str, files: list[str], at: str, expected: str | None) -> None:
    assert entry(script, *files, at=at) == expected


@pytest.mark.parametrize(
    "script",
    ["python -c 'x'", "python - <<E\nx\nE", "srun hostname", "python -m pip install .", "echo python train.py"],
)
def test_what_starts_no_program(script: str) -> None:
    assert programs({"run.sh": script, "train.py": ""}) == ()


def test_a_command_that_the_project_installs() -> None:
    files = {
        "run.sh": "fairseq-train data",
        "pkg/cli.py": "",
        "setup.py": "entry_points={'console_scripts': ['fairseq-train = pkg.cli:main']}",
    }
    assert programs(files)[0].entry == f"{ROOT}/pkg/cli.py"


ARGUMENTS = {
    "--lr 1 --name=x --flag": {"--lr": ["1"], "--name": ["x"], "--flag": []},
    "--a -1 --b -x": {"--a": ["-1"], "--b": [], "-x": []},
    "a.b=1 +c=2 ++d.e=3 ~f g=": {"a.b": ["1"], "+c": ["2"], "++d.e": ["3"], "~f": [], "g": [""]},
    "--multirun a=1 --cfg job x.y=2": {"--multirun": [], "a": ["1"], "--cfg": ["job"], "x.y": ["2"]},
    "--set x.y=2": {"--set": [], "x.y": ["2"]},
    "config.yaml": {"positional": ["config.yaml"]},
    '--x "$UNKNOWN" --y ${Z:-4}': {"--x": None, "--y": ["4"]},
}


@for_every(("written", "expected"), ARGUMENTS.items(), ids=ARGUMENTS)
def test_arguments(written: str, expected: dict[str, list[str] | None]) -> None:
    assert given(f"python train.py {written}") == expected


def test_keys_are_those_of_the_program() -> None:
    (program,) = programs({"run.sh": "python train.py --data.num-workers 4 data/sub=x model@m=y", "train.py": ""})
    assert [one.keys for one in program.arguments] == [("data", "num_workers"), ("data", "sub"), ("model",)]


def test_values_are_those_of_the_script() -> None:
    script = 'W=${W:-16}\nARGS=(--lr 1 --workers "$W")\nB=4\ntorchrun --nproc_per_node 8 train.py "${ARGS[@]}" --out runs/$B\n'
    (program,) = programs({"run.sh": script, "train.py": ""})
    workers, out = program.given("workers"), program.given("out")
    assert workers is not None and out is not None and workers.values is not None
    assert [(one.text, one.note != "") for one in workers.values] == [("16", True)]
    assert script[workers.values[0].span.start : workers.values[0].span.end] == "W=${W:-16}"
    assert out.texts == {"runs/4"}
    assert program.complete


def test_the_last_argument_counts() -> None:
    (program,) = programs({"run.sh": "python train.py --lr 1 --lr 2", "train.py": ""})
    found = program.given("lr")
    assert found is not None and found.texts == {"2"}
    assert [one.texts for one in reversed(program.arguments) if one.keys == ("lr",)] == [{"2"}, {"1"}]


@pytest.mark.parametrize("more", ['"$@"', "$EXTRA", '"${UNKNOWN[@]}"', "$(cat args)"])
def test_unknown_lists_of_arguments_are_told(more: str) -> None:
    (program,) = programs({"run.sh": f"python train.py --lr 1 {more}", "train.py": ""})
    assert not program.complete and program.given("lr") is not None


def test_numbers_are_looked_up() -> None:
    (program,) = programs(
        {"run.sh": "G=8\nN=${N:-2}\nsrun -N $N torchrun --nproc_per_node=$G train.py", "train.py": ""}
    )
    assert (program.launchers, program.processes, program.nodes) == (("srun", "torchrun"), "8", "2")
