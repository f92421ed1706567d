"""The value of a shell word: its text after quote removal, as bash does it; expansions stay as they are written.

bashlex finds where words begin and end, but removes quotes inside of quotes and backslashes that bash keeps:
``logger='["console","wandb"]'``, ``"\\n"``.
"""

from __future__ import annotations

import re

from ldlm_lint.patterns import lazily

_ESCAPED_IN_DOUBLE = frozenset('$`"\\')
_SPECIAL = lazily(r"[\\'\"`$]")
_ANSI = lazily(r"\\(?:([abefnrtv\\'\"?E])|([0-7]{1,3})|x([0-9A-Fa-f]{1,2})|u([0-9A-Fa-f]{1,4})|U([0-9A-Fa-f]{1,8})|c(.))", re.DOTALL)
_ANSI_SIGNS = {"a": "\a", "b": "\b", "e": "\x1b", "E": "\x1b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_ANSI_END = lazily(r"(?:[^\\']|\\.)*'", re.DOTALL)


def unquoted(raw: str) -> str | None:
    """The text of a word without its quotes; None if a quote or expansion is not closed."""
    parts: list[str] = []
    position = 0
    while position < len(raw):
        sign = raw[position]
        if sign == "'":
            end = raw.find("'", position + 1)
            parts.append(raw[position + 1 : end])
            position = end + 1 if end >= 0 else -1
        elif sign == "\\":
            parts.append(raw[position + 1 : position + 2].replace("\n", ""))
            position += 2
        elif sign == '"' or raw.startswith('$"', position):
            position = _double_quoted(raw, position + (sign == "$") + 1, parts)
        elif raw.startswith("$'", position):
            text = _ANSI_END.match(raw, position + 2)
            parts += [_ANSI.sub(_ansi_sign, text.group()[:-1])] if text is not None else []
            position = text.end() if text is not None else -1
        else:
            position = _kept(raw, position, parts)
        if position < 0:
            return None
    return "".join(parts)


def _double_quoted(raw: str, position: int, parts: list[str]) -> int:
    """The end of a string in double quotes that begins before a position, whose text is added; -1 if it has none."""
    while 0 <= position < len(raw):
        sign = raw[position]
        if sign == '"':
            return position + 1
        if sign == "\\":
            following = raw[position + 1 : position + 2]
            # Before other signs the backslash stays: `"\n"` are two of them.
            parts.append("" if following == "\n" else following if following in _ESCAPED_IN_DOUBLE else sign + following)
            position += 2
        else:
            position = _kept(raw, position, parts)
    return -1


def _kept(raw: str, position: int, parts: list[str]) -> int:
    """The end of an expansion or of plain text, which is added as written; -1 if an expansion has no end."""
    if raw[position] == "`" or raw.startswith(("$(", "${"), position):
        end = _end_of_expansion(raw, position)
    else:
        following = _SPECIAL.search(raw, position + 1)
        end = following.start() if following is not None else len(raw)
    parts.append(raw[position:end] if end >= 0 else "")
    return end


def _end_of_expansion(raw: str, start: int) -> int:
    """The end of ``$(…)``, ``${…}`` or ``…`` between backquotes, past the quotes and expansions in it; -1 for none."""
    if raw[start] == "`":
        end = start + 1
        while 0 <= end < len(raw) and raw[end] != "`":
            end += 2 if raw[end] == "\\" else 1
        return end + 1 if end < len(raw) else -1
    closing = [")" if raw[start + 1] == "(" else "}"]
    in_double = [False]
    at = start + 2
    while at < len(raw):
        sign = raw[at]
        if sign == "\\":
            at += 1
        elif sign == '"':
            in_double[-1] = not in_double[-1]
        elif sign == "'" and not in_double[-1] and closing[-1] == ")":
            at = raw.find("'", at + 1)
            if at < 0:
                return -1
        elif raw.startswith(("$(", "${"), at) or (sign == "(" and closing[-1] == ")" and not in_double[-1]):
            closing.append("}" if raw.startswith("${", at) else ")")
            in_double.append(False)
            at += sign == "$"
        elif sign == closing[-1] and not in_double[-1]:
            closing.pop()
            in_double.pop()
            if not closing:
                return at + 1
        at += 1
    return -1


def _ansi_sign(match: re.Match[str]) -> str:
    sign, octal, *numbers, control = match.groups()
    if sign:
        return _ANSI_SIGNS.get(sign, sign)
    if control:
        return chr(ord(control) & 0x1F)
    number = int(octal, 8) & 0xFF if octal else int(next(filter(None, numbers)), 16)
    return chr(number) if number <= 0x10FFFF else match.group()


__all__ = ["unquoted"]
