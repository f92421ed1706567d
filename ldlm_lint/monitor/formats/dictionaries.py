"""Loggers that write dictionaries, to the console or to a file of JSON lines."""

from __future__ import annotations

from ldlm_lint.monitor.dicts import Shape
from ldlm_lint.monitor.formats.base import MIB, SECONDS
from ldlm_lint.monitor.names import Unit

_S = {"step_time_s": SECONDS, "data_time_s": SECONDS, "memory_bytes": MIB}
_FAIRSEQ = {
    "wps": "tokens_per_s",
    "ups": "iterations_per_s",
    **{f"train_{key}": value for key, value in (("num_updates", "step"), ("gnorm", "grad_norm"), ("lr", "lr"), ("wps", "tokens_per_s"), ("ups", "iterations_per_s"), ("loss_scale", "loss_scale"))},
    "valid_num_updates": "step",
    "update": "",
}  # fmt: skip
# The Trainer's summary of a whole run is not a point of its curves.
_TRAINER = {"train_samples_per_second": "", "train_steps_per_second": "", "eval_accuracy": "accuracy"}


def _keys(text: str) -> frozenset[str]:
    return frozenset(text.split())


SHAPES = (
    Shape("fairseq/json", _keys("num_updates wps"), _FAIRSEQ, split="train"),
    Shape("fairseq/json-epoch", _keys("train_num_updates train_loss"), _FAIRSEQ, split="train"),
    Shape("fairseq/json-val", _keys("valid_num_updates valid_loss"), _FAIRSEQ, split="val"),
    Shape("huggingface/end", _keys("train_runtime train_loss"), {**_TRAINER, "train_loss": ""}, split="train"),
    Shape("huggingface/eval", _keys("eval_runtime epoch"), _TRAINER, split="val"),
    Shape("huggingface", _keys("loss learning_rate epoch"), _TRAINER, split="train"),
    Shape("mmengine/json", _keys("data_time time loss iter"), {"time": "step_time_s", "step": "", "iter": "step"}, _S, "train"),
    Shape("detectron2/json", _keys("iteration total_loss time"), {"time": "step_time_s"}, _S, "train"),
    Shape("metric-logger/json", _keys("train_loss epoch n_parameters"), {"train_lr": "lr"}),
    Shape("ldlm", _keys("epoch step batch_in_epoch loss lr"), {"text_accuracy": ""}, split="train"),
    Shape("ldlm/wandb", _keys("train/loss train/it_per_sec train/step"), {"train/step": "step", "train/total_tokens": "tokens"}, split="train"),
    Shape("litgpt/json", _keys("loss iter step iter_time"), {"iter": ""}, {"step_time_s": SECONDS}, "train"),
    Shape("torchtitan/json", _keys("loss_metrics/global_avg_loss"), {"loss_metrics/global_avg_loss": "loss", "throughput(tps)": "tokens_per_s"}),
    Shape("nemo/json", _keys("reduced_train_loss global_step"), {"consumed_samples": "samples"}, split="train"),
    Shape("verl/json", _keys("actor/grad_norm"), {"actor/grad_norm": "grad_norm", "actor/lr": "lr", "training/global_step": "step"}),
)  # fmt: skip

UNKNOWN_UNIT = Unit("")
