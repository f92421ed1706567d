"""The advice for each kind of alarm, in one or two sentences."""

from __future__ import annotations

from collections.abc import Mapping

_STACKS = "While it hangs, run `py-spy dump --pid PID` on each rank"

NEXT: Mapping[str, str] = {
    "nan-loss": "Stop the run and go back to the last checkpoint before this step. Then log the gradient norm and the "
    "batch of this step: a learning rate that is too high and a bad sample are the usual causes.",
    "nan-gradient": "Clip gradients after `unscale_`, and look at the loss scale and at the batch of this step.",
    "loss-spike": "If the loss returns to its trend within a few hundred steps, keep training. If spikes repeat, clip gradients, lower the "
    "learning rate, and look at the batches of these steps.",
    "divergence": "Stop the run and go back to a checkpoint before the rise. Start again with a lower learning rate or a "
    "longer warm-up.",
    "frozen-loss": "Check that the optimizer has the parameters and that `step()` runs: compare one weight before and "
    "after a step.",
    "plateau": "Compare with the learning rate at this step. If it did not change, check that the parameters still get "
    "gradients.",
    "gradient-explosion": "Clip gradients, and look at the batch of this step. If it repeats, lower the learning rate.",
    "gradient-vanished": "Check which parameters still get a gradient: print the norm of each layer for one step.",
    "throughput-drop": "Check what happened on this machine at that time: other jobs, a hot GPU (`nvidia-smi -q -d PERFORMANCE`), a slow "
    "file system. If the speed falls slowly, look for memory that grows.",
    "loader-stall": "Raise `num_workers` and `prefetch_factor`, or move the costly part of the data preparation to before "
    "the training.",
    "skipped-steps": "Look at the loss scale: the optimizer skips each step whose gradients overflow. With bfloat16 leave "
    "the scaler out.",
    "loss-scale-collapse": "Gradients overflow repeatedly: train in bfloat16, or look for the layer that overflows.",
    "lr-zero": "Nothing is learned at this rate. Check the number of steps that the schedule was made with, and how often "
    "`scheduler.step()` runs.",
    "silence": f"Check that the processes still run and that the GPUs are busy (`nvidia-smi`). {_STACKS} to see where it waits.",
    "restart": "Check that the run continues from the newest checkpoint, and why it was started again.",
    "oom": "Lower the micro-batch size and accumulate more steps, or checkpoint activations. If memory grows from step to "
    "step, look for a tensor with its graph that is kept.",
    "host-oom": "Lower the number of DataLoader workers, and load checkpoints on one rank at a time.",
    "shared-memory": "Give the container more shared memory (`--shm-size`, or `--ipc=host`), or use fewer workers.",
    "worker-died": "Read the lines before this one for the error of the worker; a worker that was killed ran out of memory.",
    "disk-full": "Free space, then keep only the newest checkpoints. The last checkpoint is incomplete: do not resume from it.",
    "nccl-timeout": "Read the log of the rank that held the others up, at the time when they began to wait.",
    "nccl-heartbeat": f"A rank hangs inside of a CUDA or NCCL call. {_STACKS}, and read the log of each rank.",
    "collective-mismatch": "Find the branch that only a part of the ranks takes: all ranks must call the same collectives "
    "in the same order.",
    "ddp-unused": "Name the parameters with `TORCH_DISTRIBUTED_DEBUG=DETAIL`. Use them in each forward pass, or pass "
    "`find_unused_parameters=True`.",
    "ddp-static-graph": "Leave `static_graph=True` out: this model does not run the same graph in each step.",
    "connection-lost": "Read the log of the rank at the other end: it ended first.",
    "nccl-error": "Run again with `NCCL_DEBUG=INFO`: it names the network interface and the operation that failed.",
    "cuda-error": "Run one process with `CUDA_LAUNCH_BLOCKING=1`, which names the line that fails. Other lines may be named "
    "without it.",
    "hardware": "Take this machine out of the job, and tell those who run it. `nvidia-smi -q` and `dmesg` have the details.",
    "nan-message": "Log the gradient norm and the batch of this step. If it repeats, stop and go back to a checkpoint.",
    "scale-at-minimum": "Stop: no step is applied any more. Train in bfloat16, or go back to a checkpoint with a lower "
    "learning rate.",
    "rendezvous": "Check the address and port of the first node (`MASTER_ADDR`, `MASTER_PORT`), the firewall, and that all "
    "nodes were started with the same number of nodes.",
    "storage": "Check the mount and the quota of this file system. Checkpoints of this time can be incomplete.",
    "checkpoint-failed": "Check the space and the rights of the checkpoint folder, and save again before you continue.",
    "network": "Check the network of this node. If only a tracker is concerned, run it offline.",
    "stuck": f"{_STACKS}, and read which call each of them waits in.",
    "straggler": "Compare this rank's machine with the others: GPU clocks, other jobs, the file system.",
    "child-failed": "Read the log of the rank that failed first: the others ended because of it.",
    "killed": "Exit code -9 without an error message is usually the host's memory (`dmesg | grep -i kill`) or the time "
    "limit of the job.",
    "preempted": "Resume from the newest checkpoint. If there is none, save one more often.",
    "exception": "Read the traceback in the log: its last line names the error.",
    "interrupted": "Resume from the newest checkpoint to continue the run.",
    "overflow": "Nothing: single overflows are how loss scaling finds its scale.",
}
