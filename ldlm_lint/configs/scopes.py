"""The key around a place of a configuration file, which identifies a finding when lines move."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ldlm_lint.configs.document import Document, DocumentError, Entry, Shape
from ldlm_lint.configs.read import read
from ldlm_lint.patterns import lazily
from ldlm_lint.scopes import Scope
from ldlm_lint.source import Kind, Source

_VARIABLE = lazily(r"^[ \t]*(?:export[ \t]+)?([A-Za-z_]\w*)[ \t]*=[^\r\n]*", re.M)
# The keys that identify an item of a list; its index changes when other items are added or removed.
_NAMES = ("name", "key", "id")


def keys(source: Source) -> Iterator[Scope]:
    """The keys of a configuration, the variables of a ``.env`` file, the variables of a Dockerfile by its stages."""
    if source.kind is Kind.DOTENV:
        for match in _VARIABLE.finditer(source.text):
            start, end = (source.offset_of_character(index) for index in match.span())
            yield Scope(start, end, match[1])
    elif source.kind is Kind.DOCKERFILE:
        yield from _of_image(source)
    else:
        yield from _of_document(source)


def _of_document(source: Source) -> Iterator[Scope]:
    try:
        document = read(source)
    except DocumentError:
        return
    for entry in document.entries:
        if entry.path and not entry.shared:
            start = entry.whole.start
            yield Scope(start, max(entry.span.end, start + 1), _dotted(document, entry))


def _dotted(document: Document, entry: Entry) -> str:
    steps = []
    for depth in range(1, len(entry.path) + 1):
        key = entry.path[depth - 1]
        steps.append(key if isinstance(key, str) else _name_of_item(document, entry, depth))
    return ".".join(step for step in steps if step)


def _name_of_item(document: Document, entry: Entry, depth: int) -> str:
    names = (document.get(*entry.path[:depth], name, document=entry.document) for name in _NAMES)
    return next((one.text for one in names if one is not None and one.shape is Shape.SCALAR), "")


def _of_image(source: Source) -> Iterator[Scope]:
    from ldlm_lint.configs import instructions

    stage = ""
    for one in instructions.read(source):
        if one.keyword == "FROM":
            stage = instructions.stage(one)[1]
        elif one.keyword in ("ENV", "ARG"):
            for pair in instructions.pairs(one):
                yield Scope(pair.start, pair.end, f"{stage}.{pair.name}" if stage else pair.name)
        yield Scope(one.start, max(one.end, one.start + 1), stage)
