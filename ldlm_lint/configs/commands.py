"""Shell code inside configuration files: linted as a separate script with the offsets of the file.

Everything around the code is blank in that script, except line ends, so findings and edits have the right positions. A
rule reports here only if it reads configurations, and a fix is kept only if it stays inside the code.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from ldlm_lint.model import Edit, Finding, Fix, Span
from ldlm_lint.patterns import lazily
from ldlm_lint.prefilter import rules_at_risk
from ldlm_lint.rules import by_symbol
from ldlm_lint.rules.environment_view import Scene
from ldlm_lint.rules.environment_watchdog import HEARTBEAT
from ldlm_lint.source import Kind, Source

_SHELL = lazily(r"(?:\S*/)?(?:ba|da|z|k)?sh")
_RUNS = lazily(r"-[a-zA-Z]*c")
_PLAIN = lazily(rb"[\w./:=,@%+-]+")
_OF_SHELLS = frozenset({"pipeline-hides-failure"})


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


def findings(source: Source, code: Code, options: Mapping[str, object]) -> Iterator[Finding]:
    """The findings of the shell rules about code in a configuration file."""
    from ldlm_lint.shell.lint import lint

    if not rules_at_risk(code.data, Kind.SHELL):
        return
    script = code.source(source)
    for finding in lint(script, options).findings:
        if "cfg" not in by_symbol[finding.rule].reads or ((code.words or code.pipefail) and finding.rule in _OF_SHELLS):
            continue
        yield finding._replace(fix=_kept(source, code, finding.fix))


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


def _kept(source: Source, code: Code, fix: Fix | None) -> Fix | None:
    """The fix, if it stays inside of the code, leaves a part of it, and breaks neither its quotes nor its
    indentation.
    """
    if fix is None:
        return None
    start, end = code.start, len(code.data)
    edits = tuple(_moved(source, code, edit) for edit in fix.edits)
    if any(edit.span.start < start or edit.span.end > end for edit in edits):
        return None
    if fix.group and source.data.count(HEARTBEAT.encode()) > code.data.count(HEARTBEAT.encode()):
        # Its other half is in another part of the file, which is not visible here.
        return None
    if code.listed and not all(_stays_a_list(source.data, edit) for edit in edits):
        return None
    if not code.listed and not all(_fits(source.data, start, edit.text) for edit in edits):
        return None
    left = bytearray(code.data)
    for edit in sorted(edits, reverse=True):
        left[edit.span.start : edit.span.end] = edit.text.encode()
    return fix._replace(edits=edits) if bytes(left[start:]).strip() else None


def _moved(source: Source, code: Code, edit: Edit) -> Edit:
    """An insertion at the head of the script, which is the head of the file, as one at the head of a block of lines."""
    if edit.span.end >= code.start or edit.span.start != edit.span.end or not _in_lines(source.data, code.start):
        return edit
    line = source.data.rfind(b"\n", 0, code.start) + 1
    indent = source.data[line : code.start].decode()
    if indent.strip() or source.data.startswith(b"#!", code.start):
        return edit
    return Edit(Span(edit.span.path, code.start, code.start, edit.span.cell), edit.text + indent)


def _fits(data: bytes, start: int, text: str) -> bool:
    """Whether a text can be in code: in a block of lines after its indentation, elsewhere without line ends and
    quotes.
    """
    if not _in_lines(data, start):
        return re.search(r"[\"'\n]", text) is None
    indent = data[data.rfind(b"\n", 0, start) + 1 : start].decode()
    return all(line.startswith(indent) for line in text.split("\n")[1:] if line.strip())


def _in_lines(data: bytes, start: int) -> bool:
    """Whether code begins on its own line, as a literal block does."""
    return not data[data.rfind(b"\n", 0, start) + 1 : start].strip()


def _stays_a_list(data: bytes, edit: Edit) -> bool:
    """Whether a list of words remains a list after an edit: inside a word, or from one into another with the same
    quotes."""
    span = edit.span
    if not edit.text or re.search(r"\s", edit.text):
        return False
    before, after = data[span.start - 1 : span.start], data[span.end : span.end + 1]
    inside = re.search(rb"[\s\"',]", data[span.start : span.end]) is None
    return inside or before == after or not {before, after} & {b'"', b"'"}


def _blank(data: bytes) -> bytes:
    return re.sub(rb"[^\n]", b" ", data)


def _folded(data: bytes) -> bytes:
    """The same bytes with line ends as blanks."""
    return data.replace(b"\r", b" ").replace(b"\n", b" ")
