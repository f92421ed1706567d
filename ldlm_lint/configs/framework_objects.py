"""Objects that a configuration creates by class name: Hydra's ``_target_``, LightningCLI's ``class_path``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ldlm_lint.checkers.rule_files import findings_of
from ldlm_lint.configs.document import Document, Entry, Shape
from ldlm_lint.configs.framework_sections import DocumentEditor, is_record, settings_of
from ldlm_lint.frameworks.sections import Section, Setting
from ldlm_lint.model import Claim, Finding
from ldlm_lint.patterns import lazily
from ldlm_lint.source import Source

# Words of files that create objects, or set options that only Lightning's classes have.
HINT = lazily(rb"_target_|class_path|save_top_k|strategy")
_PARTS = frozenset({"strategy", "save_top_k"})


def findings(source: Source, document: Document, options: Mapping[str, object]) -> Iterator[Finding]:
    """The findings about torch and Lightning objects created by a configuration."""
    if is_record(source.path):
        return
    for mapping in document.entries:
        if mapping.shape is Shape.MAPPING and not mapping.shared and document.get(*mapping.path, document=mapping.document) is mapping:
            yield from _of_mapping(source, document, mapping, options)


def _of_mapping(source: Source, document: Document, mapping: Entry, options: Mapping[str, object]) -> Iterator[Finding]:
    name, arguments = _made(document, mapping)
    if not name and _PARTS.isdisjoint(one.name for one in document.children(*mapping.path, document=mapping.document)):
        return
    settings = settings_of(document, arguments)
    editor = DocumentEditor(source, document)
    section = Section("lightning", settings, editor, _is_complete(settings), (Claim("stands-outside-tests"),))
    where = ".".join(map(str, mapping.path))
    if name:
        made = section._replace(call=document_setting(document, mapping), made=name, where=f"{source.path.rpartition('/')[2]}/{where}")
        yield from findings_of(made, options)
    else:
        yield from _by_keys(section, options)


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


def _by_keys(section: Section, options: Mapping[str, object]) -> Iterator[Finding]:
    """A mapping that creates no object itself: LightningCLI's ``trainer``, and parts that Hydra merges into one that
    does."""
    if "strategy" in section.settings:
        yield from findings_of(section, options) if "save_top_k" not in section.settings else ()
    if "save_top_k" in section.settings:
        known = Claim("project-uses-lightning")
        yield from (one._replace(claims=(*one.claims, known)) for one in findings_of(section, options))
