"""The settings of a Trainer cost the same in every make: Python calls, derived classes, parsed dataclasses, files and flags."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path

from collected import for_every

from ldlm_lint import engine
from ldlm_lint.config import Config

Settings = Mapping[str, object]
BASE: dict[str, object] = {
    "output_dir": "runs",
    "per_device_train_batch_size": 4,
    "learning_rate": 1e-4,
    "lr_scheduler_type": "cosine",
    "optim": "adamw_torch_fused",
    "num_train_epochs": 3,
    "save_total_limit": 2,
    "dataloader_num_workers": 4,
    "dataloader_persistent_workers": True,
}
REENTRANT = {"gradient_checkpointing": True, "gradient_checkpointing_kwargs": {"use_reentrant": True}}
SCENES: dict[str, tuple[dict[str, object], tuple[str, ...]]] = {
    "nothing": ({}, ()),
    "timeout": ({"ddp_timeout": 180000}, ()),
    "unused": ({"ddp_find_unused_parameters": True}, ()),
    "reentrant": ({"ddp_find_unused_parameters": True, **REENTRANT}, ()),
    "static": ({"ddp_static_graph": True, "gradient_accumulation_steps": 8}, ()),
    "plain optimizer": ({"optim": "adamw_torch"}, ()),
    "no workers": ({"dataloader_num_workers": 0}, ("dataloader_persistent_workers",)),
    "many workers": ({"dataloader_num_workers": 64}, ()),
    "workers restart": ({}, ("dataloader_persistent_workers",)),
    "workers are let go": ({"dataloader_persistent_workers": False}, ()),
    "queue without workers": ({"dataloader_prefetch_factor": 4}, ("dataloader_num_workers", "dataloader_persistent_workers")),
    "all checkpoints": ({"save_steps": 100, "max_steps": 100_000}, ("save_total_limit", "num_train_epochs")),
    "one for each epoch": ({"save_strategy": "epoch", "num_train_epochs": 100}, ("save_total_limit",)),
}
"""What is set besides, and what is left out."""
RULES = {
    "timeout": {"excessive-collective-timeout"},
    "unused": {"ddp-find-unused-parameters"},
    "reentrant": {"ddp-find-unused-parameters", "find-unused-with-reentrant-checkpoint"},
    "static": {"static-graph-with-no-sync"},
    "plain optimizer": {"optimizer-not-fused"},
    "no workers": {"dataloader-in-main-process"},
    "many workers": {"dataloader-too-many-workers"},
    "workers restart": {"dataloader-without-persistent-workers"},
    "workers are let go": {"dataloader-without-persistent-workers"},
    "queue without workers": {"dataloader-worker-options-without-workers"},
    "all checkpoints": {"unbounded-checkpoints"},
    "one for each epoch": {"unbounded-checkpoints"},
}
IMPORTS = (
    "import sys\nfrom dataclasses import dataclass, field\n\nfrom transformers import AutoModelForCausalLM, HfArgumentParser, Trainer, TrainingArguments\n"
)
RUN = "\n\ndef main(arguments):\n    Trainer(model=AutoModelForCausalLM.from_pretrained('gpt2'), args=arguments, train_dataset=[1]).train()\n\n\n"
LAUNCH = "#!/bin/bash\ntorchrun --nproc_per_node 4 train.py"


def passed(settings: Settings, value: str = "{!r}") -> str:
    return ", ".join(f"{name}={value.format(one, name=name)}" for name, one in settings.items())


def fields(settings: Settings) -> str:
    return "".join(
        f"    {name}: {type(one).__name__} = {f'field(default_factory=lambda: {one!r})' if isinstance(one, dict) else repr(one)}\n"
        for name, one in settings.items()
    )


def call(settings: Settings) -> dict[str, str]:
    return {"train.py": f"{IMPORTS}{RUN}main(TrainingArguments({passed(settings)}))\n"}


def dictionary(settings: Settings) -> dict[str, str]:
    options = f"def options():\n    told = {{}}\n    told.update({dict(settings)!r})\n    return told\n"
    return {"train.py": f"{IMPORTS}{RUN}{options}\n\nmain(TrainingArguments(**options()))\n"}


def constants(settings: Settings) -> dict[str, str]:
    told = "".join(f"{name.upper()} = {one!r}\n" for name, one in settings.items())
    given = ", ".join(f"{name}=told.{name.upper()}" for name in settings)
    return {"told.py": told, "train.py": f"{IMPORTS}import told\n{RUN}main(TrainingArguments({given}))\n"}


def derived(settings: Settings) -> dict[str, str]:
    own = f"@dataclass\nclass Own(TrainingArguments):\n{fields(settings)}"
    return {"own.py": f"{IMPORTS}\n{own}", "train.py": f"{IMPORTS}from own import Own\n{RUN}main(HfArgumentParser(Own).parse_args_into_dataclasses()[0])\n"}


def handed(settings: Settings) -> dict[str, str]:
    told = f"@dataclass\nclass Told:\n{fields(settings)}"
    given = ", ".join(f"{name}=told.{name}" for name in settings)
    parsed = "(told,) = HfArgumentParser(Told).parse_args_into_dataclasses()\n"
    return {"told.py": f"{IMPORTS}\n{told}", "train.py": f"{IMPORTS}from told import Told\n{RUN}{parsed}main(TrainingArguments({given}))\n"}


def of_trl(settings: Settings) -> dict[str, str]:
    imports = "from transformers import AutoModelForCausalLM\nfrom trl import SFTConfig, SFTTrainer\n"
    return {"train.py": f"{imports}{RUN.replace('Trainer(', 'SFTTrainer(')}main(SFTConfig({passed(settings)}))\n"}


def document(settings: Settings) -> dict[str, str]:
    text = "".join(f"{name}: {json.dumps(one)}\n" for name, one in settings.items())
    parsed = f"{IMPORTS}{RUN}main(HfArgumentParser(TrainingArguments).parse_yaml_file(sys.argv[1])[0])\n"
    return {"train.py": parsed, "told.yaml": text, "run.sh": f"{LAUNCH} told.yaml\n"}


def flags(settings: Settings) -> dict[str, str]:
    given = " ".join(f"--{name} {one if isinstance(one, str) else repr(json.dumps(one))}" for name, one in settings.items())
    parsed = f"{IMPORTS}{RUN}main(HfArgumentParser(TrainingArguments).parse_args_into_dataclasses()[0])\n"
    return {"train.py": parsed, "run.sh": f"{LAUNCH} {given}\n"}


MAKES = {one.__name__: one for one in (call, dictionary, constants, derived, handed, of_trl, document, flags)}


@for_every("make", MAKES.values(), ids=MAKES)
@for_every("scene", SCENES)
def test_settings_cost_the_same_wherever_they_are_written(scene: str, make: Callable[[Settings], dict[str, str]], tmp_path: Path) -> None:
    given, left_out = SCENES[scene]
    settings = {name: value for name, value in {**BASE, **given}.items() if name not in left_out}
    for name, text in {**make(settings), "pyproject.toml": "[tool.ldlm-lint]\n"}.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    report = engine.run([tmp_path], Config.load(tmp_path), base=tmp_path)
    found = {one.rule for one in report.findings}
    wanted = RULES.get(scene, set())
    assert wanted <= found
    # Many workers that restart are two things, in every make.
    assert found - wanted <= ({"dataloader-without-persistent-workers"} if scene == "many workers" else set())
