"""Checkpoints that a Trainer never deletes: their number, from its settings."""

from __future__ import annotations

from typing import NamedTuple

from ldlm_lint.frameworks.sections import Section, Setting, vocabulary
from ldlm_lint.vocabulary.kept_checkpoints import Schedule

LIMIT = "save_total_limit"
# Where the missing limit is reported: next to the setting for how often the Trainer saves.
_PLACES = ("save_steps", "save_strategy", "max_steps", "num_train_epochs", "output_dir")
# An adapter's checkpoint is a thousandth of the model's.
ADAPTER = "lora_config"
_ADAPTERS = (ADAPTER, "use_peft", "lora_enable", "use_lora", "adapter", "lora_r", "lora_rank", "peft_type", "q_lora", "use_qlora")
_ADAPTER_TYPES = ("lora", "oft", "qlora")
_SAMPLES, _BATCH, _ACCUMULATION = "max_samples", "per_device_train_batch_size", "gradient_accumulation_steps"


class Missing(NamedTuple):
    """A section without a limit: where that is reported, the empty limit itself if there is one, and what happens to the
    checkpoints, as text."""

    place: Setting
    limit: Setting | None
    becomes: str


def without_limit(section: Section) -> Missing | None:
    """What a Trainer does that keeps every checkpoint; None where few, or those of adapters, are kept, or that is unknown."""
    if section.framework == "own" or vocabulary(section.framework).defaults.get(LIMIT) is not None or section.has(LIMIT):
        return None
    limit = section.settings.get(LIMIT)
    place = limit or section.call or next((section.settings[name] for name in _PLACES if name in section.settings), None)
    becomes = _what_becomes(section)
    if place is None or not becomes or not (section.complete or limit) or trains_adapters(section):
        return None
    return Missing(place, limit, becomes + (", weights only" if section.flag("save_only_model") else ""))


def rhythm(section: Section) -> str:
    """How often Lightning's ModelCheckpoint saves, from its settings: " (one every 500 steps)"."""
    for name, unit in (("every_n_train_steps", "steps"), ("every_n_epochs", "epochs")):
        number = section.number(name)
        if number is not None and number >= 1:
            return f" (one every {number:g} {unit})" if number > 1 else f" (one per {unit.removesuffix('s')})"
    return ""


def _what_becomes(section: Section) -> str:
    """The result for the checkpoints, as text; empty if they are few or unknown.

    A file that leaves a number open is a template; code with a number from elsewhere saves accordingly.
    """
    schedule = _schedule(section)
    if schedule is not None:
        return "" if schedule.harmless else schedule.described
    saves = section.text("save_strategy") in (("steps", "epoch") if section.has("save_strategy") else (None,))
    return "keeps every checkpoint it writes" if section.in_code and saves else ""


def _schedule(section: Section) -> Schedule | None:
    """When the Trainer saves; None if a relevant setting is unknown."""
    strategy = section.text("save_strategy")
    if strategy is None and section.has("save_strategy"):
        return None
    # An unquoted `no` is False in YAML.
    strategy = "no" if section.flag("save_strategy") is False else (strategy or "steps").lower()
    numbers: dict[str, float | None] = {}
    for name in ("save_steps", "max_steps", "num_train_epochs"):
        numbers[name] = section.number(name)
        if numbers[name] is None and section.has(name):
            return None
    default = Schedule()
    return Schedule(
        strategy,
        default.every if numbers["save_steps"] is None else numbers["save_steps"],
        numbers["max_steps"],
        default.epochs if numbers["num_train_epochs"] is None else numbers["num_train_epochs"],
        _most_steps(section, numbers["num_train_epochs"] or default.epochs or 1),
    )


def _most_steps(section: Section, epochs: float) -> float | None:
    """An upper bound of the steps if the number of samples is limited: for one GPU, over all datasets."""
    samples = section.number(_SAMPLES)
    if samples is None:
        return None
    datasets = (section.text("dataset") or "").count(",") + 1
    batch = (section.number(_BATCH) or 1) * (section.number(_ACCUMULATION) or 1)
    return samples * datasets * epochs / max(batch, 1)


def trains_adapters(section: Section) -> bool:
    """Whether only adapters (LoRA and the like) are trained: their state is a thousandth of the model's."""
    kinds = {section.text(name) for name in ("finetuning_type", "adapter", "tuner_type", "train_type", "sft_type")}
    if kinds & set(_ADAPTER_TYPES):
        return True
    return any(name.rpartition(".")[2] in _ADAPTERS and section.on(name) for name in section.settings)
