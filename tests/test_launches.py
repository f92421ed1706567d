"""The launches of a project: which file runs, what it is given, which configurations it reads, and what wins."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping

import pytest

from ldlm_lint.configs.detect import config_kind
from ldlm_lint.project.index import Project
from ldlm_lint.project.launches import Launches, Program
from ldlm_lint.source import Kind

ROOT = "/p"
HYDRA = """
import hydra

@hydra.main(config_path="configs", config_name="base", version_base="1.3")
def main(cfg):
    pass
"""


def launches(files: Mapping[str, str]) -> Launches:
    """The launches of a project whose files are given by their paths below its root."""
    from pathlib import Path

    overlay = {f"{ROOT}/{path}": textwrap.dedent(text).encode() for path, text in files.items()}
    python = [path for path in overlay if path.endswith(".py")]
    kinds: dict[str, Kind] = {}
    for path in overlay.keys() - set(python):
        kind = Kind.SHELL if path.endswith((".sh", ".slurm")) else config_kind(Path(path))
        if kind is not None:
            kinds[path] = kind
    return Launches(Project(ROOT, python, overlay, others=kinds))


def programs(files: Mapping[str, str]) -> tuple[Program, ...]:
    return launches(files).programs


def entry(script: str, *files: str, at: str = "run.sh") -> str | None:
    """The entry of the one launch of a script, below the root."""
    (program,) = programs({at: script, **dict.fromkeys(files, "")})
    return program.entry and program.entry.removeprefix(f"{ROOT}/")


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


@pytest.mark.parametrize(("script", "files", "at", "expected"), ENTRIES.values(), ids=ENTRIES)
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


@pytest.mark.parametrize(("written", "expected"), ARGUMENTS.items(), ids=ARGUMENTS)
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


def test_scripts_pass_their_arguments_on() -> None:
    files = {
        "train.py": "",
        "scripts/train.sh": 'CONFIG=$1\nshift\ntorchrun --nproc_per_node 8 train.py --config $CONFIG --seed ${3:-7} "$@"\n',
        "a.sh": "export NCCL_DEBUG=INFO\nbash scripts/train.sh configs/a.yaml --lr 1\n",
        "b.sh": 'L=2\nbash "$(dirname "$0")/scripts/train.sh" configs/b.yaml --lr $L\n',
        "configs/a.yaml": "x: 1\n",
        "configs/b.yaml": "x: 2\n",
    }
    first, second = programs(files)
    assert [one.path for one in (first, second)] == [f"{ROOT}/scripts/train.sh"] * 2
    assert [len(one.via) for one in (first, second)] == [1, 1]
    assert [one.via[0].path for one in (first, second)] == [f"{ROOT}/a.sh", f"{ROOT}/b.sh"]
    for program, config, rate in ((first, "a", "1"), (second, "b", "2")):
        found = program.given("lr")
        assert found is not None and found.texts == {rate} and found.span.path == program.via[0].path
        assert [use.path for use in program.configs] == [f"{ROOT}/configs/{config}.yaml"]
        assert program.complete
        assert [one.name for one in program.arguments] == ["config", "seed", "lr"]
        seed = program.given("seed")
        assert seed is not None and seed.texts == {"7"}
    assert first.exported("NCCL_DEBUG") is not None and second.exported("NCCL_DEBUG") is None


def test_scripts_that_call_each_other_end() -> None:
    files = {"a.sh": "bash b.sh 1\npython train.py $1", "b.sh": "bash a.sh 2\npython train.py $1", "train.py": ""}
    assert {one.path for one in programs(files)} == {f"{ROOT}/a.sh", f"{ROOT}/b.sh"}


def test_the_environment_is_what_was_set_before() -> None:
    script = "export A=1\nB=2\nexport C=${C:-3}\nD=4 torchrun train.py\nexport E=5\nF=6 other\n"
    (program,) = programs({"run.sh": script, "train.py": ""})
    assert {one.keys[0]: one.texts for one in program.environment} == {"A": {"1"}, "C": {"3"}, "D": {"4"}}
    exported = program.exported("A")
    assert exported is not None and exported.texts == {"1"}


def configs(script: str, **files: str) -> list[tuple[str, str]]:
    named = {path.replace("__", "/").replace("_DOT_", "."): text for path, text in files.items()}
    (program,) = programs({"scripts/run.sh": script, **named})
    return [(use.path.removeprefix(f"{ROOT}/"), use.why) for use in program.configs]


def test_configurations_on_the_command_line() -> None:
    files = {
        "train_DOT_py": "",
        "configs__a_DOT_yaml": "x: 1",
        "ds_DOT_json": "{}",
        "acc_DOT_yaml": "x: 1",
        "data_DOT_json": "[]",
    }
    script = "accelerate launch --config_file acc.yaml train.py --config configs/a.yaml --deepspeed ds.json --train_file data.json"
    assert configs(script, **files) == [
        ("acc.yaml", "--config_file"),
        ("configs/a.yaml", "--config"),
        ("ds.json", "--deepspeed"),
    ]
    assert configs("python train.py configs/a.yaml", **files) == [("configs/a.yaml", "named on the command line")]
    assert configs("python train.py data.json", **files) == []
    assert configs("python train.py --config $UNKNOWN", **files) == []
    assert configs("C=a\npython train.py --config configs/$C.yaml", **files) == [("configs/a.yaml", "--config")]


def test_hydra_names_the_primary_config() -> None:
    files = {
        "src__train_DOT_py": HYDRA,
        "src__configs__base_DOT_yaml": "x: 1",
        "src__configs__big_DOT_yaml": "x: 2",
        "conf__o_DOT_yaml": "",
    }
    assert configs("python src/train.py a.b=1", **files) == [("src/configs/base.yaml", "hydra.main")]
    assert configs("python src/train.py --config-name big", **files) == [("src/configs/big.yaml", "--config-name")]
    assert configs("python src/train.py --config-name=big.yaml", **files) == [("src/configs/big.yaml", "--config-name")]
    assert configs("python src/train.py --config-path ../conf -cn o", **files) == [("conf/o.yaml", "-cn")]
    assert configs("python src/train.py --config-name $C", **files) == []
    broken = {**files, "src__train_DOT_py": HYDRA + "if x:\ny = 1\n"}
    assert configs("python src/train.py", **broken) == [("src/configs/base.yaml", "hydra.main")]
    commented = {**files, "src__train_DOT_py": HYDRA.replace("\n", "\n# ")}
    assert configs("python src/train.py", **commented) == []


def test_programs_have_configurations_of_their_own() -> None:
    parser = (
        'import argparse, yaml\np = argparse.ArgumentParser()\np.add_argument("--config", default="configs/a.yaml")\n'
    )
    files = {"train_DOT_py": parser, "configs__a_DOT_yaml": "x: 1", "configs__b_DOT_yaml": "x: 1"}
    assert configs("python train.py", **files) == [("configs/a.yaml", "the default of --config")]
    assert configs("python train.py --config configs/b.yaml", **files) == [("configs/b.yaml", "--config")]
    loads = 'import yaml\ncfg = yaml.safe_load(open("configs/b.yaml"))\nopen("configs/a.yaml", "w")\n'
    assert configs("python train.py", **{**files, "train_DOT_py": loads}) == [
        ("configs/b.yaml", "loaded by the program")
    ]
    imported = {**files, "train_DOT_py": "import options", "options_DOT_py": parser}
    assert configs("python train.py", **imported) == [("configs/a.yaml", "the default of --config")]


def value(
    script: str, *keys: str, entry: str = HYDRA, config: str = "data:\n  num_workers: 4\nx: 1\n"
) -> list[tuple[object, str]] | None:
    """What a key comes to in the one launch of a script, the winner first."""
    found = launches({"run.sh": script, "train.py": entry, "configs/base.yaml": config})
    effective = found.value_of(found.programs[0], *keys)
    return None if effective is None else [(one.values, one.source) for one in (effective.winner, *effective.shadowed)]


def test_arguments_win_over_configurations() -> None:
    config = (("4",), "config")
    assert value("python train.py", "data", "num_workers") == [config]
    assert value("python train.py data.num_workers=8", "data", "num_workers") == [(("8",), "argument"), config]
    assert value("python train.py data.num_workers=8 ++data.num_workers=2", "data", "num_workers") == [
        (("2",), "argument"),
        (("8",), "argument"),
        config,
    ]
    assert value("python train.py data.num_workers=$W", "data", "num_workers") == [(None, "argument"), config]
    assert value("python train.py num_workers=8", "data", "num_workers") == [config]
    assert value("python train.py", "data", "pin_memory") is None
    assert value("python train.py ~data.num_workers", "data", "num_workers") == [((), "argument"), config]


def test_flags_have_a_meaning() -> None:
    assert value("python train.py --fused", "fused", entry="") == [(("true",), "argument")]
    assert value("python train.py --fused --no-fused", "fused", entry="") == [
        (("false",), "argument"),
        (("true",), "argument"),
    ]


def test_of_two_files_that_differ_none_is_known_to_win() -> None:
    files = {
        "run.sh": "python train.py --config a.yaml --cfg b.yaml",
        "train.py": "",
        "a.yaml": "x: 1\ny: 3",
        "b.yaml": "x: 2\ny: 3",
    }
    found = launches(files)
    one, both = (found.value_of(found.programs[0], key) for key in "xy")
    assert one is not None and one.winner.values is None
    assert both is not None and both.winner.values == ("3",)


def test_launches_are_found_by_entry_and_configuration() -> None:
    files = {
        "run.sh": "python train.py --config a.yaml\npython other.py",
        "train.py": "import lib",
        "other.py": "",
        "lib.py": "",
        "a.yaml": "x: 1",
    }
    found = launches(files)
    assert [one.entry_text for one in found.of_config(f"{ROOT}/a.yaml")] == ["train.py"]
    assert [one.entry_text for one in found.programs if one.entry == f"{ROOT}/other.py"] == ["other.py"]
    assert [one.entry_text for one in found.running(f"{ROOT}/lib.py")] == ["train.py"]


def test_nothing_outside_of_the_project_is_looked_at() -> None:
    assert entry("python ../train.py", "x.py") is None
    assert configs("python train.py --config ../../etc/a.yaml", train_DOT_py="", a_DOT_yaml="x: 1") == []
    assert configs("python train.py --config-path /etc", train_DOT_py=HYDRA, a_DOT_yaml="x: 1") == []


def test_numbers_are_looked_up() -> None:
    (program,) = programs(
        {"run.sh": "G=8\nN=${N:-2}\nsrun -N $N torchrun --nproc_per_node=$G train.py", "train.py": ""}
    )
    assert (program.launchers, program.processes, program.nodes) == (("srun", "torchrun"), "8", "2")


def test_commands_of_containers() -> None:
    compose = "services:\n  train:\n    image: x\n    command: torchrun --nproc_per_node 4 src/train.py --config configs/a.yaml\n"
    pod = 'kind: Pod\nspec:\n  containers:\n    - name: x\n      command: ["bash", "-c", "cd src && python train.py --workers 4"]\n'
    image = 'FROM x\nRUN python setup.py install\nWORKDIR /app\nCMD ["python", "-m", "src.train", "--lr", "1"]\n'
    ci = "on: push\njobs:\n  a:\n    runs-on: x\n    steps:\n      - run: python src/train.py\n"
    files = {
        "src/train.py": "",
        "setup.py": "",
        "configs/a.yaml": "x: 1",
        "compose.yaml": compose,
        "pod.yaml": pod,
        "Dockerfile": image,
    }
    found = {one.path: one for one in programs({**files, ".github/workflows/a.yml": ci})}
    assert {path.removeprefix(f"{ROOT}/") for path in found} == {"compose.yaml", "pod.yaml", "Dockerfile"}
    assert {one.entry for one in found.values()} == {f"{ROOT}/src/train.py"}
    assert [use.path for use in found[f"{ROOT}/compose.yaml"].configs] == [f"{ROOT}/configs/a.yaml"]
    workers = found[f"{ROOT}/pod.yaml"].given("workers")
    assert workers is not None and pod[workers.span.start : workers.span.end] == "--workers 4"


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ('python train.py "$@"', ["a", "--x"]),
        ('shift\npython train.py "$@"', ["--x"]),
        ('python train.py "${@:2}"', ["--x"]),
        ('while [ $# -gt 1 ]; do shift; done\npython train.py "$@"', None),
        ('set -- b\npython train.py "$@"', None),
        ("python train.py $2", ["--x"]),
        ("python train.py --n ${1:-b}", ["--n"]),
    ],
)
def test_which_arguments_of_a_script_are_left(body: str, expected: list[str] | None) -> None:
    (program,) = programs({"all.sh": "bash run.sh a --x", "run.sh": body, "train.py": ""})
    if expected is None:
        assert (program.arguments, program.complete) == ((), False)
        return
    assert [one.shown or "".join(one.texts or ()) for one in program.arguments] == expected


def test_parameters_of_a_function_are_not_those_of_the_script() -> None:
    body = 'f() { python train.py --x "$1"; }\nf 3\n'
    (program,) = programs({"all.sh": "bash run.sh a", "run.sh": body, "train.py": ""})
    found = program.given("x")
    assert found is not None and found.texts in (None, {"3"})


def test_what_a_sourced_file_exports_is_in_the_environment() -> None:
    files = {
        "common.sh": "export A=1\nB=2\nWORKERS=8\nN=4 other\n",
        "late.sh": "export L=1\n",
        "run.sh": "export A=0\nsource common.sh\nexport C=3\npython train.py --workers $WORKERS\nsource late.sh\n",
        "train.py": "",
    }
    (program,) = programs(files)
    assert [(one.keys[0], one.texts) for one in program.environment] == [("A", {"0"}), ("A", {"1"}), ("C", {"3"})]
    workers = program.given("workers")
    assert workers is not None and workers.values is not None
    assert workers.values[0].span.path == f"{ROOT}/common.sh"


def test_directives_of_a_scheduler_and_options_of_a_starter_set_variables() -> None:
    script = "#!/bin/bash\n#SBATCH --export=ALL,A=1\nsrun --export=ALL,B=2 torchrun train.py\nsrun python train.py\n"
    first, second = programs({"job.slurm": script, "train.py": ""})
    assert {one.keys[0]: one.texts for one in first.environment} == {"A": {"1"}, "B": {"2"}}
    assert {one.keys[0]: one.texts for one in second.environment} == {"A": {"1"}}
