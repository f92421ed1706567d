"""Renders keys and values in the existing style of a configuration file."""

from __future__ import annotations

import json
import math
import re
from collections import Counter

from ldlm_lint.configs.document import Document
from ldlm_lint.configs.scalars import yaml_scalar
from ldlm_lint.source import Kind

Scalar = str | int | float | bool | None
# Letters that every YAML reader treats as text, in blocks and between brackets alike.
_PLAIN = re.compile(r"[A-Za-z_./][\w./+-]*", re.ASCII)
_BARE = re.compile(r"[\w-]+", re.ASCII)
# Booleans to some readers of YAML 1.1, text to PyYAML.
_DOUBTFUL = frozenset("yYnN")
_BOOLEANS = (("true", "false"), ("yes", "no"), ("on", "off"))


def rendered_value(document: Document, old: str, value: Scalar) -> str | None:
    """A value as text for the place of ``old`` (the text there with its quotes); None if the format has no such
    value.
    """
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if document.kind is Kind.YAML:
        return _yaml_value(document, old, value)
    if value is None and document.kind is Kind.TOML:
        return None
    if isinstance(value, str) and document.kind is Kind.TOML and old.startswith("'") and not set(value) & set("'\r\n"):
        return f"'{value}'"
    return json.dumps(value, ensure_ascii=False)


def rendered_key(document: Document, old: str, name: str) -> str | None:
    """A key as text next to or instead of ``old``; None if it cannot be written."""
    if document.kind is Kind.JSON:
        return json.dumps(name, ensure_ascii=False)
    plain = (_PLAIN if document.kind is Kind.YAML else _BARE).fullmatch(name)
    if old[:1] in ("'", '"'):
        return _quoted(name, old[0])
    if not plain or (document.kind is Kind.YAML and not _is_text(name)):
        return _quoted(name, '"')
    return name


def _yaml_value(document: Document, old: str, value: Scalar) -> str:
    if isinstance(value, bool):
        return _boolean(document, old, value)
    if value is None:
        return "null"
    if isinstance(value, str):
        if old[:1] in ("'", '"'):
            return _quoted(value, old[0])
        return value if _PLAIN.fullmatch(value) and _is_text(value) else _quoted(value, '"')
    text = repr(value)
    # PyYAML reads `1e-05` as text, `1.0e-05` for a number.
    return text if "." in text or "e" not in text else text.replace("e", ".0e")


def _boolean(document: Document, old: str, value: bool) -> str:
    """A boolean in the style of the old value or, if that is not one, of most in the file."""
    if not isinstance(yaml_scalar(old), bool):
        styles = Counter(one.text for one in document.scalars() if isinstance(one.value, bool) and not one.tag)
        old = styles.most_common(1)[0][0] if styles else "true"
    words = next(pair for pair in _BOOLEANS if old.lower() in pair)
    text = words[0] if value else words[1]
    return text if old.islower() else text.upper() if old.isupper() else text.title()


def _is_text(text: str) -> bool:
    return isinstance(yaml_scalar(text), str) and text not in _DOUBTFUL


def _quoted(text: str, quote: str) -> str:
    if quote == "'" and not set(text) & set("\r\n\\") and text.isprintable():
        return "'" + text.replace("'", "''") + "'"
    return json.dumps(text, ensure_ascii=False)
