"""The commands in a YAML, JSON or TOML file: of containers, of jobs, and scripts in a ConfigMap."""

from __future__ import annotations

from collections.abc import Iterator

from ldlm_lint.configs import commands
from ldlm_lint.configs.commands import Code
from ldlm_lint.configs.document import Document, Entry, Path, Shape
from ldlm_lint.configs.roles import Roles
from ldlm_lint.patterns import lazily
from ldlm_lint.source import Source

# `run` of SkyPilot, `commands` of dstack, `source` of Argo, `cmd` and `entrypoint` of job files.
_LINES = frozenset({"commands"})
_TEXTS = frozenset({"run", "command", "cmd", "script", "source", "entrypoint", "args"})
_WORDS = frozenset({"command", "args", "entrypoint", "cmd"})
_SCRIPT = lazily(r".*\.(?:sh|bash|sbatch|slurm)")


def codes(source: Source, document: Document) -> Iterator[tuple[Code, Entry]]:
    """The code of a file with its entry; places for debugging are left out."""
    roles = Roles(document)
    for entry in document.entries:
        name = entry.path[-1] if entry.path else ""
        if entry.shared or not isinstance(name, str) or document.get(*entry.path, document=entry.document) is not entry:
            continue
        code = _code(source, document, entry, name)
        if code is not None and not roles.debugs(entry):
            yield code, entry


def _code(source: Source, document: Document, entry: Entry, name: str) -> Code | None:
    if entry.shape is Shape.SCALAR and isinstance(entry.value, str):
        if name in _TEXTS or _SCRIPT.fullmatch(name):
            # Compose does not pass a text to a shell.
            return _text(source, entry, words=entry.path[0] == "services")
    elif entry.shape is Shape.SEQUENCE:
        items = list(document.children(*entry.path, document=entry.document))
        if any(one.shape is not Shape.SCALAR or one.shared for one in items):
            return None
        if name in _LINES:
            return _lines(source, items)
        if name in _WORDS:
            return _listed(source, document, entry, items)
    return None


def _listed(source: Source, document: Document, entry: Entry, items: list[Entry]) -> Code | None:
    """A list of words; the ``args`` of a container follow its ``command``."""
    if entry.path[-1] == "args":
        before = _items(document, (*entry.path[:-1], "command"), entry.document)
        if before:
            # They are one command; a leading shell is handled there.
            return None
    elif entry.path[-1] == "command":
        items = [*items, *_items(document, (*entry.path[:-1], "args"), entry.document)]
        items.sort(key=lambda one: one.span.start)
    texts = [one.text for one in items]
    block = commands.shell_code(texts)
    if block is not None:
        return _text(source, items[block], words=False, pipefail=any("pipefail" in text for text in texts[1:block]))
    # A word with escapes is used as a whole.
    return commands.command(source, [_inner(source, one) or (one.span.start, one.span.end) for one in items])


def _items(document: Document, path: Path, number: int) -> list[Entry]:
    found = document.get(*path, document=number)
    items = (
        list(document.children(*path, document=number)) if found is not None and found.shape is Shape.SEQUENCE else []
    )
    return items if all(one.shape is Shape.SCALAR and not one.shared for one in items) else []


def _lines(source: Source, items: list[Entry]) -> Code | None:
    """A list of command lines, each a separate text, as one script with blanks in between."""
    found = [_text(source, one, words=False) for one in items]
    if not items or any(one is None for one in found):
        return None
    data = b""
    for one in found:
        if one is not None:
            data += one.data[len(data) :]
    return Code(found[0].start if found[0] is not None else 0, data)


def _inner(source: Source, entry: Entry) -> tuple[int, int] | None:
    """The bytes of a text of one line without its quotes; None if it has escapes."""
    raw, text = source.slice(entry.span), entry.text
    if raw == text and "\n" not in raw:
        return entry.span.start, entry.span.end
    if len(raw) > 1 and raw[0] in "\"'" and raw[-1] == raw[0] and raw[1:-1] == text and "\n" not in raw:
        return entry.span.start + 1, entry.span.end - 1
    return None


def _wrapped(source: Source, entry: Entry) -> tuple[int, int] | None:
    """The bytes of a text over several lines, whose line ends read as blanks; None if it holds escapes."""
    raw = source.slice(entry.span)
    quoted = raw[:1] in ("'", '"')
    inner = raw[1:-1] if quoted else raw
    if inner.split() != entry.text.split():
        return None
    return entry.span.start + quoted, entry.span.end - quoted


def _text(source: Source, entry: Entry, *, words: bool, pipefail: bool = False) -> Code | None:
    """A text as a script: a literal block line by line, everything else in one line."""
    raw = source.slice(entry.span)
    data = source.data
    if raw[:1] in ("|", ">"):
        first = data.find(b"\n", entry.span.start) + 1
        if not first or first >= entry.span.end:
            return None
        first += len(data[first : entry.span.end]) - len(data[first : entry.span.end].lstrip(b" \r\n"))
        after = data[entry.span.end : entry.span.end + 2]
        end = entry.span.end + (2 if after == b"\r\n" else after[:1] == b"\n")
        code = commands.stretch(source, first, end, folded=raw[0] == ">", pipefail=pipefail)
    else:
        place = _inner(source, entry) or _wrapped(source, entry)
        if place is None:
            return None
        code = commands.stretch(source, *place, folded=True, pipefail=pipefail)
    return Code(code.start, code.data, words, pipefail)
