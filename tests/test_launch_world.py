"""The formula that the fix of gradient-accumulation-fixed shows divides by each process of the launch once."""

from __future__ import annotations

from pathlib import Path

from collected import for_every

from ldlm_lint import engine
from ldlm_lint.config import Config

_GPUS = "GPUS=${GPUS:-8}\nGPUS_PER_NODE=${GPUS_PER_NODE:-8}\n"
_NODES = f"{_GPUS}NODES=$((GPUS / GPUS_PER_NODE))\n"


def shown(folder: Path, settings: str, launch: str) -> tuple[str, str]:
    """The title and the reason of the fix for a script that launches with 4 accumulation steps."""
    (folder / "run.sh").write_text(f"#!/bin/bash\n{settings}{launch} --gradient_accumulation_steps 4\n")
    (folder / "train.py").write_text("")
    report = engine.run([folder], Config(root=folder.as_posix(), select=("gradient-accumulation-fixed",)), base=folder)
    fixes = [one.fix for one in report.findings]
    assert len(fixes) == 1
    assert fixes[0] is not None
    return fixes[0].title, fixes[0].reason


@for_every(
    ("settings", "launch", "total"),
    [
        # The total stands in the quotient already.
        (_NODES, "torchrun --nnodes $NODES --nproc_per_node $GPUS_PER_NODE train.py", "GPUS"),
        (_NODES, "torchrun --nnodes=${NODES} --nproc_per_node=${GPUS_PER_NODE} train.py --gpus $GPUS", "GPUS"),
        (_GPUS, "torchrun --nnodes $((GPUS / GPUS_PER_NODE)) --nproc_per_node $GPUS_PER_NODE train.py", "GPUS"),
        ("GPUS=${GPUS:-8}\nNODES=$((GPUS / 8))\n", "srun -N $NODES torchrun --nnodes $NODES --nproc_per_node 8 train.py", "GPUS"),
        # One argument is the total.
        (_GPUS, "srun --ntasks=$GPUS --ntasks-per-node=$GPUS_PER_NODE python train.py", "GPUS"),
        (_GPUS, "mpirun -np $GPUS python train.py --gpus_per_node $GPUS_PER_NODE", "GPUS"),
        ("N=${N:-1}\nALL=$((N * 8))\n", "accelerate launch --num_machines $N --num_processes $ALL train.py", "ALL"),
        # Nodes times processes of a node, the fixed ones too.
        ("NODES=${NODES:-1}\n", "torchrun --nnodes $NODES --nproc_per_node 8 train.py", "NODES * 8"),
        ("N=${N:-2}\n", "torchrun --nnodes $N --nproc_per_node $N train.py", "N * N"),
        (_GPUS, "torchrun --nnodes 1 --nproc_per_node $GPUS train.py", "GPUS"),
        ("", "torchrun --nproc_per_node $1 train.py", "$1"),
        ("", "torchrun --nproc_per_node ${GPUS:-8} train.py", "${GPUS:-8}"),
        # Another divisor than the processes of a node.
        (_NODES, "torchrun --nnodes $NODES --nproc_per_node 4 train.py", "NODES * 4"),
    ],
)
def test_each_process_counts_once(tmp_path: Path, settings: str, launch: str, total: str) -> None:
    title, reason = shown(tmp_path, settings, launch)
    assert title == f"compute it as $((TARGET_BATCH / (BATCH_PER_GPU * {total})))"
    assert "WORLD_SIZE" not in reason


def test_a_number_that_the_launch_does_not_tell_has_a_placeholder(tmp_path: Path) -> None:
    title, reason = shown(tmp_path, "", "torchrun --nproc_per_node gpu train.py")
    assert title == "compute it as $((TARGET_BATCH / (BATCH_PER_GPU * WORLD_SIZE)))"
    assert "WORLD_SIZE" in reason
