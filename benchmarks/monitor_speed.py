"""How many lines of a training log are read in a second of one core.

python benchmarks/monitor_speed.py            # a table; CPU time, the best of three rounds
"""

from __future__ import annotations

import random
import resource
import time
from collections.abc import Callable

from ldlm_lint.monitor.reader import LogReader

CHUNK = 1 << 18
LINES = 100_000


def nanogpt(index: int, rng: random.Random) -> str:
    """karpathy/nanoGPT."""
    return (
        f"iter {index}: loss {rng.uniform(2, 4):.4f}, time {rng.uniform(60, 70):.2f}ms, mfu {rng.uniform(20, 40):.2f}%"
    )


def huggingface(index: int, rng: random.Random) -> str:
    """The Trainer of transformers 4."""
    loss, norm = rng.uniform(2, 4), rng.uniform(0, 2)
    return f"{{'loss': {loss:.4f}, 'grad_norm': {norm}, 'learning_rate': {1e-4 / (index + 1)}, 'epoch': {index / 1000:.2f}}}"


def megatron(index: int, rng: random.Random) -> str:
    """Megatron-LM, eleven values a line."""
    return (
        f" [2025-05-27 15:23:{index % 60:02d}] iteration {index:8d}/  999999 | consumed samples: {index * 8:12d} | elapsed time per"
        f" iteration (ms): {rng.uniform(900, 999):.1f} | learning rate: {rng.uniform(0, 1e-4):.6E} | global batch size:     8 |"
        f" lm loss: {rng.uniform(2, 9):.6E} | loss scale: 1.0 | grad norm: {rng.uniform(0, 9):.3f} | number of skipped iterations:"
        "   0 | number of nan iterations:   0 |"
    )


def jsonl(index: int, rng: random.Random) -> str:
    """JSON lines of any trainer."""
    return f'{{"epoch": 1, "step": {index}, "loss": {rng.uniform(1, 9)}, "lr": {rng.uniform(0, 1e-4)}, "grad_norm": {rng.random()}}}'


def unknown(index: int, rng: random.Random) -> str:
    """Lines of which no two look alike, with numbers in most of them."""
    words = [
        "worker",
        "loaded",
        "shard",
        "from",
        "cache",
        "loss",
        "in",
        "step",
        "took",
        "retry",
        "at",
        "0x7f3a",
        "rank",
    ]
    pieces = [
        rng.choice(words) if rng.random() < 0.7 else f"{rng.uniform(0, 1e4):.{rng.randrange(4)}f}" for _ in range(12)
    ]
    return " ".join(pieces)


KINDS: tuple[tuple[str, Callable[[int, random.Random], str], int], ...] = (
    ("nanoGPT, locked", nanogpt, LINES),
    ("Hugging Face, locked", huggingface, LINES),
    ("Megatron (11 values), locked", megatron, LINES),
    ("JSON lines, locked", jsonl, LINES),
    ("unknown text, all lines different", unknown, LINES // 5),
)


def rate(line: Callable[[int, random.Random], str], count: int) -> tuple[float, int]:
    """(lines a second of CPU time, records) of the best of three rounds."""
    rng = random.Random(0)
    data = "".join(line(index, rng) + "\n" for index in range(count)).encode()
    chunks = [data[start : start + CHUNK] for start in range(0, len(data), CHUNK)]
    best, records = 0.0, 0
    for _ in range(3):
        reader, records = LogReader(), 0
        start = time.process_time()
        for chunk in chunks:
            for _, found in reader.read(chunk):
                records += len(found)
        best = max(best, count / (time.process_time() - start))
    return best, records


def main() -> None:
    """Print the table."""
    for name, line, count in KINDS:
        lines, records = rate(line, count)
        print(f"{name:36} {lines:12,.0f} lines/s {records:9,d} records of {count:,d} lines")
    print(f"peak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MiB")


if __name__ == "__main__":
    main()
