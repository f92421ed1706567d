"""Training runs that never were: clean series of many kinds, as records, and the faults that are put into them."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterable, Iterator, Sequence

from ldlm_lint.monitor.health import Health
from ldlm_lint.monitor.records import Column, Record, Template

Row = dict[str, float]
"""The values of one line by canonical key (a key that is none is a raw name), beside ``step``, ``epoch`` and ``time``."""


def template(keys: Sequence[str], name: str = "test/iter", split: str = "train") -> Template:
    from ldlm_lint.monitor.records import UNITS

    return Template(name, split, tuple(Column(key if key in UNITS else "", key, UNITS.get(key, "")) for key in keys))


def records(
    rows: Iterable[Row], *, split: str = "train", rank: int | None = None, first_line: int = 1
) -> Iterator[Record]:
    """Rows as the records of one template for each set of keys."""
    known: dict[tuple[str, ...], Template] = {}
    for index, row in enumerate(rows):
        values = {key: value for key, value in row.items() if key not in ("step", "epoch", "time")}
        keys = tuple(values)
        shape = known.setdefault(keys, template(keys, split=split))
        step, epoch, time = row.get("step"), row.get("epoch"), row.get("time")
        yield Record(
            first_line + index,
            rank,
            "",
            shape,
            None if step is None else int(step),
            epoch,
            tuple(values.values()),
            time,
        )


def judged(rows: Iterable[Row], *, source: str = "train.log", **options: object) -> Health:
    """A health that has taken the rows in."""
    health = Health(**options)  # type: ignore[arg-type]
    for record in records(rows):
        health.take(source, None, (record,))
    health.close()
    return health


def power(
    draw: random.Random, count: int = 2500, noise: float = 0.03, every: int = 1, exponent: float = 0.35
) -> list[Row]:
    """nanoGPT: a loss from ln(vocabulary) along a power law, times with pauses for evaluation, no learning rate."""
    floor = draw.uniform(0.8, 2.8)
    rows = []
    for index in range(count):
        step = index * every
        loss = floor + (10.8 - floor) * (1 + step / draw.uniform(8, 12)) ** -exponent
        slow = 8 if step % 250 == 0 else 1
        rows.append(
            {
                "step": step,
                "loss": round(loss * math.exp(draw.gauss(0, noise)), 4),
                "step_time_s": round(0.065 * slow * math.exp(draw.gauss(0, 0.05)), 5),
                "mfu": 0.02,
            }
        )
    return rows


def exponential(draw: random.Random, count: int = 2500) -> list[Row]:
    """A small model that converges to a floor and stays there, with a cosine schedule and lognormal gradient norms."""
    tau, floor, noise = draw.uniform(60, 600), draw.uniform(0.3, 2.5), draw.uniform(0.01, 0.08)
    return [
        {
            "step": step,
            "loss": round(floor + 8 * math.exp(-step / tau) + draw.gauss(0, noise * floor), 4),
            "grad_norm": round(math.exp(draw.gauss(0, 0.3)) * (1 + 5 * math.exp(-step / 50)), 4),
            "lr": 6e-4 * min(1, (step + 1) / 100) * (0.55 + 0.45 * math.cos(math.pi * step / count)),
            "tokens_per_s": round(12000 * math.exp(draw.gauss(0, 0.04)), 1),
        }
        for step in range(count)
    ]


def huggingface(draw: random.Random, count: int = 300) -> list[Row]:
    """A Trainer that logs every 10 steps: linear decay to 0, epochs, heavy-tailed gradient norms."""
    start, floor = draw.uniform(1.0, 3.0), draw.uniform(0.3, 0.9)
    return [
        {
            "step": (index + 1) * 10,
            "epoch": round(3 * (index + 1) / count, 2),
            "loss": round(start * (floor + (1 - floor) * math.exp(-index / 40)) * math.exp(draw.gauss(0, 0.06)), 4),
            "grad_norm": round(math.exp(draw.gauss(0, 0.8)), 4),
            "lr": 5e-5 * (1 - (index + 1) / count),
        }
        for index in range(count)
    ]


def short(draw: random.Random) -> list[Row]:
    """A fine-tuning of 50 lines."""
    return huggingface(draw, 50)


def megatron(draw: random.Random, count: int = 2500) -> list[Row]:
    """fp16 pretraining: a clock, the search for a loss scale, overflows now and then, checkpoints every 500 steps."""
    rows, clock, scale = [], 1.7e9, 2.0**32
    for step in range(1, count + 1):
        skipped = 1 if step <= 14 or draw.random() < 0.001 else 0
        scale = scale / 2 if skipped else (scale * 2 if step % 1000 == 0 else scale)
        clock += 2.0 * math.exp(draw.gauss(0, 0.03)) + (95 if step % 500 == 1 and step > 1 else 0)
        rows.append(
            {
                "step": step,
                "time": round(clock),
                "step_time_s": 2 * math.exp(draw.gauss(0, 0.03)),
                "lr": 3e-4 * min(1, step / 200),
                "loss": 2 + 8.5 * (1 + step / 60) ** -0.6 * math.exp(draw.gauss(0, 0.01)),
                "loss_scale": scale,
                "grad_norm": math.inf if skipped else math.exp(draw.gauss(0, 0.25)) + 3 * math.exp(-step / 100),
                "skipped_steps": skipped,
                "nan_iterations": 0,
            }
        )
    return rows


def restarts(draw: random.Random, count: int = 2500, height: float = 0.2) -> list[Row]:
    """Warm restarts of the learning rate every 500 steps, after each of which the loss goes up for a while."""
    rows = []
    for step in range(count):
        phase = step % 500
        again = 1 - math.exp(-phase / 15) if step >= 500 else 1.0
        cooled = height * again * math.cos(math.pi * phase / 500) - height * (1 - again)
        loss = 0.6 + 3 * math.exp(-step / 300) + cooled
        rows.append(
            {
                "step": step,
                "loss": loss * math.exp(draw.gauss(0, 0.04)),
                "lr": 0.05 + 0.5 * (1 + math.cos(math.pi * phase / 500)),
            }
        )
    return rows


def silent_restarts(draw: random.Random, count: int = 2500) -> list[Row]:
    """The same, of a program that prints no learning rate and whose loss goes up less."""
    return [{key: value for key, value in row.items() if key != "lr"} for row in restarts(draw, count, 0.05)]


def stepped(draw: random.Random, count: int = 1500) -> list[Row]:
    """A classifier with a learning rate that falls tenfold twice; loss of single batches, epochs of 100 lines."""
    rows = []
    for step in range(count):
        level = 1.6 * math.exp(-step / 150) + (0.75 if step < 500 else 0.35 if step < 1000 else 0.25)
        rows.append(
            {
                "step": step % 100,
                "epoch": step // 100,
                "loss": level * math.exp(draw.gauss(0, 0.15)),
                "lr": 0.1 ** (1 + step // 500),
                "step_time_s": (2.5 if step % 100 == 0 else 0.4) * math.exp(draw.gauss(0, 0.1)),
                "data_time_s": 2.1 if step % 100 == 0 else 0.01 * math.exp(draw.gauss(0, 0.5)),
            }
        )
    return rows


def running_mean(draw: random.Random, epochs: int = 8, length: int = 200) -> list[Row]:
    """A bar that shows the mean of the epoch so far, which is quiet at the end of an epoch and jumps at its start."""
    rows = []
    for epoch in range(epochs):
        total = 0.0
        for index in range(length):
            total += (0.4 + 2 * math.exp(-(epoch * length + index) / 300)) * math.exp(draw.gauss(0, 0.25))
            rows.append(
                {
                    "step": index,
                    "epoch": epoch,
                    "loss": round(total / (index + 1), 4),
                    "iterations_per_s": 14 * math.exp(draw.gauss(0, 0.1)),
                }
            )
    return rows


def adversarial(draw: random.Random, count: int = 2500) -> list[Row]:
    """A GAN's discriminator: no trend, slow waves, noise of the size of the level."""
    wave = draw.uniform(100, 400)
    return [
        {
            "step": step,
            "loss": abs(0.9 + 0.3 * math.sin(step / wave) + draw.gauss(0, 0.25)) + 0.02,
            "grad_norm": math.exp(draw.gauss(0, 0.6)),
            "lr": 2e-4,
        }
        for step in range(count)
    ]


def reinforcement(draw: random.Random, count: int = 1000) -> list[Row]:
    """Policy optimization: a loss around zero, gradients that are zero now and then, answers that become longer."""
    return [
        {
            "step": step,
            "loss": 0.0 if draw.random() < 0.2 else 0.02 * draw.gauss(0, 1) / max(0.15, abs(draw.gauss(0, 1))),
            "grad_norm": 0.0 if draw.random() < 0.2 else math.exp(draw.gauss(-1, 0.7)),
            "lr": 1e-6,
            "step_time_s": (30 + 30 * step / count) * math.exp(draw.gauss(0, 0.15)),
        }
        for step in range(count)
    ]


def heavy(draw: random.Random, count: int = 2500) -> list[Row]:
    """Single samples as batches: losses with a heavy tail, and rates that jump between short and long samples."""
    return [
        {
            "step": step,
            "loss": (0.5 + math.exp(-step / 400)) * math.exp(draw.gauss(0, 0.45)),
            "grad_norm": math.exp(1.0 * draw.gauss(0, 1)),
            "samples_per_s": (40 if draw.random() < 0.2 else 100) * math.exp(draw.gauss(0, 0.1)),
        }
        for step in range(count)
    ]


def student(draw: random.Random, count: int = 2500) -> list[Row]:
    """A loss with Student's t noise of 3 degrees of freedom."""

    def noise() -> float:
        return draw.gauss(0, 1) / math.sqrt(sum(draw.gauss(0, 1) ** 2 for _ in range(3)) / 3)

    return [{"step": step, "loss": max(0.01, 1 + 2 * math.exp(-step / 300) + 0.06 * noise())} for step in range(count)]


def coarse(draw: random.Random, count: int = 2500) -> list[Row]:
    """A loss that converges to what its printed digits can show, and a rate printed with six decimals that ends at 0."""
    return [
        {
            "step": step,
            "loss": round(2 * math.exp(-step / 120) * math.exp(draw.gauss(0, 0.1)) + 0.0003, 3),
            "lr": round(1e-4 * (1 + math.cos(math.pi * step / count)) / 2, 6),
        }
        for step in range(count)
    ]


def tiles(draw: random.Random, count: int = 2500) -> list[Row]:
    """Training in which the loss falls in stairs at epochs, as when samples are learnt by heart."""
    return [
        {
            "step": step,
            "epoch": step / 500,
            "loss": round(1.8 * 0.55 ** (step // 500) * math.exp(draw.gauss(0, 0.07)), 4),
            "grad_norm": math.exp(draw.gauss(0, 0.4)) * 1.5 ** (step // 500),
        }
        for step in range(count)
    ]


def _loss(draw: random.Random, step: float, noise: float = 0.03) -> float:
    """A loss along a power law."""
    return (2 + 7 * (1 + step / 20) ** -0.5) * math.exp(draw.gauss(0, noise))


def warm_up(draw: random.Random, count: int = 2500) -> list[Row]:
    """A fall in the shape of an S: slow under a rising learning rate, fast, then slow again; a cosine to a tenth."""
    middle, width, floor = draw.uniform(80, 500), draw.uniform(0.15, 0.6), draw.uniform(1, 3)
    noise = draw.choice((0.005, 0.02, 0.05))
    return [
        {
            "step": step,
            "loss": (floor + 6 / (1 + math.exp((step - middle) / (width * middle))) + 1.5 * (1 + step / 300) ** -0.5)
            * math.exp(draw.gauss(0, noise)),
            "lr": 3e-4 * min(1, (step + 1) / (2 * middle)) * (0.55 + 0.45 * math.cos(math.pi * step / count)),
        }
        for step in range(count)
    ]


def two_speeds(draw: random.Random, count: int = 4000) -> list[Row]:
    """A fast fall to what is easy and a slow one after it."""
    fast, slow, share = draw.uniform(15, 150), draw.uniform(600, 4000), draw.uniform(0.15, 0.8)
    noise = draw.choice((0.003, 0.01, 0.03, 0.1))
    return [
        {
            "step": step,
            "loss": (1.5 + 6 * ((1 - share) * math.exp(-step / fast) + share * math.exp(-step / slow)))
            * math.exp(draw.gauss(0, noise)),
        }
        for step in range(count)
    ]


def quiet_power(draw: random.Random) -> list[Row]:
    """Learning curves with little noise, of all exponents and lengths."""
    count = draw.choice((500, 1500, 5000, 10000))
    start, exponent, floor = draw.uniform(2, 300), draw.uniform(0.1, 1.2), draw.uniform(0, 2.5)
    noise = draw.choice((0.002, 0.005, 0.01, 0.02))
    return [
        {
            "step": step,
            "loss": (floor + (10 - floor) * (1 + step / start) ** -exponent) * math.exp(draw.gauss(0, noise)),
        }
        for step in range(count)
    ]


def smoothed(draw: random.Random, count: int = 3000) -> list[Row]:
    """A running mean over about 50 steps: neighbours hardly differ, the level wanders."""
    floor, tau, mean = draw.uniform(0.5, 2.5), draw.uniform(100, 800), 0.0
    rows: list[Row] = []
    for step in range(count):
        now = (floor + 5 * math.exp(-step / tau)) * math.exp(draw.gauss(0, 0.25))
        mean = now if not step else 0.98 * mean + 0.02 * now
        rows.append({"step": step, "loss": round(mean, 4)})
    return rows


def cooled(draw: random.Random, count: int = 3000) -> list[Row]:
    """Constant learning rate, then a linear one to zero, under which the loss falls faster before it stops."""
    noise = draw.choice((0.005, 0.02))
    rows: list[Row] = []
    for step in range(count):
        rate = min(1.0, (step + 1) / 100, 4 * (1 - step / count))
        cold = 0.25 * (1 - rate) if step > 100 else 0.0
        rows.append({"step": step, "loss": _loss(draw, step, noise) - cold, "lr": 6e-4 * rate})
    return rows


def annealed_penalty(draw: random.Random, count: int = 2500) -> list[Row]:
    """A loss with a weight that grows over 1,500 steps after the reconstruction is learnt."""
    return [
        {
            "step": step,
            "loss": (0.5 + 2 * math.exp(-step / 80) + 0.6 * min(1, step / 1500)) * math.exp(draw.gauss(0, 0.04)),
            "lr": 1e-3,
        }
        for step in range(count)
    ]


def one_batch(draw: random.Random, count: int = 2500) -> list[Row]:
    """Small batches in reinforcement learning: a positive loss that scatters by half of itself and drifts."""
    level, rows = 0.0, []
    for step in range(count):
        level = 0.995 * level + draw.gauss(0, 0.02)
        rows.append({"step": step, "loss": math.exp(level + draw.gauss(0, 0.5)), "lr": 1e-6})
    return rows


def _speeds(draw: random.Random, count: int, factor: Callable[[int], float], noise: float) -> list[Row]:
    """A run in steps per second or seconds per step."""
    seconds = draw.random() < 0.5
    rows: list[Row] = []
    for step in range(count):
        time = 0.3 * factor(step) * math.exp(draw.gauss(0, noise))
        speed = {"step_time_s": time} if seconds else {"samples_per_s": 32 / time}
        rows.append({"step": step, "loss": _loss(draw, step), **speed})
    return rows


def day_and_night(draw: random.Random, count: int = 4000) -> list[Row]:
    """A shared machine, 10 % slower and faster over a day."""
    day, phase, noise = draw.uniform(800, 4000), draw.uniform(0, 6), draw.choice((0.01, 0.05))
    return _speeds(draw, count, lambda step: 1 + 0.1 * math.sin(6.2832 * step / day + phase), noise)


def collected(draw: random.Random, count: int = 2500) -> list[Row]:
    """Memory that fills and is collected: steps become slower for a while and fast again, some steps stop for long."""
    every, height = draw.randrange(20, 400), draw.uniform(0.05, 0.3)
    return _speeds(draw, count, lambda step: 1 + height * (step % every) / every + 4 * (step % every == 0), 0.03)


def compiled(draw: random.Random, count: int = 1500) -> list[Row]:
    """First steps that compile, later ones that compile anew for a new shape."""
    again = {draw.randrange(20, count) for _ in range(12)}
    first = draw.randrange(1, 12)
    return _speeds(draw, count, lambda step: 60 if step < first else 25 if step in again else 1, 0.04)


def evaluating(draw: random.Random, count: int = 2500) -> list[Row]:
    """Steps that stand for an evaluation, now one, now six in a row."""
    every, length = draw.randrange(50, 500), draw.choice((1, 3, 6))
    return _speeds(draw, count, lambda step: 3 if step > 5 and step % every < length else 1, 0.05)


def jittery(draw: random.Random, count: int = 2500) -> list[Row]:
    """Times that scatter by a third, with a heavy tail, and other jobs on the machine for 5 to 25 steps."""
    slow, left = 1.0, 0
    rows: list[Row] = []
    for step in range(count):
        left -= 1
        if left < 0:
            slow, left = (
                (draw.uniform(1.1, 1.6), draw.randrange(5, 25)) if slow == 1 else (1.0, draw.randrange(30, 300))
            )
        tail = abs(draw.gauss(0, 1)) ** 2
        rows.append({"step": step, "loss": _loss(draw, step), "step_time_s": 0.2 * slow * (1 + 0.15 * tail)})
    return rows


def two_lengths(draw: random.Random, count: int = 2500) -> list[Row]:
    """Short and long samples: by chance, in turn, or in runs of several."""
    share, long, sticky = draw.uniform(0.1, 0.6), draw.uniform(1.2, 3), draw.choice((0.0, 0.0, 0.5, 0.6))
    state, rows = 1.0, []
    for step in range(count):
        if draw.random() >= sticky:
            state = long if draw.random() < share else 1.0
        rows.append(
            {"step": step, "loss": _loss(draw, step), "samples_per_s": 90 / state * math.exp(draw.gauss(0, 0.04))}
        )
    return rows


def sorted_epochs(draw: random.Random, epochs: int = 6, length: int = 400) -> list[Row]:
    """Data that is sorted by length: from short to long or back in each epoch."""
    sign = draw.choice((1, -1))
    rows: list[Row] = []
    for index in range(epochs * length):
        part = index % length / length
        time = 0.3 * (1 + 0.6 * (part if sign > 0 else 1 - part)) * math.exp(draw.gauss(0, 0.06))
        rows.append({"step": index % length, "epoch": index // length, "loss": _loss(draw, index), "step_time_s": time})
    return rows


CLEAN: dict[str, Callable[[random.Random], list[Row]]] = {
    one.__name__: one
    for one in (
        power,
        exponential,
        huggingface,
        short,
        megatron,
        restarts,
        silent_restarts,
        stepped,
        running_mean,
        adversarial,
        reinforcement,
        heavy,
        student,
        coarse,
        tiles,
        warm_up,
        two_speeds,
        quiet_power,
        smoothed,
        cooled,
        annealed_penalty,
        one_batch,
        day_and_night,
        collected,
        compiled,
        evaluating,
        jittery,
        two_lengths,
        sorted_epochs,
    )
}
