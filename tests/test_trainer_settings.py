"""The settings of a Trainer cost the same whether they are written in Python, in a file, or set afterwards."""

from __future__ import annotations

import pytest
from collected import for_every
from snippets import ROOT, context

from ldlm_lint.checkers.configurations.settings import findings as findings_of_file
from ldlm_lint.checkers.trainer_settings import find, sections
from ldlm_lint.configs.read import read
from ldlm_lint.source import Kind, Source

IMPORT = "from dataclasses import dataclass, field\nfrom transformers import TrainingArguments\n"
SETTINGS = {
    "num_train_epochs": "5",
    "per_device_train_batch_size": "4",
    "lr_scheduler_type": "'cosine'",
    "optim": "'adamw_torch'",
    "gradient_accumulation_steps": "8",
    "ddp_find_unused_parameters": "True",
    "ddp_timeout": "180000",
    "save_steps": "100",
    "dataloader_num_workers": "32",
}
# What only launches and programs that read a file decide: a number of GPUs that varies, a checkpoint that the model switches on.
OF_FILES = {"gradient-accumulation-fixed", "find-unused-with-reentrant-checkpoint"}


def rules(code: str) -> set[str]:
    return {one.rule for one in find(context({"module.py": code}).view)}


def call(settings: dict[str, str]) -> str:
    passed = ", ".join(f"{name}={value}" for name, value in settings.items())
    return f"{IMPORT}arguments = TrainingArguments('runs', {passed})\n"


def of_yaml(settings: dict[str, str]) -> set[str]:
    text = "".join(f"{name}: {value.lower()}\n" for name, value in settings.items())
    one = Source.from_bytes(f"{ROOT}/config.yaml", text.encode(), Kind.YAML)
    return {finding.rule for finding in findings_of_file(one, read(one), {})}


@for_every("left_out", ["", *SETTINGS])
def test_python_and_files_agree(left_out: str) -> None:
    settings = {name: value for name, value in SETTINGS.items() if name != left_out}
    assert rules(call(settings)) | OF_FILES == of_yaml(settings) | OF_FILES


@pytest.mark.parametrize("name, rule", [("optim", "optimizer-not-fused"), ("ddp_timeout", "excessive-collective-timeout"), ("ddp_find_unused_parameters", "ddp-find-unused-parameters")])
def test_a_setting_counts_wherever_it_is_written(name: str, rule: str) -> None:
    value = SETTINGS[name]
    for text in (
        f"arguments = TrainingArguments('runs', {name}={value})",
        f"options = {{'{name}': {value}}}\narguments = TrainingArguments('runs', **options)",
        f"VALUE = {value}\narguments = TrainingArguments('runs', {name}=VALUE)",
        f"arguments = TrainingArguments('runs')\narguments.{name} = {value}",
        f"@dataclass\nclass Own(TrainingArguments):\n    {name}: str = {value}",
        f"@dataclass\nclass Own(TrainingArguments):\n    {name}: str = field(default={value}, metadata=None)",
        f"class Base(TrainingArguments):\n    x: int = 1\nclass Own(Base):\n    {name}: str = {value}",
    ):
        assert rule in rules(f"{IMPORT}{text}\n"), text


@for_every(
    "text",
    [
        "arguments = TrainingArguments('runs', {name}=value)",
        "arguments = TrainingArguments('runs', {name}={value} if wanted else other)",
        "arguments = TrainingArguments('runs', {name}={value})\narguments.{name} = other",
        "def change(arguments):\n    arguments.{name} = other\nchange(TrainingArguments('runs', {name}={value}))",
        "arguments = TrainingArguments('runs', do_train=False, {name}={value})",
        "class Own(TrainingArguments):\n    {name}: str = {value}\n    def __post_init__(self):\n        self.{name} = other",
        "class Own(Other):\n    {name}: str = {value}",
        "arguments = Other('runs', {name}={value})",
    ],
)
@for_every("name", ["optim", "ddp_timeout", "ddp_find_unused_parameters"])
def test_what_is_not_known_is_no_finding(text: str, name: str) -> None:
    assert not rules(IMPORT + text.format(name=name, value=SETTINGS[name])) - {"unbounded-checkpoints"}


@for_every("value", ["10**400", "-1", "float('nan')", "1e999", "'\\x00'", "b'x'", "[]", "...", "None", "(lambda: 0)()", "0x" + "f" * 400])
@for_every("name", ["ddp_timeout", "dataloader_num_workers", "num_train_epochs", "save_steps", "optim"])
def test_odd_values_end_nothing(name: str, value: str) -> None:
    rules(f"{IMPORT}arguments = TrainingArguments('runs', {name}={value})\n")
    rules(f"{IMPORT}class Own(TrainingArguments):\n    {name}: int = {value}\n")


def test_a_member_of_an_enumeration_is_worth_its_name() -> None:
    code = "import transformers\nfrom transformers import IntervalStrategy\ntransformers.TrainingArguments('runs', save_strategy=IntervalStrategy.EPOCH)\n"
    [(_, section)] = sections(context({"module.py": code}).view)
    assert section.text("save_strategy") == "epoch"
    assert section.text("output_dir") == "runs"
    assert section.complete
