"""Adding a parameter to a function's signature, in its layout."""

from __future__ import annotations

import io
import re
import tokenize

from ldlm_lint.autofix.calls import append_to
from ldlm_lint.model import Edit, Span
from ldlm_lint.patterns import lazily
from ldlm_lint.source import Source

_KEYWORDS = lazily(r"\*\*[ \t]*\w+")


def add_parameter(source: Source, start: int, parameter: str) -> Edit | None:
    """Add a parameter with a default as the last one of the function whose ``def`` is at byte ``start``.

    It goes before ``**kwargs`` if there are any. None for a signature without parameters or of unusual form.
    """
    text = source.data[start:].decode(source.encoding)
    bounds = _parentheses(text)
    if bounds is None:
        return None
    opening, closing = bounds
    inside = text[opening + 1 : closing - 1]
    if not inside.strip() or re.search(r"(^|,)\s*/\s*,?\s*$", inside):
        return None

    def byte(index: int) -> int:
        return start + len(text[:index].encode(source.encoding))

    keywords = _last_keywords(text, opening, closing)
    if keywords is not None:
        line = max(text.rfind("\n", 0, keywords), text.rfind("\r", 0, keywords)) + 1
        alone = not text[line:keywords].strip() and line > opening
        behind = f",{source.newline}{text[line:keywords]}" if alone else ", "
        return Edit(source.span(byte(keywords), byte(keywords)), parameter + behind)
    name = re.search(r"\w+\s*$", text[:opening])
    if name is None:
        return None
    return append_to(source, Span(source.path, byte(name.start()), byte(closing)), parameter)


def _parentheses(text: str) -> tuple[int, int] | None:
    """The offsets of the signature's ``(`` and after its ``)``."""
    starts, opening, depth = [0], -1, 0
    starts += [match.end() for match in re.finditer(r"\r\n|\r|\n", text)]
    try:
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type != tokenize.OP or token.string not in "()[]{}":
                continue
            offset = starts[token.start[0] - 1] + token.start[1]
            if token.string in "([{":
                opening = offset if opening < 0 else opening
                depth += 1
                continue
            depth -= 1
            if depth == 0:
                return (opening, offset + 1) if text[opening] == "(" else None
    except (tokenize.TokenError, SyntaxError):
        return None
    return None


def _last_keywords(text: str, opening: int, closing: int) -> int | None:
    """Where ``**kwargs`` is in a signature; the first that is not an operator of a default."""
    found = [
        match.start()
        for match in _KEYWORDS.finditer(text, opening, closing)
        if re.search(r"[(,]\s*(?:#[^\n]*(?:\n\s*|$))*$", text[opening : match.start()])
    ]
    return found[-1] if found else None


__all__ = ["add_parameter"]
