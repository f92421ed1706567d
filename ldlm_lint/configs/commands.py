"""Shell code inside configuration files: a separate script with the offsets of the file.

Everything around the code is blank in that script, except line ends, so findings and edits have the right positions.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from ldlm_lint.patterns import lazily
from ldlm_lint.rules.environment_view import Scene
from ldlm_lint.source import Kind, Source

_SHELL = lazily(r"(?:\S*/)?(?:ba|da|z|k)?sh")
_RUNS = lazily(r"-[a-zA-Z]*c")
_PLAIN = lazily(rb"[\w./:=,@%+-]+")


class Code(NamedTuple):
    """Shell code in a file: ``data`` are the bytes of the file up to its end, blank outside of the code.

    ``start`` is the offset where the code begins. ``words``: it is one command without a shell; ``listed``: each word
    of it is an item of a list. ``pipefail``: the shell is started with the option.
    """

    start: int
    data: bytes
    words: bool = False
    pipefail: bool = False
    listed: bool = False

    def source(self, source: Source) -> Source:
        """The code as a script."""
        return Source.from_bytes(source.path, self.data, Kind.SHELL)


def stretch(source: Source, start: int, end: int, *, folded: bool = False, pipefail: bool = False) -> Code:
    """The code at ``[start, end)``; ``folded`` where line ends in it are blanks for the shell."""
    inner = source.data[start:end]
    return Code(start, _blank(source.data[:start]) + (_folded(inner) if folded else inner), pipefail=pipefail)


def command(source: Source, places: Sequence[tuple[int, int]]) -> Code | None:
    """The code in a list of words: the argument of ``bash -c``, or the command itself.

    The places are those of the words without their quotes. None for an empty list.
    """
    if not places:
        return None
    texts = [source.data[start:end].decode(errors="replace") for start, end in places]
    if _SHELL.fullmatch(texts[0]):
        index = shell_code(texts)
        if index is None or "\\" in texts[index]:
            return None
        pipefail = any("pipefail" in text for text in texts[1:index])
        return stretch(source, *places[index], folded=True, pipefail=pipefail)
    data = bytearray(_blank(source.data[: places[0][0]]))
    for start, end in places:
        data += b" " * (start - len(data))
        word = source.data[start:end]
        data += word if _PLAIN.fullmatch(word) else b"x" * len(word)
    return Code(places[0][0], bytes(data), words=True, listed=True)


def shell_code(words: Sequence[str]) -> int | None:
    """The index of the word with the code of ``bash -c CODE``; None if the words start something else."""
    if not words or not _SHELL.fullmatch(words[0]):
        return None
    index = next((at for at, text in enumerate(words) if at and _RUNS.fullmatch(text)), None)
    # `bash -e -c` and `bash -c -e` both take their code after all options.
    while index is not None and index + 1 < len(words) and words[index + 1].startswith("-"):
        index += 1
    return index + 1 if index is not None and index + 1 < len(words) else None


class Started(NamedTuple):
    """The processes that code starts, and the variables that it sets or unsets itself."""

    scene: Scene
    names: frozenset[str]


def started(source: Source, code: Code) -> Started:
    """The processes that code starts."""
    from ldlm_lint.shell.processes import scene_of
    from ldlm_lint.shell.scanner import scan

    script = code.source(source)
    scanned = scan(script)
    names = {one.name for one in scanned.assignments if one.exported}
    return Started(scene_of(script, scanned), frozenset(names.union(scanned.unset)))


def scene(all_code: Sequence[Started], *, diagnostic: bool, text: str) -> Scene:
    """The facts from all code of a file about the processes that get its variables."""
    scenes = [one.scene for one in all_code]
    return Scene(
        diagnostic,
        tuple(launcher for one in scenes for launcher in one.launchers),
        tuple(entry for one in scenes for entry in one.entries),
        any(one.several for one in scenes),
        text=text,
    )


def _blank(data: bytes) -> bytes:
    return re.sub(rb"[^\n]", b" ", data)


def _folded(data: bytes) -> bytes:
    """The same bytes with line ends as blanks."""
    return data.replace(b"\r", b" ").replace(b"\n", b" ")
