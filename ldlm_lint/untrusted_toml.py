"""TOML of an untrusted repository: rejects texts that would cost the standard library gigabytes or the whole stack."""

from __future__ import annotations

import sys

from ldlm_lint.patterns import lazily

MAX_PARTS = 60
# For a key of n parts the standard library keeps all its n beginnings.
_PART = r"""(?:[\w-]{1,200}|"[^"\n]{0,200}"|'[^'\n]{0,200}')[ \t]{0,9}\.[ \t]{0,9}"""
_LONG_KEY = lazily(f"(?:{_PART}){{{MAX_PARTS}}}")


class TooDeepError(ValueError):
    """Text that is nested too deeply to be read; ``position`` is the character where it is too deep."""

    def __init__(self, position: int) -> None:
        super().__init__("values are nested too deeply")
        self.position = position


def loads(text: str) -> dict[str, object]:
    """The tables of a text; raises ValueError (``tomllib.TOMLDecodeError`` for what is not TOML) and nothing else."""
    long_key = _LONG_KEY.search(text)
    if long_key is not None:
        raise TooDeepError(long_key.start())
    # Most projects have no such file, and the parser takes longer to load than to read one.
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise TooDeepError(0) from None
