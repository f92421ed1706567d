"""Keys of a project's own configuration files, which its Python reads.

A key is a candidate by its name and value; the project decides whether a program reads the file, and whether the value
matters where it is used.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ldlm_lint.checkers.rule_files import findings_of
from ldlm_lint.configs.document import Document
from ldlm_lint.frameworks.documents import own_settings
from ldlm_lint.model import Claim, Confidence, Finding
from ldlm_lint.rules.linter import DEAD_CONFIG_KEY
from ldlm_lint.source import Source

# A file with more keys than this is data, not a configuration; a list of files may have any length.
_MOST = 1000


def findings(source: Source, document: Document, options: Mapping[str, object]) -> Iterator[Finding]:
    """The findings about values that the program reads from here, and about unread keys."""
    if sum(1 for entry in document.entries if entry.name) > _MOST:
        return
    yield from findings_of(own_settings(source, document), options)
    yield from _dead(document)


def _dead(document: Document) -> Iterator[Finding]:
    """Every key of a mapping may be unread; the project decides, and names only the topmost of a section."""
    for entry in document.entries:
        if entry.name and entry.key_span is not None and not entry.shared:
            args = (("key", ".".join(map(str, entry.path))), ("program", "a program"))
            claims = (Claim("configuration-key-is-dead"),)
            yield Finding(DEAD_CONFIG_KEY.symbol, DEAD_CONFIG_KEY.code, entry.key_span, args, Confidence.MEDIUM, claims=claims)
