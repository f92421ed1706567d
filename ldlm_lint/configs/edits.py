"""Edits of configuration files as text: comments, quotes, indentation and line endings stay as they are.

Each function answers None where the edit is not plain: an entry that a YAML alias or merge key shares with other
places, a block scalar, the last child of a mapping.
"""

from __future__ import annotations

from ldlm_lint.configs.document import Document, Entry
from ldlm_lint.model import Edit
from ldlm_lint.source import Source

Edits = tuple[Edit, ...]
Scalar = str | int | float | bool | None


def set_value(source: Source, document: Document, entry: Entry, value: Scalar) -> Edits | None:
    """Write another value: in the style of the file (``true`` or ``True``, quotes kept where the old value had them)."""
    return None


def rename_key(source: Source, document: Document, entry: Entry, name: str) -> Edits | None:
    """Write another name for the key of an entry; None where its mapping has that key already."""
    return None


def remove(source: Source, document: Document, entry: Entry) -> Edits | None:
    """Take an entry out with its lines and the comment behind it; None for the last child of a mapping."""
    return None


def insert_beside(source: Source, document: Document, entry: Entry, name: str, value: Scalar) -> Edits | None:
    """Add a key after an entry of a mapping, at the same depth; None where its mapping has that key already."""
    return None
