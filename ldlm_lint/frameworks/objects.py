"""Objects that a configuration creates by class name: Hydra's ``_target_``, LightningCLI's ``class_path``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ldlm_lint.configs.document import Document, Entry, Shape
from ldlm_lint.frameworks.documents import DocumentEditor, is_record, settings_of
from ldlm_lint.frameworks.sections import Section, Setting
from ldlm_lint.model import Claim
from ldlm_lint.patterns import lazily
from ldlm_lint.source import Source

# Words of files that create objects, or set options that only Lightning's classes have.
HINT = lazily(rb"_target_|class_path|save_top_k|strategy")
_PARTS = frozenset({"strategy", "save_top_k"})


def sections(source: Source, document: Document) -> Iterator[tuple[Section, tuple[Claim, ...]]]:
    """The torch and Lightning objects that a configuration creates, as settings, and what must hold for each besides."""
    if is_record(source.path):
        return
    for mapping in document.entries:
        if mapping.shape is Shape.MAPPING and not mapping.shared and document.get(*mapping.path, document=mapping.document) is mapping:
            yield from _of_mapping(source, document, mapping)


def _of_mapping(source: Source, document: Document, mapping: Entry) -> Iterator[tuple[Section, tuple[Claim, ...]]]:
    name, arguments = _made(document, mapping)
    if not name and _PARTS.isdisjoint(one.name for one in document.children(*mapping.path, document=mapping.document)):
        return
    settings = settings_of(document, arguments)
    editor = DocumentEditor(source, document)
    section = Section("lightning", settings, editor, _is_complete(settings), (Claim("stands-outside-tests"),))
    where = ".".join(map(str, mapping.path))
    if name:
        yield section._replace(call=document_setting(document, mapping), made=name, where=f"{source.path.rpartition('/')[2]}/{where}"), ()
    elif "save_top_k" in settings or "strategy" in settings:
        # A mapping that creates no object itself: LightningCLI's ``trainer``, and parts that Hydra merges into one that does.
        yield section, (Claim("project-uses-lightning"),) if "save_top_k" in settings else ()


def _made(document: Document, mapping: Entry) -> tuple[str, Entry]:
    """The class instantiated by a mapping (empty if none), and the mapping of its arguments."""
    number = mapping.document
    target = document.get(*mapping.path, "_target_", document=number)
    if target is not None and isinstance(target.value, str):
        return target.value, mapping
    path = document.get(*mapping.path, "class_path", document=number)
    if path is None or not isinstance(path.value, str):
        return "", mapping
    arguments = document.get(*mapping.path, "init_args", document=number)
    return path.value, arguments if arguments is not None and arguments.shape is Shape.MAPPING else mapping


def document_setting(document: Document, mapping: Entry) -> Setting:
    """The line that names the class of an object."""
    number = mapping.document
    entry = document.get(*mapping.path, "_target_", document=number) or document.get(*mapping.path, "class_path", document=number)
    if entry is None:
        raise ValueError(f"{mapping.path} makes no object")
    return Setting(entry.name, entry.text, entry.whole, place=entry)


def _is_complete(settings: Mapping[str, Setting]) -> bool:
    return not any(name in settings for name in ("defaults", "<<", "_args_", "dict_kwargs"))
