"""Train the caption model: ``python train.py --config configs/base.json --steps 20``."""

from __future__ import annotations

import argparse
from pathlib import Path

from captions import distributed
from captions.config import Config
from captions.trainer import Trainer


def parse_arguments() -> argparse.Namespace:
    """The command line; what is not given comes from the configuration file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--config", type=Path, default=Path("configs/base.json"))
    parser.add_argument("--output", type=Path, default=Path("runs/base"), help="directory of the checkpoints")
    parser.add_argument("--resume", action="store_true", help="go on from the latest checkpoint of the output")
    parser.add_argument("--steps", type=int, help="optimizer steps")
    parser.add_argument("--batch-size", type=int, help="samples per rank and micro-batch")
    parser.add_argument("--accumulation-steps", type=int, help="micro-batches per optimizer step")
    parser.add_argument("--save-every", type=int, help="optimizer steps between checkpoints")
    parser.add_argument("--num-workers", type=int, help="loader processes per rank")
    return parser.parse_args()


def main() -> None:
    """Train one rank of a run."""
    arguments = parse_arguments()
    config = Config.load(arguments.config).override(
        num_workers=arguments.num_workers,
        steps=arguments.steps,
        batch_size=arguments.batch_size,
        accumulation_steps=arguments.accumulation_steps,
        save_every=arguments.save_every,
    )
    runtime = distributed.setup()
    trainer = Trainer(config, runtime, arguments.output)
    if arguments.resume:
        trainer.resume()
    trainer.train()
    # DDP first: freed after its group, gloo may wait for a thread that waits for the interpreter's lock (pytorch#56297).
    del trainer
    distributed.teardown()


if __name__ == "__main__":
    main()
