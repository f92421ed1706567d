"""Checkpoints that a Trainer never deletes: their number, from its settings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ldlm_lint.frameworks.sections import Section, integer, unsafe, vocabulary
from ldlm_lint.model import Claim, Finding
from ldlm_lint.rules.checkpoint_files import CHECKPOINTS_TO_KEEP, KEEP_REASON, UNBOUNDED_CHECKPOINTS
from ldlm_lint.rules.kept_checkpoints import Schedule

LIMIT = "save_total_limit"
# Where the missing limit is reported: next to the setting for how often the Trainer saves.
_PLACES = ("save_steps", "save_strategy", "max_steps", "num_train_epochs", "output_dir")
# An adapter's checkpoint is a thousandth of the model's.
ADAPTER = "lora_config"
_ADAPTERS = (ADAPTER, "use_peft", "lora_enable", "use_lora", "adapter", "lora_r", "lora_rank", "peft_type", "q_lora", "use_qlora")
_ADAPTER_TYPES = ("lora", "oft", "qlora")
_SAMPLES, _BATCH, _ACCUMULATION = "max_samples", "per_device_train_batch_size", "gradient_accumulation_steps"


def unbounded(section: Section, options: Mapping[str, object]) -> Iterator[Finding]:
    """The finding about a section without a limit on a Trainer's checkpoints."""
    if vocabulary(section.framework).defaults.get(LIMIT) is not None or section.has(LIMIT):
        return
    limit = section.settings.get(LIMIT)
    place = limit or section.call or next((section.settings[name] for name in _PLACES if name in section.settings), None)
    becomes = _what_becomes(section)
    if place is None or not becomes or not (section.complete or limit) or trains_adapters(section):
        return
    keep = integer(options, CHECKPOINTS_TO_KEEP)
    edits = section.editor.replace(limit, keep) if limit else section.editor.add(place, LIMIT, keep)
    size = ", weights only" if section.flag("save_only_model") else ""
    yield section.report(
        UNBOUNDED_CHECKPOINTS,
        place,
        {"what": f"`{LIMIT}` is not set, so the Trainer {becomes}{size}"},
        fix=unsafe(f"set {LIMIT}={keep}", edits, KEEP_REASON),
        claims=(Claim("trainer-setting-is-unset", LIMIT),),
    )


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
