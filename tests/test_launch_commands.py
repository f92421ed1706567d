"""What the launch rules say of scripts that a fixture cannot hold, and of shapes one at a time."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from collected import for_every

from ldlm_lint.checkers.scripts.lint import lint
from ldlm_lint.files.edited import apply_edits
from ldlm_lint.model import Applicability, Finding
from ldlm_lint.source import Kind, Source

CAUSES = {
    "python train.py --a 1 \\ \n  --b 2\n": "its `\\` is followed by a space",
    "python train.py --a 1 \\\t\n  --b 2\n": "its `\\` is followed by a space",
    "python train.py --a 1 \\ # why\n  --b 2\n": "its `\\` is followed by a comment",
    "python train.py --a 1 # why \\\n  --b 2\n": "its `\\` is inside a comment",
    "python train.py --a 1 \\\n  # why\n  --b 2\n": "the next line is a comment",
    "python train.py --a 1 \\\n\n  --b 2\n": "the next line is empty",
    "python train.py --a 1\n  --b 2\n": "the `\\` is missing",
    "python train.py --a ${X}\n  --b 2\n": "the `\\` is missing",
    "python train.py --a $(nproc)\n  --b 2\n": "the `\\` is missing",
}
WHOLE = {
    "a proper command": "torchrun --nnodes 2 \\\n  train.py \\\n  --b 2\n",
    "another command": "python train.py --a 1\npython train.py --b 2\n",
    "a variable": "python train.py --a 1\nx.y\nX=2\n",
    "a comment at the end": "python train.py --a 1 \\\n  # --b 2 \\\n  # --c 3\n\necho done\n",
    "an escaped backslash": "python train.py --a 1 \\\\\necho done\n",
    "a branch of case": 'case "$1" in\n-a) python train.py\n;;\n--b) x ;;\nesac\n',
    "a subshell": "(cd x; python train.py)\n--b 2\n",
    "a heredoc": "python - <<EOF\n--b\nEOF\n",
    "a background job": "python train.py &\n--b 2\n",
    "no launcher": "rsync a \\ \n  --b\n",
    "the last line": "python train.py --a 1 \\ \n",
    "an indented command": "if x; then\n  python train.py --a 1 \\ \n  y=1\nfi\n",
}


def findings(script: str | bytes, symbol: str, options: Mapping[str, object] | None = None) -> list[Finding]:
    data = script if isinstance(script, bytes) else script.encode()
    found = lint(Source.from_bytes("/p/run.sh", data, Kind.SHELL), options or {}).findings
    return [one for one in found if one.rule == symbol]


def fixed(script: str | bytes, finding: Finding) -> str:
    assert finding.fix is not None
    data = script if isinstance(script, bytes) else script.encode()
    return apply_edits(data, finding.fix.edits, "utf-8").decode()


def one(script: str | bytes, symbol: str) -> Finding:
    (found,) = findings(script, symbol)
    return found


@for_every(("script", "cause"), CAUSES.items(), ids=CAUSES)
def test_a_command_that_ends_early_says_why_and_what_is_lost(script: str, cause: str) -> None:
    finding = one(script, "truncated-command")
    assert dict(finding.args) == {"launcher": "python", "cause": cause, "lost": "`--b`"}
    joined = " ".join(fixed(script, finding).replace("\\\n", " ").split()).replace("# why ", "").replace("# --a: why ", "")
    assert joined == " ".join(script.replace("\\", " ").replace("# why", "").split())


@for_every("script", WHOLE.values(), ids=WHOLE)
def test_a_command_that_is_whole_is_left_alone(script: str) -> None:
    assert findings(script, "truncated-command") == []


def test_all_gaps_of_a_command_are_one_finding_and_one_fix() -> None:
    script = "torchrun --nnodes 2 \\ # two\n  train.py a.b=1 \\ \n  c.d=2\n  --e 3\n"
    finding = one(script, "truncated-command")
    assert dict(finding.args)["lost"] == "`train.py`, `a.b`, `c.d` and `--e`"
    assert len(finding.related) == 2
    assert fixed(script, finding) == "# --nnodes: two\ntorchrun --nnodes 2 \\\n  train.py a.b=1 \\\n  c.d=2 \\\n  --e 3\n"


def test_many_lost_arguments_are_counted_with_the_script_first() -> None:
    rest = " ".join(f"--o{number} {number}" for number in range(9))
    finding = one(f"torchrun --nnodes 2 \\ \n  {rest} \\\n  src/train.py\n", "truncated-command")
    assert dict(finding.args)["lost"] == "`train.py`, `--o0`, `--o1`, `--o2` and 6 more arguments"


def test_a_comment_moves_above_the_first_line_of_the_whole_list() -> None:
    script = "if x; then\n    cd y && \\\n        python train.py \\  # why\n            --b 2\nfi\n"
    finding = one(script, "truncated-command")
    assert fixed(script, finding) == (
        "if x; then\n    # why\n    cd y && \\\n        python train.py \\\n            --b 2\nfi\n"
    )


def test_line_ends_and_a_byte_order_mark_survive() -> None:
    script = b"\xef\xbb\xbfecho \xc3\xa9\r\npython train.py --a 1  # \xc3\xa9\r\n  --b 2\r\n"
    finding = one(script, "truncated-command")
    expected = b"\xef\xbb\xbfecho \xc3\xa9\r\n# --a: \xc3\xa9\r\npython train.py --a 1 \\\r\n  --b 2\r\n"
    assert fixed(script, finding).encode() == expected


HEADS = {
    "python train.py | tee x\n": "set -o pipefail\npython train.py | tee x\n",
    "#!/bin/bash\npython train.py | tee x\n": "#!/bin/bash\nset -o pipefail\npython train.py | tee x\n",
    "#!/bin/bash\n\n# a\npython train.py | tee x\n": "#!/bin/bash\nset -o pipefail\n\n# a\npython train.py | tee x\n",
    "#!/bin/bash\n\n#SBATCH -N 1\n\npython train.py | tee x\n": (
        "#!/bin/bash\n\n#SBATCH -N 1\nset -o pipefail\n\npython train.py | tee x\n"
    ),
}


@pytest.mark.parametrize(("script", "expected"), HEADS.items(), ids=HEADS)
def test_pipefail_goes_behind_the_head_of_comments(script: str, expected: str) -> None:
    finding = one(script, "pipeline-hides-failure")
    assert fixed(script, finding) == expected
    assert finding.fix is not None
    assert finding.fix.applicability is Applicability.UNSAFE


@pytest.mark.parametrize(
    "silencer", ["set -o pipefail", "set -eo pipefail", "set -euo pipefail", "shopt -so pipefail", "set -o errexit -o pipefail"]
)
def test_every_spelling_of_pipefail_counts(silencer: str) -> None:
    assert findings(f"{silencer}\npython train.py | tee x\n", "pipeline-hides-failure") == []


def test_a_status_that_is_read_speaks_for_the_pipeline_before_it_only() -> None:
    script = "python train.py | tee x\npython train.py | tee y\necho ${PIPESTATUS[0]}\n"
    finding = one(script, "pipeline-hides-failure")
    assert finding.span.start < script.index("tee y")


def test_a_string_that_is_not_evaluated_has_no_pipeline() -> None:
    script = 'run="python train.py | tee x"\n{}\n'
    assert findings(script.format("$run"), "pipeline-hides-failure") == []
    assert len(findings(script.format("eval $run"), "pipeline-hides-failure")) == 1


TRAININGS = {
    "torchrun x.py": True,
    "torchrun $SCRIPT": True,
    "accelerate launch x.py": True,
    "srun torchrun x.py": True,
    "python train.py": True,
    "python3 -u src/run_pretraining.py": True,
    "python -m project.finetune": True,
    "python main.py": True,
    "python -m torch.distributed.launch x.py": True,
    "python tools/plot.py": False,
    "python x.py": False,
    "srun python x.py": False,
    "python -c 'train()'": False,
    "torchrun eval_train.py": False,
    "torchrun train.py --eval_only": False,
    "torchrun run_glue.py --do_train --do_eval": True,
    "python preprocess_training.py": False,
    "python train_data_stats_report.py": True,
}


@for_every(("command", "trains"), TRAININGS.items(), ids=TRAININGS)
def test_which_commands_are_trainings(command: str, trains: bool) -> None:
    assert bool(findings(f"{command} | tee x\n", "pipeline-hides-failure")) is trains


WORLDS = {
    "--nproc_per_node=gpu": True,
    "--nproc_per_node 8": False,
    "--nproc_per_node ${N:-8}": True,
    "--nproc_per_node $(nvidia-smi -L | wc -l)": True,
    "--nproc_per_node `nvidia-smi -L | wc -l`": True,
    "--nproc_per_node $A": False,
    "--nproc_per_node $B": True,
    "--nproc_per_node $C": True,
    "--nproc_per_node $D": False,
    "--nproc_per_node $(echo $E | tr , '\\n' | wc -l)": False,
    "--nproc_per_node $(echo $CUDA_VISIBLE_DEVICES | tr , '\\n' | wc -l)": True,
    "--num_machines $F": True,
    "--nnodes $SLURM_NNODES --nproc_per_node 8": True,
    "--node_rank $SLURM_NODEID --nproc_per_node 8": False,
    "--master_port $PORT": False,
    "": False,
}


@for_every(("world", "varies"), WORLDS.items(), ids=WORLDS)
def test_when_the_number_of_gpus_varies(world: str, varies: bool) -> None:
    script = f'A=8\nB="${{B:-8}}"\nC=$((B * 2))\nD=$((A * 2))\nE=0,1\nF=$1\ntorchrun {world} train.py --grad_accum 4\n'
    assert bool(findings(script, "gradient-accumulation-fixed")) is varies


def test_a_header_settles_the_variables_of_the_scheduler() -> None:
    script = "{}\ntorchrun --nnodes $SLURM_NNODES train.py --grad_accum 4\n"
    assert findings(script.format("#SBATCH -N 2"), "gradient-accumulation-fixed") == []
    assert findings(script.format("#SBATCH --nodes=2"), "gradient-accumulation-fixed") == []
    assert len(findings(script.format("#SBATCH --mem=2G"), "gradient-accumulation-fixed")) == 1


def test_the_limit_of_workers_is_an_option_and_the_fix_writes_half_of_it() -> None:
    script = "torchrun train.py --num_workers 12\n"
    assert findings(script, "dataloader-too-many-workers") == []
    (finding,) = findings(script, "dataloader-too-many-workers", {"workers-limit": 8})
    assert fixed(script, finding) == "torchrun train.py --num_workers 4\n"


def test_a_variable_of_workers_is_reported_where_it_is_set() -> None:
    script = "W=${W:-32}\ntorchrun train.py --num_workers $W\ntorchrun train.py --workers $W\n"
    finding = one(script, "dataloader-too-many-workers")
    assert finding.span.start == 0
    assert fixed(script, finding).startswith("W=${W:-8}\n")


DRIFTS = {
    "GA=$((T / (B * NUM_GPUS)))": False,
    "GRAD_ACCUM=$((T / (B * NUM_GPUS)))": True,
    "GRAD_ACCUM=$((512 / (4 * 8)))": False,
    "N_GPUS=1; GRAD_ACCUM=$((T / N_GPUS))": False,
    "N_GPUS=3; GRAD_ACCUM=$((512 / N_GPUS))": True,
    "N_GPUS=8; GRAD_ACCUM=$((4 / N_GPUS))": False,
    "GRAD_ACCUM=$(((T + WORLD - 1) / WORLD))": False,
    "GRAD_ACCUM=$((T / WORLD)); (( T % WORLD )) && exit 1": False,
    "GRAD_ACCUM=$((T / WORLD)); date +%s": True,
    "GRAD_ACCUM=$((T * WORLD))": False,
}


@for_every(("script", "drifts"), DRIFTS.items(), ids=DRIFTS)
def test_when_a_batch_size_drifts(script: str, drifts: bool) -> None:
    assert bool(findings(script + "\n", "batch-size-drift")) is drifts


def test_the_old_launcher_is_replaced_with_its_interpreter_and_without_its_flag() -> None:
    script = "python3 -m torch.distributed.launch \\\n    --use_env \\\n    --nproc_per_node 2 x.py\n"
    assert fixed(script, one(script, "deprecated-launcher")) == "torchrun \\\n    --nproc_per_node 2 x.py\n"
    script = "$PY -m \\\n  torch.distributed.launch x.py\n"
    assert fixed(script, one(script, "deprecated-launcher")) == "$PY -m \\\n  torch.distributed.run x.py\n"


def test_the_scripts_of_a_test_suite_are_silent(tmp_path: Path) -> None:
    from harness import lint as lint_project

    (tmp_path / "pyproject.toml").write_text("[tool.ldlm-lint]\n")
    for folder in ("tests", "scripts"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "run.sh").write_text("torchrun train.py | tee log\n")
    report = lint_project(tmp_path)
    assert [Path(one.span.path).parent.name for one in report.findings] == ["scripts"]
