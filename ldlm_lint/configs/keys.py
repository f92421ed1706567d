"""Keys of a project's own configuration files, which its Python reads.

A key is a candidate by its name and value; the project decides whether a program reads the file, and whether the value
matters where it is used.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ldlm_lint.checkers.rule_files import findings_of
from ldlm_lint.configs.document import Document
from ldlm_lint.configs.framework_sections import DocumentEditor, setting_of
from ldlm_lint.frameworks.sections import Section
from ldlm_lint.model import Claim, Confidence, Finding
from ldlm_lint.rules.linter import DEAD_CONFIG_KEY
from ldlm_lint.source import Source

# A file with more keys than this is data, not a configuration; a list of files may have any length.
_MOST = 1000


def findings(source: Source, document: Document, options: Mapping[str, object]) -> Iterator[Finding]:
    """The findings about values that the program reads from here, and about unread keys."""
    if sum(1 for entry in document.entries if entry.name) > _MOST:
        return
    yield from findings_of(_own_settings(source, document), options)
    yield from _dead(document)


def _own_settings(source: Source, document: Document) -> Section:
    """The keys with single values, for rules that know their own by name."""
    scalars = (one for one in document.scalars() if one.name and not one.shared)
    settings = {f"{one.document}:{'.'.join(map(str, one.path))}": setting_of(one, one.name) for one in scalars}
    return Section("own", settings, DocumentEditor(source, document), complete=False)


def _number(options: Mapping[str, object], name: str, default: object) -> int:
    value = options.get(name, default)
    if not isinstance(value, int):
        raise TypeError(f"{name} must be an int, not {value!r}")
    return value


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


# Unread keys


def _dead(document: Document) -> Iterator[Finding]:
    """Every key of a mapping may be unread; the project decides, and names only the topmost of a section."""
    for entry in document.entries:
        if entry.name and entry.key_span is not None and not entry.shared:
            args = (("key", ".".join(map(str, entry.path))), ("program", "a program"))
            claims = (Claim("configuration-key-is-dead"),)
            yield Finding(DEAD_CONFIG_KEY.symbol, DEAD_CONFIG_KEY.code, entry.key_span, args, Confidence.MEDIUM, claims=claims)
