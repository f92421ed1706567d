"""Edits of configuration files as text: comments, quotes, indentation and line endings do not change.

Each function returns None if the edit is not simple: an entry that a YAML alias or merge key shares with other places,
a tagged value, a block scalar, the last child of a mapping.
"""

from __future__ import annotations

from ldlm_lint.configs.document import Document, Entry, Shape
from ldlm_lint.configs.layout import Layout, is_flow
from ldlm_lint.configs.rendering import Scalar, rendered_key, rendered_value
from ldlm_lint.model import Edit, Span
from ldlm_lint.patterns import lazily
from ldlm_lint.source import Kind, Source

Edits = tuple[Edit, ...]
_ANCHOR = lazily(r"(?:^|[\s,\[{:])&[^\s,\[\]{}]")
_COLON = lazily(r"[ \t]*[:=][ \t]*")


def set_value(source: Source, document: Document, entry: Entry, value: Scalar) -> Edits | None:
    """Write another value: in the style of the file (``true`` or ``True``, quotes kept where the old value had them)."""
    if not _is_plain(source, document, entry) or entry.shape is not Shape.SCALAR:
        return None
    old = source.slice(entry.span)
    if "\n" in old or "\r" in old or (document.kind is Kind.YAML and old[:1] in ("|", ">")):
        return None
    text = rendered_value(document, old, value)
    if text is None:
        return None
    if not old:
        before = source.data[: entry.span.start]
        if not before.endswith((b":", b"-")):
            return None
        text = " " + text
    return (Edit(entry.span, text),)


def rename_key(source: Source, document: Document, entry: Entry, name: str) -> Edits | None:
    """Write another name for the key of an entry; None if its mapping has that key already."""
    if not _is_plain(source, document, entry) or entry.key_span is None or _sibling(document, entry, name) is not None:
        return None
    old = source.slice(entry.key_span)
    if not old or not _writes(old, entry.name) or _is_table(document, entry):
        return None
    text = rendered_key(document, old, name)
    return None if text is None else (Edit(entry.key_span, text),)


def remove(source: Source, document: Document, entry: Entry) -> Edits | None:
    """Take an entry out with its lines and the comment after it; None for the last child of a mapping."""
    if not _is_plain(source, document, entry) or not entry.path or _is_table(document, entry):
        return None
    siblings = [one for one in _siblings(document, entry) if not one.shared]
    if len(siblings) < 2 or _holds_anchor(source, document, entry):
        return None
    siblings.sort(key=lambda one: one.whole.start)
    index = next((index for index, one in enumerate(siblings) if one.path == entry.path), None)
    if index is None:
        return None
    layout = Layout(source)
    if not is_flow(source, document, entry):
        following = siblings[index + 1] if index + 1 < len(siblings) else None
        span = layout.block_lines(entry, following)
    else:
        before, behind = siblings[index - 1] if index else None, siblings[index + 1] if index + 1 < len(siblings) else None
        span = layout.flow_stretch(before, entry, behind)
    return None if span is None else (Edit(span, ""),)


def insert_beside(source: Source, document: Document, entry: Entry, name: str, value: Scalar) -> Edits | None:
    """Add a key after an entry of a mapping, at the same depth; None if its mapping has that key already."""
    if not _is_plain(source, document, entry) or entry.key_span is None or _is_table(document, entry):
        return None
    if _sibling(document, entry, name) is not None or _text_goes_on(source, document, entry):
        return None
    key = rendered_key(document, source.slice(entry.key_span), name)
    text = rendered_value(document, "", value)
    if key is None or text is None:
        return None
    layout = Layout(source)
    if is_flow(source, document, entry):
        between = source.data[entry.key_span.end : entry.span.start].decode()
        separator = between if _COLON.fullmatch(between) else " = " if document.kind is Kind.TOML else ": "
        return layout.inserted_in_flow(entry, f"{key}{separator}{text}", one_line=document.kind is Kind.TOML)
    separator = " = " if document.kind is Kind.TOML else ": "
    return layout.inserted_in_block(entry, f"{key}{separator}{text}", dotted=document.kind is Kind.TOML)


def _is_plain(source: Source, document: Document, entry: Entry) -> bool:
    """Whether an entry is at the place of its edit and is unambiguous: no other entry has its key."""
    if entry.shared or entry.tag or len(source.segments) > 1:
        return False
    return sum(one.path == entry.path and one.document == entry.document for one in document.entries) == 1


def _siblings(document: Document, entry: Entry) -> list[Entry]:
    return list(document.children(*entry.path[:-1], document=entry.document))


def _sibling(document: Document, entry: Entry, name: str) -> Entry | None:
    return document.get(*entry.path[:-1], name, document=entry.document)


def _is_table(document: Document, entry: Entry) -> bool:
    """Whether an entry is a TOML table with a header, or the inner part of a dotted key."""
    return document.kind is Kind.TOML and entry.shape is not Shape.SCALAR and entry.key_span is not None and (
        entry.key_span.start >= entry.span.start
    )


def _text_goes_on(source: Source, document: Document, entry: Entry) -> bool:
    """Whether the text after an entry belongs to its final block of text."""
    if document.kind is not Kind.YAML:
        return False
    last = (source.data[one.span.start : one.span.start + 4] for one in document.entries if one.span.end == entry.span.end)
    texts = [head for head in last if head[:1] in (b"|", b">")]
    # Without a line end at the end of the file, a new line would be added to the text.
    return any(b"+" in head.split(b"\n")[0] for head in texts) or bool(texts and not source.data[entry.span.end :].strip(b" "))


def _writes(written: str, name: str) -> bool:
    """Whether a key is written as its name, with quotes or without."""
    return written == name or (written[:1] in ("'", '"') and written[1:-1] == name)


def _holds_anchor(source: Source, document: Document, entry: Entry) -> bool:
    """Whether other places of the file may refer to something inside an entry."""
    if document.kind is not Kind.YAML:
        return False
    start = entry.whole.start
    return _ANCHOR.search(source.slice(Span(entry.span.path, start, entry.span.end))) is not None
