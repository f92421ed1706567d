"""The launch grammar over real-life command lines: launchers, entry, processes, and what reaches the program."""

from __future__ import annotations

import ast

import pytest
from collected import for_every
from hypothesis import given
from hypothesis import strategies as st

from ldlm_lint import tables
from ldlm_lint.model import Span
from ldlm_lint.shell.launch_code import codes
from ldlm_lint.shell.launch_entries import entry_of, is_distributed, is_training
from ldlm_lint.shell.launch_grammar import Call, Form, Invocation, call_of, read
from ldlm_lint.shell.launchers import launcher_of
from ldlm_lint.shell.scanner import scan
from ldlm_lint.shell.script import Launch, Word
from ldlm_lint.shell.words import read_command
from ldlm_lint.source import Kind, Source


def words(command: str) -> tuple[Word, ...]:
    lexed = read_command(command)
    assert lexed is not None, command
    return tuple(Word(one.text, Span("run.sh", one.start, one.end), one.literal) for one in lexed.words)


def launch(command: str) -> Launch:
    source = Source.from_bytes("run.sh", command.encode(), Kind.SHELL)
    (found,) = codes(source, scan(source))[0].script.launches
    return found


def taken_apart(command: str) -> tuple[str, str, str, str]:
    invocation = read(words(command))
    assert invocation is not None
    arguments = " ".join(word.text for word in invocation.arguments)
    return " ".join(invocation.launchers), invocation.form.value, invocation.entry_text, arguments


# command: launchers, form of the entry, entry, arguments
COMMANDS = {
    "python train.py --lr 1": ("python", "file", "train.py", "--lr 1"),
    "python3.11 -u -W ignore train.py a.b=1": ("python", "file", "train.py", "a.b=1"),
    "/opt/conda/bin/python -X faulthandler scripts/train.py": ("python", "file", "scripts/train.py", ""),
    "python -m pkg.train --lr 1": ("python", "module", "pkg.train", "--lr 1"),
    "python -um pkg.train": ("python", "module", "pkg.train", ""),
    "python -c 'import torch'": ("python", "code", "", ""),
    "python -": ("python", "code", "", ""),
    "python": ("python", "code", "", ""),
    "python -m pdb -c continue train.py --x": ("python", "file", "train.py", "--x"),
    "python -m debugpy --listen 5678 --wait-for-client -m pkg.train --x": ("python", "module", "pkg.train", "--x"),
    "python -m cProfile -o out.prof train.py": ("python", "file", "train.py", ""),
    "torchrun train.py": ("torchrun", "file", "train.py", ""),
    "torchrun --nproc_per_node=8 train.py --lr 1": ("torchrun", "file", "train.py", "--lr 1"),
    "torchrun --standalone --nproc-per-node 8 -m pkg.train": ("torchrun", "module", "pkg.train", ""),
    "torchrun --nnodes 1:4 --rdzv_backend c10d --rdzv_endpoint=h:1 --max_restarts=3 -r 3 t.py": (
        "torchrun",
        "file",
        "t.py",
        "",
    ),
    "torchrun --nproc 8 train.py": ("torchrun", "file", "train.py", ""),
    "torchrun --no 8 train.py": ("torchrun", "file", "train.py", ""),
    "torchrun --no x y": ("torchrun", "unknown", "", ""),
    "torchrun --nproc_per 8 train.py": ("torchrun", "file", "train.py", ""),
    "torchrun --no-python ./run.sh a": ("torchrun", "command", "./run.sh", "a"),
    "torchrun --new-option 3 train.py": ("torchrun", "file", "train.py", ""),
    "torchrun --new-option=x train.py": ("torchrun", "file", "train.py", ""),
    "torchrun --new-option train.py --x": ("torchrun", "file", "train.py", "--x"),
    "torchrun --new-option value other": ("torchrun", "unknown", "", ""),
    "torchrun --nproc_per_node=8": ("torchrun", "unknown", "", ""),
    "torchrun --nproc_per_node=8 \\ ": ("torchrun", "unknown", "", ""),
    "torchrun $DISTRIBUTED_ARGS train.py --x": ("torchrun", "file", "train.py", "--x"),
    'torchrun "${DISTRIBUTED_ARGS[@]}" train.py "$@"': ("torchrun", "file", "train.py", "$@"),
    "torchrun ${A[@]} -m pkg.train": ("torchrun", "module", "pkg.train", ""),
    'torchrun "$SCRIPT" --config other.py': ("torchrun", "file", "$SCRIPT", "--config other.py"),
    "torchrun $SCRIPT --config other.py": ("torchrun", "file", "$SCRIPT", "--config other.py"),
    'torchrun "${SCRIPT_DIR}/train.py"': ("torchrun", "file", "${SCRIPT_DIR}/train.py", ""),
    "torchrun -- train.py": ("torchrun", "file", "train.py", ""),
    "python -m torch.distributed.run --nproc_per_node 4 train.py": ("torch.distributed.run", "file", "train.py", ""),
    "python -m torch.distributed.launch --use_env --nproc_per_node=4 main.py -x": (
        "torch.distributed.launch",
        "file",
        "main.py",
        "-x",
    ),
    'python -u -m torch.distributed.launch --nproc_per_node="$N" --module pkg.main': (
        "torch.distributed.launch",
        "module",
        "pkg.main",
        "",
    ),
    "python .venv/bin/torchrun --nproc_per_node 2 train.py": ("torchrun", "file", "train.py", ""),
    "accelerate launch train.py": ("accelerate", "file", "train.py", ""),
    "accelerate launch --config_file acc.yaml --num-processes 8 train.py c.yaml": (
        "accelerate",
        "file",
        "train.py",
        "c.yaml",
    ),
    "accelerate launch --multi_gpu --mixed_precision bf16 -m pkg.train": ("accelerate", "module", "pkg.train", ""),
    "accelerate-launch --use_deepspeed train.py": ("accelerate", "file", "train.py", ""),
    "python -m accelerate.commands.launch --num_processes 2 train.py": ("accelerate", "file", "train.py", ""),
    "deepspeed train.py --deepspeed ds.json": ("deepspeed", "file", "train.py", "--deepspeed ds.json"),
    "deepspeed --include localhost:0,1 --master_port 1 train.py": ("deepspeed", "file", "train.py", ""),
    "deepspeed -H hosts --num_gpus=8 --module pkg.train --x": ("deepspeed", "module", "pkg.train", "--x"),
    "composer -n 8 train.py cfg.yaml": ("composer", "file", "train.py", "cfg.yaml"),
    "srun python train.py": ("srun python", "file", "train.py", ""),
    "srun -N 2 -n16 --gres=gpu:8 -l --kill-on-bad-exit=1 python -u t.py --x": ("srun python", "file", "t.py", "--x"),
    "srun --container-image img --container-mounts a:b torchrun --nproc_per_node 8 t.py": (
        "srun torchrun",
        "file",
        "t.py",
        "",
    ),
    "srun --export=ALL,A=1 env B=2 torchrun train.py": ("srun torchrun", "file", "train.py", ""),
    "srun ./train.py --x": ("srun python", "file", "./train.py", "--x"),
    "srun -l ${BIND} python train.py": ("srun python", "file", "train.py", ""),
    "srun $EXTRA -l torchrun train.py": ("srun torchrun", "file", "train.py", ""),
    "srun $CMD": ("srun", "command", "$CMD", ""),
    "mpirun -n 2 A=0 B=1 python train.py": ("mpirun python", "file", "train.py", ""),
    "srun hostname": ("srun", "command", "hostname", ""),
    "srun --site-option torchrun train.py": ("srun torchrun", "file", "train.py", ""),
    "srun --site-option 4 torchrun train.py": ("srun torchrun", "file", "train.py", ""),
    "srun -n 4 : -n 8 python train.py": ("srun python", "file", "train.py", ""),
    "mpirun -np 8 -x A=1 -x B -mca btl ^openib --allow-run-as-root python t.py": ("mpirun python", "file", "t.py", ""),
    "mpirun -n 4 -H a:2,b:2 --bind-to none -map-by slot python -m pkg.t": ("mpirun python", "module", "pkg.t", ""),
    "mpiexec -genv A 1 -ppn 4 python t.py": ("mpirun python", "file", "t.py", ""),
    "A=1 B=2 nohup python train.py": ("python", "file", "train.py", ""),
    "env -u A B=1 python train.py": ("python", "file", "train.py", ""),
    "nice -n 5 numactl --cpunodebind=0 -m 0 python train.py": ("python", "file", "train.py", ""),
    "timeout -k 5 1h torchrun train.py": ("torchrun", "file", "train.py", ""),
    "CUDA_VISIBLE_DEVICES=0 taskset -c 0-7 python train.py": ("python", "file", "train.py", ""),
    "uv run train.py --x": ("python", "file", "train.py", "--x"),
    "uv run --with torch --extra gpu torchrun --nproc_per_node 2 train.py": ("torchrun", "file", "train.py", ""),
    "poetry run python -m pkg.train": ("python", "module", "pkg.train", ""),
    "conda run -n env --no-capture-output python train.py": ("python", "file", "train.py", ""),
    "singularity exec --nv -B /data:/data image.sif python train.py": ("python", "file", "train.py", ""),
    "apptainer run --env A=1 image.sif torchrun train.py": ("torchrun", "file", "train.py", ""),
    "docker run --rm -it --gpus all -v $PWD:/w -w /w nvcr.io/x:1 torchrun t.py": ("torchrun", "file", "t.py", ""),
    "nsys profile -o out -t cuda,nvtx --force-overwrite true python train.py": ("python", "file", "train.py", ""),
    "ray job submit --address=a --working-dir . -- python3 -m pkg.main a.b=1": (
        "python",
        "module",
        "pkg.main",
        "a.b=1",
    ),
    "llamafactory-cli train sft.yaml": ("llamafactory-cli", "console", "llamafactory-cli", "sft.yaml"),
    "axolotl train a.yml --x": ("axolotl", "console", "axolotl", "a.yml --x"),
    "tune run --nproc_per_node 2 full_finetune_distributed --config c": (
        "tune",
        "console",
        "tune",
        "full_finetune_distributed --config c",
    ),
    "fairseq-train data-bin --arch transformer": (
        "fairseq-train",
        "console",
        "fairseq-train",
        "data-bin --arch transformer",
    ),
}


@for_every(("command", "expected"), COMMANDS.items(), ids=COMMANDS)
def test_commands(command: str, expected: tuple[str, str, str, str]) -> None:
    assert taken_apart(command) == expected


OTHER = (
    "echo torchrun train.py",
    "pip install deepspeed",
    "ls train.py",
    "accelerate config",
    "llamafactory-cli export x.yaml",
    "ssh host python train.py",
    "docker build -t x .",
    "ray job list",
)


@for_every("command", OTHER)
def test_commands_that_start_no_program(command: str) -> None:
    assert read(words(command)) is None


COUNTS = {
    "python train.py": (None, None),
    "torchrun --nproc_per_node=8 t.py": ("8", None),
    "torchrun --nnodes=$N --nproc-per-node $G t.py": ("$G", "$N"),
    "accelerate launch --num_processes 16 --num_machines 2 t.py": ("16", "2"),
    "deepspeed --include localhost:0,1 t.py": ("localhost:0,1", None),
    "deepspeed --num_nodes 2 --num_gpus 8 t.py": ("8", "2"),
    "srun -N2 --ntasks-per-node=8 python t.py": ("8", "2"),
    "srun -N 2 --ntasks-per-node=1 torchrun --nproc_per_node 8 t.py": ("8", "2"),
    "mpirun -np 4 python t.py": ("4", None),
}


@for_every(("command", "expected"), COUNTS.items(), ids=COUNTS)
def test_numbers_of_processes_and_nodes(command: str, expected: tuple[str | None, str | None]) -> None:
    invocation = read(words(command))
    assert isinstance(invocation, Invocation)
    assert (invocation.processes, invocation.nodes) == expected


CALLS = {
    "bash scripts/train.sh --x 1": ("scripts/train.sh", "--x 1"),
    "bash -eu scripts/train.sh": ("scripts/train.sh", ""),
    "./train.sh a b": ("./train.sh", "a b"),
    "sbatch -N 2 --gres=gpu:8 -J x job.slurm a": ("job.slurm", "a"),
    "sbatch --export=ALL,A=1 job.sh": ("job.sh", ""),
    "srun --ntasks=2 bash run.sh x": ("run.sh", "x"),
    "A=1 nohup bash run.sh": ("run.sh", ""),
    'bash "$DIR/run.sh" "$@"': ("$DIR/run.sh", "$@"),
}


@for_every(("command", "expected"), CALLS.items(), ids=CALLS)
def test_commands_that_run_scripts(command: str, expected: tuple[str, str]) -> None:
    call = call_of(words(command))
    assert isinstance(call, Call)
    assert (call.script.text, " ".join(word.text for word in call.arguments)) == expected


@pytest.mark.parametrize(
    "command", ["bash -c 'python train.py'", "cat run.sh", "sbatch --wrap='python t.py'", "bash", "python run.sh"]
)
def test_commands_that_run_no_script(command: str) -> None:
    assert call_of(words(command)) is None


OUTERMOST = {
    "srun torchrun train.py": "srun",
    "uv run train.py": "python",
    "uv pip install x": None,
    "docker run image python train.py": "python",
    "fairseq-train data": "fairseq-train",
    "trl chat": None,
}


@for_every(("command", "expected"), OUTERMOST.items(), ids=OUTERMOST)
def test_the_outermost_launcher(command: str, expected: str | None) -> None:
    assert launcher_of(command.split()) == expected


# command: entry as far as it is known, starts ranks, trains
ROLES = {
    "torchrun --nproc_per_node 8 train.py": ("train.py", True, True),
    "torchrun $ARGS tools/main.py": ("tools/main.py", True, True),
    "torchrun --nproc_per_node 8 tools/evaluate.py": ("tools/evaluate.py", True, False),
    "python main.py": ("main.py", False, True),
    "python main.py --eval": ("main.py", False, False),
    "python -m pkg.prepare_data": ("pkg.prepare_data", False, False),
    "python -m pkg.train": ("pkg.train", False, True),
    "srun torchrun run.py": ("run.py", True, True),
    "srun --unknown value thing train.py": ("", False, False),
    "python $SCRIPT": ("", False, False),
    "python ${DIR}/train.py": ("${DIR}/train.py", False, True),
    "fairseq-train data": ("fairseq-train", False, True),
    "python plot.py train.py": ("plot.py", False, False),
    "python -c 'import train.py'": ("", False, False),
}


@for_every(("command", "expected"), ROLES.items(), ids=ROLES)
def test_roles(command: str, expected: tuple[str, bool, bool]) -> None:
    found = launch(command)
    assert (entry_of(found), is_distributed(found), is_training(found)) == expected


def test_a_value_does_not_look_like_the_entry() -> None:
    assert taken_apart("torchrun --log_dir train.py main.py")[2] == "main.py"
    assert taken_apart("python -W error::UserWarning main.py")[2] == "main.py"


def test_options_know_their_launcher_and_places() -> None:
    command = "srun -N2 torchrun --nproc_per_node=8 --tee 3 train.py"
    invocation = read(words(command))
    assert invocation is not None
    found = [
        (one.launcher, one.name, one.text, command[one.word.span.start : one.word.span.end])
        for one in invocation.options
    ]
    assert found == [
        ("srun", "-N", "2", "-N2"),
        ("torchrun", "--nproc-per-node", "8", "--nproc_per_node=8"),
        ("torchrun", "--tee", "3", "--tee"),
    ]


def test_the_table_is_dated_and_says_what_was_read() -> None:
    table = tables.launchers()
    assert table["as_of"] > "2026"
    assert {name for names in table["read"] for name in names.split(", ")} >= set(table["options"])
    for options in table["options"].values():
        kinds = [set(names) for names in options.values()]
        assert len(set().union(*kinds)) == sum(map(len, kinds))


@pytest.mark.torch
def test_the_table_of_torchrun_is_what_torch_has() -> None:
    import torch.distributed.run

    with open(torch.distributed.run.__file__, encoding="utf-8") as file:
        module = ast.parse(file.read())
    calls = [
        node
        for node in ast.walk(module)
        if isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "add_argument"
    ]
    names = {arg.value for node in calls for arg in node.args if isinstance(arg, ast.Constant)}
    options = tables.launchers()["options"]["torchrun"]
    known = {*options["value"], *options["flag"]}
    assert {"--" + name[2:].replace("_", "-") for name in names if name.startswith("--")} <= known


@given(
    st.lists(
        st.sampled_from(
            [
                *"-mcnNx:",
                "--",
                "-",
                "=",
                "",
                "$X",
                "${A[@]}",
                "torchrun",
                "srun",
                "python",
                "mpirun",
                "deepspeed",
                "uv",
                "run",
                "docker",
                "accelerate",
                "launch",
                "-m",
                "--module",
                "-mca",
                "--nproc",
                "train.py",
                "tune",
                "ray",
                "job",
                "submit",
                "sbatch",
                "bash",
            ]
        ),
        max_size=9,
    )
)
def test_no_words_stop_it(texts: list[str]) -> None:
    given_words = tuple(Word(text, Span("run.sh", index, index + len(text)), True) for index, text in enumerate(texts))
    invocation = read(given_words)
    assert invocation is None or set(invocation.arguments) <= set(given_words)
    call_of(given_words)


def test_every_form_stands_in_the_table() -> None:
    assert {form for _, form, _, _ in COMMANDS.values()} == {form.value for form in Form}
