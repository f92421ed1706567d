"""Logs of healthy trainings as text, in the shape that each trainer writes, and the same with a fault in them.

Training and evaluation alternate, bars are drawn again and begin anew, steps differ in their time, checkpoints and first
batches take longer. Nothing here is copied: each function prints what its program's format says.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass

SIZES = (60, 600, 6000)
FAULTS = ("nan", "slow", "spike")


@dataclass
class Step:
    """One optimizer step of a run: what a trainer knows when it prints."""

    index: int
    epoch: int
    inner: int
    per_epoch: int
    loss: float
    norm: float
    lr: float
    seconds: float
    clock: float

    @property
    def last(self) -> bool:
        return self.inner == self.per_epoch


@dataclass
class Run:
    """A run of ``size`` steps in ``epochs``; its fault begins at 60 % of the steps."""

    size: int
    seed: int = 0
    fault: str = ""
    epochs: int = 3
    base: float = 0.31

    def __post_init__(self) -> None:
        self.draw = random.Random(f"{self.size} {self.seed}")

    def steps(self) -> Iterator[Step]:
        draw, clock = self.draw, 0.0
        per_epoch = self.size // self.epochs
        floor, top = draw.uniform(0.4, 1.5), draw.uniform(3, 7)
        spread, warm = draw.uniform(0.01, 0.04), max(self.size // 20, 2)
        total = per_epoch * self.epochs
        for index in range(1, total + 1):
            epoch, inner = divmod(index - 1, per_epoch)
            loss = floor + (top - floor) * (1 + 12 * index / total) ** -0.8 * math.exp(draw.gauss(0, spread))
            norm = 0.8 * math.exp(draw.gauss(0, 0.3)) + 3 / (1 + index / warm)
            rate = min(index / warm, 0.5 * (1 + math.cos(math.pi * max(index - warm, 0) / max(total - warm, 1))))
            seconds = self.base * math.exp(draw.gauss(0, 0.06))
            if inner == 0:
                seconds *= 6
            elif index % max(total // 6, 1) == 0:
                seconds *= 4
            if index > 0.6 * total:
                if self.fault == "slow":
                    seconds /= 0.55
                elif self.fault == "nan":
                    loss, norm = math.nan, math.nan
                elif self.fault == "spike" and index < 0.6 * total + 1 + max(total // 30, 3):
                    loss *= 4
            clock += seconds
            yield Step(index, epoch, inner + 1, per_epoch, loss, norm, 3e-4 * max(rate, 1e-5), seconds, clock)


def _time(seconds: float) -> str:
    whole = int(seconds)
    hours = f"{whole // 3600}:" if whole >= 3600 else ""
    return f"{hours}{whole // 60 % 60:02d}:{whole % 60:02d}"


def _pace(seconds: float) -> str:
    return f"{seconds:5.2f}s/it" if seconds > 1 else f"{1 / seconds:5.2f}it/s"


def _bar(done: int, total: int, clock: float, seconds: float, what: str = "", more: str = "", width: int = 10) -> str:
    """tqdm's line."""
    filled = int(width * done / total)
    drawn = "█" * filled + ("▍" if filled < width else "") + " " * max(width - filled - 1, 0)
    left = _time((total - done) * seconds)
    head = f"{what}: " if what else ""
    return f"\r{head}{100 * done // total:3d}%|{drawn}| {done}/{total} [{_time(clock)}<{left}, {_pace(seconds)}{more}]"


class _Smooth:
    """tqdm's exponential mean of the seconds per step."""

    def __init__(self) -> None:
        self.value = 0.0

    def __call__(self, seconds: float) -> float:
        self.value = seconds if not self.value else 0.3 * seconds + 0.7 * self.value
        return self.value


def _every(run: Run, parts: int) -> int:
    return max(run.size // parts, 1)


def _checks(run: Run, total: int, what: str = "", pace: float = 0.05, leave: bool = True) -> str:
    """The bar of an evaluation between the steps."""
    shown = range(0, total + 1, max(total // 7, 1))
    text = "".join(
        _bar(done, total, done * pace, pace * math.exp(run.draw.gauss(0, 0.2)), what) for done in shown if done or leave
    )
    return f"\n{text}\r{' ' * 40}\r"


def trainer(run: Run, quoted: bool = True, total: int = 37, every: int = 100) -> Iterator[str]:
    """transformers.Trainer: a bar on stderr, dictionaries on stdout, an evaluation with a bar of its own."""
    smooth, q = _Smooth(), "'" if quoted else ""
    whole = run.size // run.epochs * run.epochs
    log, check = _every(run, every), _every(run, 10)
    yield _bar(0, whole, 0, 1.0).replace("1.00it/s", "?it/s")
    for one in run.steps():
        yield _bar(one.index, whole, one.clock, smooth(one.seconds))
        at = one.index / one.per_epoch
        if one.index % log == 0:
            yield (
                f"\n\n                      \n{{'loss': {q}{one.loss:.4g}{q}, 'grad_norm': {q}{one.norm:.4g}{q}, "
                f"'learning_rate': {q}{one.lr:.4g}{q}, 'epoch': {q}{at:.4g}{q}}}\n"
            )
            yield _bar(one.index, whole, one.clock, smooth.value)
        if one.index % check == 0:
            yield _checks(run, total)
            loss = one.loss * 1.05
            yield (
                f"\n\x1b[A{{'eval_loss': {q}{loss:.4g}{q}, 'eval_runtime': {q}{1.85 + run.draw.random() / 10:.4g}{q}, "
                f"'eval_samples_per_second': {q}{160 + run.draw.random():.4g}{q}, 'eval_steps_per_second': {q}20.1{q}, 'epoch': {q}{at:.4g}{q}}}\n"
            )
            yield _bar(one.index, whole, one.clock, smooth.value)
    yield f"\n{{'train_runtime': {q}{one.clock:.4g}{q}, 'train_samples_per_second': {q}26.1{q}, 'train_steps_per_second': {q}3.2{q}, 'train_loss': {q}1.9{q}, 'epoch': {q}{run.epochs}{q}}}\n"


def trainer_numbers(run: Run) -> Iterator[str]:
    """The Trainer of transformers 4, whose rows hold numbers, with an evaluation as long as the training."""
    yield from trainer(run, quoted=False, total=run.size // run.epochs * run.epochs, every=60)


def lightning(run: Run) -> Iterator[str]:
    """Lightning's tqdm bars: the sanity check, an epoch's bar, the validation's in between."""
    smooth = _Smooth()
    yield "\rSanity Checking: |          | 0/? [00:00<?, ?it/s]"
    yield _bar(2, 2, 0.1, 0.05, "Sanity Checking DataLoader 0")
    shown = _every(run, 400)
    for one in run.steps():
        more = f", v_num=0, train_loss={one.loss:.3f}"
        if one.index % shown == 0 or one.last or not math.isfinite(one.loss):
            yield _bar(
                one.inner, one.per_epoch, one.inner * smooth(one.seconds), smooth.value, f"Epoch {one.epoch}", more
            )
        else:
            smooth(one.seconds)
        if one.inner % max(one.per_epoch // 2, 1) == 0:
            yield "\n\rValidation: |          | 0/? [00:00<?, ?it/s]"
            for done in range(1, 24, 3):
                yield _bar(done, 23, done * 0.06, 0.06, "Validation DataLoader 0")
            yield "\x1b[A"
            more = f", v_num=0, train_loss={one.loss:.3f}, val_loss={one.loss * 1.1:.3f}"
            yield _bar(one.inner, one.per_epoch, one.inner * smooth.value, smooth.value, f"Epoch {one.epoch}", more)
    yield "\n`Trainer.fit` stopped: `max_epochs=3` reached.\n"


def rich(run: Run) -> Iterator[str]:
    """Lightning's rich bar."""
    for one in run.steps():
        bar = "━" * (1 + 30 * one.inner // one.per_epoch)
        yield (
            f"\rEpoch {one.epoch}/{run.epochs - 1} {bar} {one.inner}/{one.per_epoch} 0:{_time(one.clock)} • 0:00:{one.per_epoch % 60:02d} "
            f"{1 / one.seconds:.2f}it/s v_num: 0.000 train_loss: {one.loss:.3f}"
        )
        if one.last:
            for done in range(1, 20, 4):
                yield f"\rValidation {'━' * done} {done}/20 0:00:0{done // 3} • 0:00:01 {33 + run.draw.random():.2f}it/s"
    yield "\n"


def mmengine(run: Run) -> Iterator[str]:
    """mmengine's lines; the training's begin anew with each epoch."""
    log = _every(run, 100)
    for one in run.steps():
        clock = f"2025/03/0{1 + int(one.clock) // 86400} {int(one.clock) // 3600 % 24:02d}:{_time(one.clock % 3600)}"
        if one.inner % log == 0:
            yield (
                f"{clock} - mmengine - INFO - Epoch(train)  [{one.epoch + 1}][{one.inner:4d}/{one.per_epoch}]  lr: {one.lr:.4e}  "
                f"eta: 0:{_time(100)}  time: {one.seconds:.4f}  data_time: {one.seconds * 0.03:.4f}  memory: 4321  "
                f"grad_norm: {one.norm:.4f}  loss: {one.loss:.4f}  loss_cls: {one.loss * 0.6:.4f}\n"
            )
        if one.last:
            yield f"{clock} - mmengine - INFO - Saving checkpoint at {one.epoch + 1} epochs\n"
            for done in (10, 20, 30):
                yield f"{clock} - mmengine - INFO - Epoch(val)  [{one.epoch + 1}][{done:3d}/30]    eta: 0:00:02  time: {0.1 + run.draw.random() / 50:.4f}  data_time: 0.0{run.draw.randrange(10, 40)}  memory: 990\n"
            yield f"{clock} - mmengine - INFO - Epoch(val) [{one.epoch + 1}][30/30]    coco/bbox_mAP: 0.3{one.epoch}00  data_time: 0.0200  time: 0.1010\n"


def detectron2(run: Run) -> Iterator[str]:
    """detectron2: one line for each 20 steps, and the inference in between."""
    log, check = _every(run, 120), _every(run, 5)
    for one in run.steps():
        clock = f"03/0{1 + int(one.clock) // 86400} {int(one.clock) // 3600 % 24:02d}:{_time(one.clock % 3600)}"
        if one.index % log == 0:
            yield (
                f"[{clock} d2.utils.events]:  eta: 0:10:00  iter: {one.index}  total_loss: {one.loss:.4g}  loss_cls: {one.loss * 0.4:.4g}  "
                f"loss_box_reg: {one.loss * 0.6:.4g}  time: {one.seconds:.4f}  last_time: {one.seconds:.4f}  data_time: {one.seconds * 0.02:.4f}  "
                f"last_data_time: 0.0081  lr: {one.lr:.5g}  max_mem: 5321M\n"
            )
        if one.index % check == 0:
            for done in (11, 50, 100):
                yield f"[{clock} d2.evaluation.evaluator]: Inference done {done}/100. Dataloading: 0.0011 s/iter. Inference: 0.0{run.draw.randrange(60, 80)} s/iter. Eval: 0.0002 s/iter. Total: 0.0701 s/iter. ETA=0:00:0{9 - done // 12}\n"
            yield f"[{clock} d2.engine.defaults]: Evaluation results for val in csv format:\n"


def torchvision(run: Run) -> Iterator[str]:
    """torchvision's MetricLogger, in training and in testing."""
    log = _every(run, 100)
    mean = 0.0
    for one in run.steps():
        mean = one.loss if not mean or not math.isfinite(one.loss) else 0.9 * mean + 0.1 * one.loss
        if (one.inner - 1) % log == 0 or one.last:
            yield (
                f"Epoch: [{one.epoch}]  [{one.inner - 1:4d}/{one.per_epoch}]  eta: 0:{_time((one.per_epoch - one.inner) * one.seconds)}  lr: {one.lr:.6f}  "
                f"loss: {one.loss:.4f} ({mean:.4f})  loss_classifier: {one.loss * 0.5:.4f} ({mean * 0.5:.4f})  time: {one.seconds:.4f}  "
                f"data: {one.seconds * 0.02:.4f}  max mem: 6021\n"
            )
        if one.last:
            yield f"Epoch: [{one.epoch}] Total time: 0:{_time(one.clock)} ({one.seconds:.4f} s / it)\ncreating index...\nindex created!\n"
            for done in range(0, 40, 10):
                yield f"Test:  [{done:3d}/40]  eta: 0:00:0{4 - done // 10}  model_time: 0.0{run.draw.randrange(600, 700)} (0.0641)  evaluator_time: 0.0051 (0.0060)  time: 0.0{run.draw.randrange(700, 900)}  data: 0.0040  max mem: 6021\n"
            yield "Test: Total time: 0:00:04 (0.0801 s / it)\nAveraged stats: model_time: 0.0641 (0.0650)  evaluator_time: 0.0060 (0.0061)\n"


def yolo(run: Run) -> Iterator[str]:
    """ultralytics: a heading for each epoch, its row drawn again and again, and the validation's row."""
    smooth = _Smooth()
    for one in run.steps():
        if one.inner == 1:
            yield "\n      Epoch    GPU_mem   box_loss   cls_loss   dfl_loss  Instances       Size\n"
        row = f"{one.epoch + 1:7d}/{run.epochs}      3.21G{one.loss:11.4g}{one.loss * 1.3:11.4g}{one.loss * 0.9:11.4g}{run.draw.randrange(20, 90):11d}        640"
        yield _bar(one.inner, one.per_epoch, one.inner * smooth(one.seconds), smooth.value, row)
        if one.last:
            yield "\n"
            what = "                 Class     Images  Instances      Box(P          R      mAP50  mAP50-95)"
            for done in range(1, 9):
                yield _bar(done, 8, done * 0.2, 0.2, what)
            yield f"\n                   all        128        929      0.64      0.537      0.6{one.epoch}      0.446\n"


def hand(run: Run) -> Iterator[str]:
    """Bars of one description for both loops, as scripts by hand have them, with the loss behind."""
    smooth = _Smooth()
    for one in run.steps():
        yield _bar(
            one.inner,
            one.per_epoch,
            one.inner * smooth(one.seconds),
            smooth.value,
            f"Epoch {one.epoch + 1}",
            f", loss={one.loss:.4f}",
        )
        if one.last:
            yield "\n"
            total = max(one.per_epoch // 4, 3)
            for done in range(1, total + 1):
                loss = (one.loss if math.isfinite(one.loss) else 2.0) * 1.6 * math.exp(run.draw.gauss(0, 0.05))
                yield _bar(done, total, done * 0.06, 0.06, f"Epoch {one.epoch + 1}", f", loss={loss:.4f}")
            yield f"\nEpoch {one.epoch + 1}: val_loss {one.loss * 1.2:.4f}, saved to out/{one.epoch}.pt\n"


LOGS: dict[str, Callable[[Run], Iterator[str]]] = {
    made.__name__: made
    for made in (trainer, trainer_numbers, lightning, rich, mmengine, detectron2, torchvision, yolo, hand)
}


def log(name: str, size: int, fault: str = "", seed: int = 0) -> str:
    """The log of one trainer."""
    return "".join(LOGS[name](Run(size, seed, fault)))
