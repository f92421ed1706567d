"""The meaning of keys and units in logs: one table of names, one of units.

The whole name of a key determines its meaning. A longer key (`critic/grad_norm`, `mtp_1 loss`, `base_lr`) is another
quantity, so nothing here looks at parts of a key, except for the split (`train/loss`, `val_loss`).
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

# Limits on cached names and texts: unknown text uses the same words repeatedly.
REMEMBERED = 4096
STEP = "step"
EPOCH = "epoch"


class Unit(NamedTuple):
    """The factor from a unit to ``base``."""

    base: str
    scale: float = 1.0


_SECOND, _PER_SECOND = "s", "1/s"
UNITS: dict[str, Unit] = {
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), Unit(_SECOND)),
    **dict.fromkeys(("ms", "msec", "millisecond", "milliseconds"), Unit(_SECOND, 1e-3)),
    **dict.fromkeys(("us", "µs"), Unit(_SECOND, 1e-6)),
    **dict.fromkeys(("min", "mins", "minutes", "minute"), Unit(_SECOND, 60.0)),
    **dict.fromkeys(("h", "hr", "hrs", "hour", "hours"), Unit(_SECOND, 3600.0)),
    "kib": Unit("B", 2.0**10),
    "mib": Unit("B", 2.0**20),
    "gib": Unit("B", 2.0**30),
    "tib": Unit("B", 2.0**40),
    # Programs divide by 1e9 and by 2**30 and write GB: such a figure is not converted.
    **{name: Unit(name.upper()) for name in ("kb", "mb", "gb", "tb")},
    "%": Unit("%"),
    **dict.fromkeys(("tflop/s", "tflops", "tflop/s/gpu", "tflops/gpu", "tflop/s/device"), Unit("TFLOP/s")),
}

# Rates name their quantity themselves: `14.19it/s`, `7,034 tok/s`. (canonical key, unit of one count)
_COUNTED = {
    "iterations_per_s": ("it", "its", "iter", "iters", "iteration", "iterations", "step", "steps", "batch", "batches"),
    "tokens_per_s": ("tok", "toks", "token", "tokens"),
    "samples_per_s": ("sample", "samples", "img", "imgs", "image", "images", "example", "examples", "seq", "seqs"),
}
RATES: dict[str, tuple[str, float]] = {
    f"{prefix}{counted}{per}": (key, scale)
    for key, names in _COUNTED.items()
    for counted in names
    for per in ("/s", "/sec", "/second", " per second", " per sec", "_per_sec", "_per_second")
    for prefix, scale in (("", 1.0), *((("k", 1e3), ("m", 1e6)) if counted.startswith("tok") else ()))
}
# ... and their inverse: `1.71s/it`, `5.9 ms/batch`.
PACES: dict[str, float] = {
    f"{unit}{per}{counted}": scale
    for unit, scale in (("s", 1.0), ("sec", 1.0), ("seconds", 1.0), ("ms", 1e-3), ("min", 60.0))
    for per in ("/", " / ")
    for counted in _COUNTED["iterations_per_s"]
}

# The whole names of quantities, normalised by `plain`, and the unit of a value without one (None: such a value is
# ambiguous and is kept under its own name only).
_NAMES: dict[str, str] = {
    "loss": "loss lm_loss total_loss loss_total train_loss training_loss running_loss batch_loss loss_step step_loss "
    "reduced_train_loss minibatch_loss loss/train/total cross_entropy_loss crossentropyloss ce_loss lossval loss_value",
    "grad_norm": "grad_norm gradnorm gradient_norm grad_norms gnorm total_grad_norm global_grad_norm total_norm "
    "grad_norm_total gradient_global_norm global_gradient_norm",
    "lr": "lr learning_rate learningrate current_lr curr_lr",
    "loss_scale": "loss_scale lossscale loss_scaling scale_factor grad_scale amp_scale",
    "step_time_s": "step_time iter_time iteration_time batch_time time_per_step time_per_iter time_per_iteration "
    "time_per_batch train_step_timing step_timing sec_per_step seconds_per_step sec_per_iter elapsed_time_per_iteration "
    "time/step time/iter time/batch step_time_s iter_time_s batch_time_s time/iteration train_step_time "
    "sec/step sec/iter sec/batch batch_cost s/it s/step s/iter seconds/step secs/step time_per_batch_s",
    "data_time_s": "data_time dataloader_time data_load_time data_loading_time data_time_s dataload_time load_time "
    "data_wait_time dataload data_loading reader_cost loader_time",
    "samples_per_s": "samples_per_sec samples_per_second samples/sec samples/s samples_per_s samples/second imgs/s "
    "img/s images/sec images/s imgs/sec img/sec examples/sec examples_per_sec images_per_sec images_per_second "
    "seq/s seqs/s sequences/sec train_samples_per_sec sample/s",
    "tokens_per_s": "tokens_per_sec tokens_per_second tokens/sec tokens/s tok/s tok/sec toks/s tokens_per_s tps "
    "tokens/second tok_per_sec toks_per_sec token/s token/sec token_per_sec wps words/s "
    "tokens_per_second_per_gpu tokens_per_gpu_per_second tokens_per_gpu_per_second_(tgs) tokens/s/gpu tokens/sec/gpu "
    "tok/s/gpu tgs",
    "iterations_per_s": "it/s its/s iter/s iters/s iter/sec iters/sec steps/sec steps/s step/s steps_per_sec "
    "steps_per_second iterations_per_sec iterations/sec iterations/s train_steps/sec batches/s batches/sec "
    "it_per_sec iter_per_sec updates/s ups",
    "tflops": "tflops tflop/s tflops_per_gpu tflops/gpu tflop/s/gpu tflop/s/device",
    "mfu": "mfu model_flops_utilization",
    "memory_bytes": "memory mem max_mem max_memory gpu_mem gpu_memory peak_memory peak_mem memory_allocated "
    "max_memory_allocated vram mem_allocated peak_vram cuda_memory allocated peak_gpu_memory cuda_mem gpu_mem_peak",
    "skipped_steps": "skipped_steps number_of_skipped_iterations skipped_iterations skipped_iters skipped",
    "nan_iterations": "number_of_nan_iterations nan_iterations nan_iters",
    "perplexity": "ppl perplexity metrics/train/language_perplexity",
    "accuracy": "acc accuracy",
    "samples": "consumed_samples",
    "tokens": "consumed_tokens",
    STEP: "step steps global_step globalstep iter iters iteration iterations it num_updates update updates batch "
    "train_step training_step optimizer_step opt_step batch_idx batch_id minibatch global_steps num_steps "
    "train_steps training_steps global_iter iter_num completed_step trainer/global_step train/global_step "
    "training/global_step current_step current_steps itr micro_step mini_batch minibatch_step n_iter stepnum curr_step cur_step "
    "optim_step",
    EPOCH: "epoch epochs ep train_epoch training_epoch train/epoch training/epoch current_epoch epoch_num epoch_idx "
    "num_epoch cur_epoch epch",
}
NAMES = {name: key for key, names in _NAMES.items() for name in names.split()}
# Which of several counters of a line is its step, the best first.
STEPS = ("global_step", "trainer/global_step", "train/global_step", "training/global_step", "num_updates", "step")

# Seconds for a step time without a unit: that of PyTorch's own clocks. A bare `dt` or `time` could be anything.
UNSAID = {"step_time_s": "s", "data_time_s": "s"}

_VALUE_UNIT = {
    "step_time_s": "s",
    "data_time_s": "s",
    "memory_bytes": "B",
    "tflops": "TFLOP/s",
}

SPLIT = re.compile(
    r"^(?:(?P<train>train(?:ing)?)|(?P<val>val(?:id(?:ation)?)?|eval(?:uation)?|test(?:ing)?|dev))(?:[_/.:]|$)"
)
# Besides names of their own, a split before them: `val_loss`, `train/grad_norm`, `eval loss`.
_SPLITTABLE = {"loss", "perplexity", "accuracy"}


_JOINTS = re.compile(r"[\s_\-]+|(?<=[a-z])(?=[A-Z])")


@lru_cache(REMEMBERED)
def plain(key: str) -> str:
    """A key in lower case, its words joined by underscores: `TrainLoss` and `train loss` are `train_loss`."""
    return _JOINTS.sub("_", key.strip()).lower().strip("_")


class Meaning(NamedTuple):
    """The canonical name of a key (empty: none) and the split it names (empty: it does not say)."""

    key: str
    split: str = ""


@lru_cache(REMEMBERED)
def meaning(key: str) -> Meaning:
    """What a whole key means; `Meaning("")` for an unknown one."""
    name = plain(key)
    found = SPLIT.match(name)
    if not found:
        return Meaning(NAMES.get(name, ""))
    split = "val" if found["val"] else "train"
    inner = NAMES.get(name[found.end() :], "")
    if split == "val" and inner not in _SPLITTABLE:
        return Meaning("", split)
    known = inner or NAMES.get(name, "")
    return Meaning(known, split if known else "")


def in_table(unit: str) -> bool:
    """Whether this is a unit, a rate or a pace (lower case)."""
    return unit in UNITS or unit in RATES or unit in PACES


def in_unit(key: str, unit: str) -> Unit | None:
    """The conversion of a value of a canonical key from a printed unit (lower case, may be empty); None if
    impossible.
    """
    wanted = _VALUE_UNIT.get(key)
    if not unit:
        if wanted and key in UNSAID:
            return Unit(UNSAID[key])
        return Unit("TFLOP/s") if key == "tflops" else None if wanted else Unit("")
    known = UNITS.get(unit)
    if wanted:
        return known if known and known.base == wanted else None
    if key in ("mfu", "accuracy"):
        return known if known and known.base == "%" else None
    if key in _COUNTED:
        return Unit("1/s", RATES[unit][1]) if RATES.get(unit, ("",))[0] == key else None
    return None
