"""The example files of rules: what ``explain`` and docs/rules.md show as bad, good and fixed.

They are the fixtures ``bad.*``, ``good.*`` and ``bad.fixed.*`` of a rule. A wheel carries them beside the package, each
under its name and ``.txt``, so that nothing compiles, imports or lints what is there to show a mistake.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING

from ldlm_lint.patterns import lazily

if TYPE_CHECKING:
    import sys

    if sys.version_info >= (3, 11):
        from importlib.resources.abc import Traversable
    else:
        from importlib.abc import Traversable

PACKAGED = "_examples"
SUFFIX = ".txt"
_FIXTURES = Path(__file__).parent.parent / "tests" / "fixtures"
# What the tests expect of a line; they read it with the same pattern.
EXPECTATION = r"[ \t]*# expect: (?P<symbols>[a-z0-9-]+(?:, ?[a-z0-9-]+)*)[ \t]*"
_FOR_TESTS = lazily(EXPECTATION + "$", re.M)
_SETTINGS = "options.toml"


def example(symbol: str, kind: str) -> dict[str, str]:
    """The files of a rule's example (``bad``, ``good`` or ``bad.fixed``) by name, as they are shown; empty without one."""
    folder = _root() / symbol
    if not folder.is_dir():
        return {}
    for entry in folder.iterdir():
        if entry.is_dir() and entry.name == kind:
            return dict(sorted(_below(entry)))
        stem, _, suffix = entry.name.removesuffix(SUFFIX).rpartition(".")
        if entry.is_file() and stem == kind:
            return {f"{kind.partition('.')[0]}.{suffix}": shown(entry.read_bytes())}
    return {}


def shown(data: bytes) -> str:
    """The text of an example: without comments for the tests, bytes that are no text as escapes."""
    text = data.decode(errors="backslashreplace").replace("\r\n", "\n").replace("\0", "\\x00")
    text = _FOR_TESTS.sub("", text)
    return text if not text or text.endswith("\n") else text + "\n"


def _root() -> Traversable:
    """The examples of the installed package, or those of the checkout that this module stands in."""
    packaged = resources.files(__package__) / PACKAGED
    return packaged if packaged.is_dir() else _FIXTURES


def _below(folder: Traversable, above: str = "") -> Iterator[tuple[str, str]]:
    for entry in folder.iterdir():
        name = above + entry.name.removesuffix(SUFFIX)
        if entry.is_dir() and entry.name != "__pycache__":
            yield from _below(entry, f"{name}/")
        elif entry.is_file() and name != _SETTINGS:
            yield name, shown(entry.read_bytes())
