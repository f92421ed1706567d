"""Recognises by keys which mappings of a configuration file a training framework reads, and their meaning."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from ldlm_lint.configs import edits
from ldlm_lint.configs.document import Document, Entry, Shape
from ldlm_lint.configs.inheritance import BASE_KEYS
from ldlm_lint.frameworks.sections import Options, Scalar, Section, Setting, vocabulary
from ldlm_lint.model import Claim, Edit
from ldlm_lint.patterns import lazily
from ldlm_lint.source import Source

# A run's own record of its settings is data that users do not edit.
_RECORDED = lazily(
    r"(?:^|/)(?:wandb|mlruns|lightning_logs|tb_logs|tensorboard|checkpoint-\d+|\.hydra)/"
    r"|(?:^|/)(?:trainer_state|training_args|all_results|adapter_config|generation_config|config_sentence_transformers|wandb-metadata)\.json$",
    re.I,
)
# A file without any of these names has no such settings; searching them takes a tenth of the time of checking its keys.
HINT = lazily(
    "|".join(sorted(vocabulary("transformers").certain | vocabulary("axolotl").distinctive)).encode()
)
# More of TrainingArguments' fields than a person writes: a dump of all of them.
_DUMPED = 60
_ENOUGH_OF_A_RUN = ("per_device_train_batch_size", "per_gpu_train_batch_size", "gradient_accumulation_steps", "num_train_epochs", "max_steps")
# Files of clusters and services, whose jobs pass values on to a program under other names.
_OF_ANOTHER_FORMAT = frozenset({"$schema", "apiVersion", "services", "jobs", "openapi"})
_OF_A_JOB = frozenset({"inputs", "outputs", "properties", "env", "environment"})
_TRAINS, _PREDICTS = "do_train", "do_predict"
# Keys that only one framework has: then the project's Python need not show the reader of the file.
_OF_LLAMA_FACTORY = frozenset({"finetuning_type", "cutoff_len", "stage", "template", "preprocessing_num_workers", "plot_loss", "dataset_dir"})
_NEEDED_OF_LLAMA_FACTORY = 2
# `strategy.init_args.timeout.hours` is as deep as a rule looks.
_DEPTH = 3


class DocumentEditor(NamedTuple):
    """Edits of a configuration file for settings whose place is an `Entry`."""

    source: Source
    document: Document

    def replace(self, setting: Setting, value: Scalar) -> tuple[Edit, ...] | None:
        """Write another value in the style of the file."""
        return edits.set_value(self.source, self.document, _entry(setting), value)

    def add(self, beside: Setting, name: str, value: Scalar | Options) -> tuple[Edit, ...] | None:
        """Write one more key after another one."""
        return None if isinstance(value, Mapping) else edits.insert_beside(self.source, self.document, _entry(beside), name, value)

    def remove(self, setting: Setting) -> tuple[Edit, ...] | None:
        """Take a key out with its line."""
        return edits.remove(self.source, self.document, _entry(setting))


def _entry(setting: Setting) -> Entry:
    if not isinstance(setting.place, Entry):
        raise TypeError(f"{setting.name} is no entry of a document")
    return setting.place


def sections(source: Source, document: Document) -> Iterator[Section]:
    """Every mapping of a document that holds the settings of transformers' Trainer, or of code that forwards them."""
    if is_record(source.path) or not _OF_ANOTHER_FORMAT.isdisjoint(one.name for one in document.children()):
        return
    for mapping in document.entries:
        if mapping.shape is not Shape.MAPPING or mapping.shared or _OF_A_JOB & set(mapping.path):
            continue
        framework = _framework({one.name for one in document.children(*mapping.path, document=mapping.document)})
        if framework is not None:
            section = _section(source, document, framework, settings_of(document, mapping))
            if _trains(section):
                yield section


def engine_section(source: Source, document: Document) -> Section | None:
    """The root of a DeepSpeed file as settings; None for any other file."""
    root = document.get()
    if is_record(source.path) or root is None or root.shape is not Shape.MAPPING:
        return None
    settings = settings_of(document, root)
    if not vocabulary("deepspeed").recognises(settings):
        return None
    return Section("deepspeed", settings, DocumentEditor(source, document), claims=(Claim("stands-outside-tests"),))


def is_record(path: str) -> bool:
    """Whether a file is in a folder where runs record their arguments, or has the name of such a record."""
    return _RECORDED.search(path) is not None


def settings_of(document: Document, mapping: Entry) -> Mapping[str, Setting]:
    """The settings of a mapping by their written names; those of inner mappings with dots in between."""
    return dict(_settings(document, mapping, "", 0))


def _settings(document: Document, mapping: Entry, prefix: str, depth: int) -> Iterator[tuple[str, Setting]]:
    for child in document.children(*mapping.path, document=mapping.document):
        name = f"{prefix}{child.name}"
        if not child.name:
            continue
        if child.shape is Shape.SCALAR:
            yield name, setting_of(child, name)
            continue
        # It exists with any content: rules do not compare a list or a mapping.
        yield name, Setting(name, None, child.whole, place=child)
        if depth < _DEPTH:
            yield from _settings(document, child, f"{name}.", depth + 1)


def setting_of(entry: Entry, name: str) -> Setting:
    """A scalar as a setting."""
    text = "" if entry.value is None else str(entry.value) if isinstance(entry.value, (bool, int, float)) else entry.text
    return Setting(name, text, entry.whole, place=entry)


def own_settings(source: Source, document: Document) -> Section:
    """The keys with single values, for rules that know their own by name."""
    scalars = (one for one in document.scalars() if one.name and not one.shared)
    settings = {f"{one.document}:{'.'.join(map(str, one.path))}": setting_of(one, one.name) for one in scalars}
    return Section("own", settings, DocumentEditor(source, document), complete=False)


def _framework(names: set[str]) -> str | None:
    return next((one for one in ("axolotl", "transformers") if vocabulary(one).recognises(names)), None)


def _trains(section: Section) -> bool:
    """Whether the settings are those of a training written by a user, not of an evaluation and not a dump."""
    if sum(name in vocabulary("transformers").fields for name in section.settings) > _DUMPED:
        return False
    if section.flag(_TRAINS) is False or (section.on(_PREDICTS) and not section.on(_TRAINS)):
        return False
    return any(name in section.settings for name in _ENOUGH_OF_A_RUN)


def _section(source: Source, document: Document, framework: str, settings: Mapping[str, Setting]) -> Section:
    own = vocabulary(framework).names
    renamed = {own_name: name for name, own_name in own.items()}
    by_name = {renamed.get(name, name): setting for name, setting in settings.items()}
    reader = "llamafactory" if len(_OF_LLAMA_FACTORY & settings.keys()) >= _NEEDED_OF_LLAMA_FACTORY else framework
    if reader == "llamafactory":
        # It trains adapters unless configured otherwise.
        by_name.setdefault("finetuning_type", Setting("finetuning_type", "lora", source.span(0, 0)))
    claims = (Claim("stands-outside-tests"), Claim("trainer-reads-configuration", reader))
    # Another file may be merged into this one: by a YAML merge key, by Hydra, or by an extension mechanism by name.
    complete = not any(name in settings for name in ("defaults", "<<", *BASE_KEYS))
    return Section(framework, by_name, DocumentEditor(source, document), complete, claims)
