"""What surrounds a launch: the scripts that call it, their arguments and variables, containers and schedulers."""

from __future__ import annotations

from collected import for_every
from launched import ROOT, programs


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


@for_every(
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
