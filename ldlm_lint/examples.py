"""The example files of rules: what ``explain`` and docs/rules/ show as bad, good and fixed.

They are the fixtures ``bad.*``, ``good.*`` and ``bad.fixed.*`` of a rule, and the small ones of a few lines that fit a screen:
``bad_short.*`` with ``bad_short.fixed.*``, or ``good_short.*`` where no fix is applied. A wheel carries them beside the
package, each under its name and ``.txt``, so that nothing compiles, imports or lints what is there to show a mistake.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from ldlm_lint.patterns import lazily

if TYPE_CHECKING:
    import sys

    if sys.version_info >= (3, 11):
        from importlib.resources.abc import Traversable
    else:
        from importlib.abc import Traversable

class Small(NamedTuple):
    """A file of a rule's small example before and after, and the 1-based lines where the rule reports.

    ``applied``: the command's fix produced the second from the first; else it was written by hand.
    """

    name: str
    bad: str
    fixed: str
    reported: frozenset[int] = frozenset()
    applied: bool = False


PACKAGED = "_examples"
SUFFIX = ".txt"
_FIXTURES = Path(__file__).parent.parent / "tests" / "fixtures"
# The marker of an expected finding; the tests use the same pattern.
EXPECTATION = r"[ \t]*# expect: (?P<symbols>[a-z0-9-]+(?:, ?[a-z0-9-]+)*)[ \t]*"
_FOR_TESTS = lazily(EXPECTATION + "$", re.M)
_SETTINGS = "options.toml"


def example(symbol: str, kind: str) -> dict[str, str]:
    """The files of a rule's example (``bad``, ``good`` or ``bad.fixed``) by name, as they are shown; empty without one."""
    return {name: shown(data) for name, data in _files(symbol, kind).items()}


def _files(symbol: str, kind: str) -> dict[str, bytes]:
    folder = _root() / symbol
    if not folder.is_dir():
        return {}
    for entry in folder.iterdir():
        if entry.is_dir() and entry.name == kind:
            return dict(sorted(_below(entry)))
        stem, _, suffix = entry.name.removesuffix(SUFFIX).rpartition(".")
        if entry.is_file() and stem == kind:
            return {f"{kind.partition('.')[0].partition('_')[0]}.{suffix}": entry.read_bytes()}
    return {}


def small(symbol: str) -> tuple[Small, ...]:
    """The files of a rule's small example, those with reported lines first; empty for a rule without one."""
    bad, fixed = _files(symbol, "bad_short"), _files(symbol, "bad_short.fixed")
    applied = bool(fixed)
    better = fixed or _files(symbol, "good_short")
    if len(bad) == len(better) == 1:
        # A case that is a single file has the name of the case.
        better = dict(zip(bad, better.values(), strict=True))
    files = [
        Small(name, shown(data), shown(better.get(name, b"")), _reported(data, symbol), applied) for name, data in bad.items()
    ]
    return tuple(sorted(files, key=lambda one: not one.reported))


def _reported(data: bytes, symbol: str) -> frozenset[int]:
    """The lines of an example at which its own rule is expected."""
    text = data.decode(errors="backslashreplace")
    places = ((match["symbols"], match.start()) for match in _FOR_TESTS.finditer(text))
    return frozenset(text.count("\n", 0, start) + 1 for names, start in places if symbol in names.replace(" ", "").split(","))


def shown(data: bytes) -> str:
    """The text of an example: without comments for the tests, bytes that are not text as escapes."""
    text = data.decode(errors="backslashreplace").replace("\r\n", "\n").replace("\0", "\\x00")
    text = _FOR_TESTS.sub("", text)
    return text if not text or text.endswith("\n") else text + "\n"


def _root() -> Traversable:
    """The examples of the installed package, or those of the checkout that this module is in."""
    packaged = resources.files(__package__) / PACKAGED
    return packaged if packaged.is_dir() else _FIXTURES


def _below(folder: Traversable, above: str = "") -> Iterator[tuple[str, bytes]]:
    for entry in folder.iterdir():
        name = above + entry.name.removesuffix(SUFFIX)
        if entry.is_dir() and entry.name != "__pycache__":
            yield from _below(entry, f"{name}/")
        elif entry.is_file() and name != _SETTINGS:
            yield name, entry.read_bytes()
