"""Variables that a command passes to the program it starts: ``env A=1``, ``srun --export=ALL,A=1``, ``mpirun -x A=1``.

Containers get theirs by ``docker run -e A=1``. The words of an array count if ``"${ARRAY[@]}"`` is in such a command.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from tree_sitter import Node

from ldlm_lint.patterns import lazily
from ldlm_lint.shell import tree
from ldlm_lint.shell.drafts import Draft
from ldlm_lint.shell.script import Block, Form, Statement
from ldlm_lint.shell.statements import Part, Statements
from ldlm_lint.shell.text import Text

_SETTING = lazily(r"[\"']?([A-Za-z_]\w*)=")
_EXPORT = lazily(r"[\"']?--export(?:=|$)")
_ITEM = lazily(r"(?:[^,\"']|\"[^\"]*\"|'[^']*')+")
_ARRAY = lazily(r"\"?\$\{(\w+)\[[@*]\]\}\"?")
_HEADER = lazily(rb"^#SBATCH[ \t]+--export[= \t][ \t]*([^\s#]+)", re.M)
_HINT = lazily(rb"\benv\b|--export|[ \t]-x|[ \t]-e|--env|\[[@*]\]")
_WITH_VALUE = ("-u", "--unset", "-C", "--chdir")
_TALKERS = frozenset({"echo", "printf", "log", "info"})
_WRAPPERS = frozenset({"sudo", "nohup", "time", "exec", "command", "numactl"})
_FLAGS = {
    "mpirun": ("-x",),
    "mpiexec": ("-x",),
    "orterun": ("-x",),
    "docker": ("-e", "--env"),
    "podman": ("-e", "--env"),
    "nerdctl": ("-e", "--env"),
    "nvidia-docker": ("-e", "--env"),
}
_SCHEDULERS = frozenset({"srun", "sbatch", "salloc"})
_REST_OF_LINE = lazily(rb"[ \t]*(?:#[^\n]*)?(?:\n|\Z)")


class _Words(NamedTuple):
    """The words of a command, or the elements of an array (``array`` is its extent)."""

    text: Text
    extents: tuple[tuple[int, int], ...]
    array: tuple[int, int] | None = None

    def raw(self, index: int) -> str:
        return self.text.slice(*self.extents[index])


def words(text: Text, found: Mapping[str, list[Node]]) -> Iterator[Draft]:
    """The variables that the commands of a script pass on."""
    yield from _headers(text)
    if not _HINT.search(text.data):
        return
    arrays: dict[str, str] = {}
    for command in found["command"]:
        if not _HINT.search(text.data, command.start_byte, command.end_byte):
            continue
        written = _Words(text, tuple((word.start_byte, word.end_byte) for word in tree.words(command)))
        yield from _of_command(written, command, arrays)
    for node in found["assignment"] if arrays else ():
        name, value = node.child_by_field_name("name"), node.child_by_field_name("value")
        if name is None or value is None or value.type != "array" or text.of_node(name) not in arrays:
            continue
        elements = tuple((one.start_byte, one.end_byte) for one in value.named_children if one.type != "comment")
        yield from _options(_Words(text, elements, (value.start_byte, value.end_byte)), 0, arrays[text.of_node(name)])


def _of_command(written: _Words, command: Node, arrays: dict[str, str]) -> Iterator[Draft]:
    """The variables passed by one command; ``arrays`` collects the names of its arrays, with their receivers."""
    names = [written.raw(index).rpartition("/")[2] for index in range(len(written.extents))]
    first = next((index for index, name in enumerate(names) if name not in _WRAPPERS), len(names))
    if first == len(names) or names[first] in _TALKERS:
        return
    if "env" in names:
        yield from _environment(written, command, names.index("env"), arrays)
    if names[first] in _FLAGS or names[first] in _SCHEDULERS:
        for index in range(first + 1, len(names)):
            if match := _ARRAY.fullmatch(written.raw(index)):
                arrays.setdefault(match[1], names[first])
        yield from _options(written, first + 1, names[first])


def _options(written: _Words, first: int, command: str) -> Iterator[Draft]:
    """``-x A=1`` and ``--export=ALL,A=1`` among the words of a launcher, or the settings in an array for ``env``."""
    for index in range(first, len(written.extents)):
        raw = written.raw(index)
        if command == "env":
            yield from _element(written, index)
        elif command in _SCHEDULERS:
            if match := _EXPORT.match(raw):
                joined = match[0].endswith("=")
                if joined or index + 1 < len(written.extents):
                    yield from _exported(written, index if joined else index + 1, len(match[0]) if joined else 0)
        elif raw in _FLAGS[command] and index + 1 < len(written.extents):
            yield from _flagged(written, index, index + 1, 0)
        elif raw.startswith("--env=") and "--env" in _FLAGS[command]:
            yield from _flagged(written, index, index, len("--env="))


def _environment(written: _Words, command: Node, place: int, arrays: dict[str, str]) -> Iterator[Draft]:
    """``env NAME=value command``; without a command it only prints."""
    settings: list[int] = []
    behind = len(written.extents)
    for index in range(place + 1, behind):
        raw = written.raw(index)
        if array := _ARRAY.fullmatch(raw):
            arrays.setdefault(array[1], "env")
        elif _SETTING.match(raw) and raw[0] not in "\"'":
            settings.append(index)
        elif settings or not (raw.startswith("-") or written.raw(index - 1) in _WITH_VALUE):
            behind = index
            break
    if not settings or behind == len(written.extents):
        return
    part = Part(tuple(written.extents[index] for index in settings), None, written.extents[behind][0], removable=False)
    # A prefix assignment of the same command has separate parts: `A=1 env B=2 cmd`.
    statement = Statements(written.text).of(command, lambda: part)
    if settings != list(range(settings[0], behind)):
        statement = Statement(statement.span, statement.parts)
    for index in settings:
        yield _draft(written.text, Form.ENV, *written.extents[index], statement)


def _element(written: _Words, index: int) -> Iterator[Draft]:
    if written.array is not None and _SETTING.match(written.raw(index)):
        start, end = _unquoted(written, index, 0)
        yield _draft(written.text, Form.OPTION, start, end, _statement(written, (start, end), _gone(written, index, index)))


def _flagged(written: _Words, option: int, index: int, skip: int) -> Iterator[Draft]:
    start, end = _unquoted(written, index, skip)
    if _SETTING.match(written.text.slice(start, end)):
        yield _draft(written.text, Form.OPTION, start, end, _statement(written, (start, end), _gone(written, option, index)))


def _unquoted(written: _Words, index: int, skip: int) -> tuple[int, int]:
    """The extent of a word after its first characters, without the quotes around all of it."""
    start, end = written.extents[index]
    start += skip
    raw = written.text.slice(start, end)
    return (start + 1, end - 1) if len(raw) > 1 and raw[0] in "\"'" and raw[0] == raw[-1] else (start, end)


def _exported(written: _Words, index: int, skip: int) -> Iterator[Draft]:
    start, end = _unquoted(written, index, skip)
    if written.text.data[end - 1 : end] in (b'"', b"'") and written.text.slice(start, end).count('"') % 2:
        end -= 1
    yield from _items(written.text, start, end)


def _items(text: Text, start: int, end: int) -> Iterator[Draft]:
    """The settings in ``ALL,A=1,B=2``; each can go with its comma."""
    listed = text.slice(start, end)
    if not listed.isascii():
        return
    for match in _ITEM.finditer(listed):
        if not _SETTING.match(match[0]) or match[0][0] in "\"'":
            continue
        first, last = start + match.start(), start + match.end()
        gone = (first - 1, last) if match.start() else (first, last + 1) if match.end() < len(listed) else None
        statement = Statement(
            text.span(first, last), (text.span(first, last),), deletion=text.span(*gone) if gone else None
        )
        yield _draft(text, Form.OPTION, first, last, statement)


def _headers(text: Text) -> Iterator[Draft]:
    """``#SBATCH --export=ALL,A=1`` above the first command."""
    for match in _HEADER.finditer(text.data) if b"#SBATCH" in text.data else ():
        before = text.data[: match.start()]
        if all(line.startswith(b"#") or not line.strip() for line in before.splitlines()):
            yield from _items(text, *match.span(1))


def _draft(text: Text, form: Form, start: int, end: int, statement: Statement) -> Draft:
    match = _SETTING.match(text.slice(start, end))
    if match is None:
        raise ValueError("no setting")
    return Draft(match[1], form, start, start + match.end(), end, True, statement)


def _statement(written: _Words, part: tuple[int, int], gone: tuple[int, int] | None) -> Statement:
    text = written.text
    block = Block(written.array[0], len(written.extents), may_be_empty=False) if written.array else None
    return Statement(text.span(*part), (text.span(*part),), deletion=text.span(*gone) if gone else None, block=block)


def _gone(written: _Words, first: int, last: int) -> tuple[int, int] | None:
    """The text removed with the words from ``first`` to ``last``: the blanks and continuations before them, or their
    line."""
    start, end = written.extents[first][0], written.extents[last][1]
    if written.array is None:
        return (written.extents[first - 1][1], end) if first else None
    line = written.text.line_start(start)
    if not written.text.data[line:start].strip(b" \t") and (rest := _REST_OF_LINE.match(written.text.data, end)):
        return line, written.text.line_end(rest.end())
    before, after = written.extents[first - 1 : first], written.extents[last + 1 : last + 2]
    if before and before[0][1] > line:
        return before[0][1], end
    return (start, after[0][0]) if after and b"\n" not in written.text.data[end : after[0][0]] else None


