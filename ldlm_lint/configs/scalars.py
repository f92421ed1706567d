"""The meaning of a plain YAML scalar for Python programs."""

from __future__ import annotations

import re

from ldlm_lint.patterns import lazily
from ldlm_lint.untrusted_numbers import is_printable

_WORDS: dict[str, object] = {
    **{form: True for word in ("true", "yes", "on") for form in (word, word.capitalize(), word.upper())},
    **{form: False for word in ("false", "no", "off") for form in (word, word.capitalize(), word.upper())},
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
}
_NUMBER = lazily(
    r"""(?P<decimal>[-+]?(?:0|[1-9][0-9_]*))
      | (?P<base>[-+]?0(?:[0-7_]+|x[0-9a-fA-F_]+|b[01_]+))
      | (?P<float>[-+]?(?:[0-9][0-9_]*(?:\.[0-9_]*)?|\.[0-9][0-9_]*)(?:[eE][-+]?[0-9]+)?)
      | (?P<special>[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))""",
    re.X,
)
_FIRST = frozenset("+-.0123456789")


def yaml_scalar(text: str) -> object:
    """A plain scalar as data.

    By YAML 1.1, as PyYAML reads it: ``yes`` and ``off`` are booleans, ``017`` is octal. But ``1e-4``, which PyYAML
    reads as text, is a number: it is one in YAML 1.2 and for OmegaConf, and programs convert it. Dates and ``1:30`` (a
    time or 90, depending on the reader) stay text.
    """
    if not text or text[0] not in _FIRST:
        return _WORDS.get(text, text)
    match = _NUMBER.fullmatch(text)
    if match is None:
        return text
    digits = text.replace("_", "")
    try:
        if match["decimal"]:
            return int(digits)
        if match["base"]:
            number = _integer(digits)
            return number if is_printable(number) else text
        if match["special"]:
            return float(digits.replace(".", ""))
        # `089` is not an octal number and, without a point, no other either.
        return float(digits) if re.search(r"[.eE]", digits) else text
    except ValueError:
        # `0x_`, or thousands of digits.
        return text


def _integer(digits: str) -> int:
    sign = -1 if digits.startswith("-") else 1
    bare = digits.lstrip("+-")
    if bare[:2] in ("0x", "0b"):
        return sign * int(bare[2:], 16 if bare[1] == "x" else 2)
    return sign * int(bare, 8)
