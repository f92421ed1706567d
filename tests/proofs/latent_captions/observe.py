"""Runs the example's entry program and prints, beside its own output, what a comparison needs: ``observe.py train.py ...``.

Each rank prints its loss of each step bit for bit; at the end it prints the most bytes that were saved for backward,
the most checkpoint files that lay in the output folder after a step, and how many loader processes were started.
"""

from __future__ import annotations

import multiprocessing.process
import os
import runpy
import sys
from collections.abc import Iterator
from pathlib import Path

import torch.distributed as dist
from torch import Tensor

sys.path[:0] = [os.getcwd(), str(Path(__file__).resolve().parent.parent)]

from captions.trainer import Trainer  # noqa: E402
from saved import SavedBytes  # noqa: E402


class Observer:
    """What is seen of one rank while it trains."""

    def __init__(self) -> None:
        self.saved = SavedBytes()
        self.started = 0
        self.files = 0
        self.timeout = 0.0

    def attach(self) -> None:
        """Hook into the trainer and into the start of processes; nothing that is computed changes."""
        steps, start = Trainer.optimizer_steps, multiprocessing.process.BaseProcess.start

        def observed_steps(trainer: Trainer) -> Iterator[Tensor]:
            rank = "" if trainer.runtime.is_main else f"rank {trainer.runtime.rank} "
            for loss in steps(trainer):
                # One write, since the ranks share the stream.
                sys.stdout.write(f"{rank}step {trainer.step} loss {loss.item().hex()}\n")
                yield loss
                self.files = max(self.files, len(list(trainer.output.glob("*"))))
            if dist.is_initialized():
                group = dist.distributed_c10d._get_default_group()._get_backend(trainer.runtime.device)
                self.timeout = group.options._timeout.total_seconds()

        def observed_start(process: multiprocessing.process.BaseProcess) -> None:
            self.started += 1
            start(process)

        Trainer.optimizer_steps = observed_steps
        multiprocessing.process.BaseProcess.start = observed_start

    def tell(self) -> None:
        """Print what was seen; only the main rank's stands for itself, the others' follow the same program."""
        if os.environ.get("RANK", "0") == "0":
            sys.stdout.write(
                f"saved bytes = {self.saved.peak}\nfiles = {self.files}\nloader processes = {self.started}\n"
                f"timeout = {self.timeout}\n"
            )


def main() -> None:
    """Run the program named by the first argument, with the others."""
    observer = Observer()
    observer.attach()
    del sys.argv[0]
    with observer.saved:
        runpy.run_path(sys.argv[0], run_name="__main__")
    observer.tell()


if __name__ == "__main__":
    main()
