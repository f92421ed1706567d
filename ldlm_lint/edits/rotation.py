"""The edits that keep the last few of numbered files: a function of the file, and its call after each save."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ldlm_lint.edits.imports import ensure_import
from ldlm_lint.edits.lines import is_alone
from ldlm_lint.model import Edit, Span
from ldlm_lint.patterns import lazily
from ldlm_lint.source import Source

_NAME = "_keep_last"
_FUNCTION = '''\
def _keep_last(path, before, after, keep={keep}):
    """Delete old checkpoints: of the files numbered like ``path``, which was just saved, keep the last ``keep``.

    The number is between ``before`` and ``after``. Files with a higher number, links, and the targets
    of links in the same folder are not deleted.
    """
    path = {Path}(path)

    def number(file):
        digits = file.name[len(before) : len(file.name) - len(after)]
        return int(digits) if digits.isdecimal() and file.name == before + digits + after else -1

    try:
        files = list(path.parent.iterdir())
        linked = {{file.resolve() for file in files if file.is_symlink() and file.exists()}}
        older = [file for file in files if 0 <= number(file) < number(path)]
        older = [file for file in older if file.is_file() and not file.is_symlink()]
        for old in sorted(older, key=number)[: max(len(older) - keep + 1, 0)]:
            if old.resolve() not in linked:
                old.unlink(missing_ok=True)
    except OSError as error:
        # A file that cannot be deleted must not end the run.
        print(f"old checkpoints next to {{path}} were not deleted: {{error}}")


'''
_CALLED = lazily(r"(\w+)\(")
_OF_PATHS = frozenset({"join", "joinpath", "format", "str", "zfill", "int", "Path", "PurePath", "abspath", "expanduser", "normpath", "fspath", "realpath"})
_UNQUOTED = frozenset("\"'\\{}")


class NumberedSave(NamedTuple):
    """A call that writes a file, the code of the path, and what is before and after the number in the file's name."""

    span: Span
    path: str
    before: str
    after: str


def keep_last(source: Source, saves: Sequence[NumberedSave], keep: int) -> tuple[Edit, ...]:
    """The edits for saves that are statements of their own; empty if one is not, or cannot be followed by a call."""
    if not all(is_alone(source, one.span) and _can_be_called(one) for one in saves):
        return ()
    helper = [] if f"def {_NAME}(path, before, after, keep=" in source.text else _helper(source, saves[0].span, keep)
    if helper and _NAME in source.text:
        return ()
    return tuple(sorted([*helper, *(_called_after(source, one) for one in saves)]))


def _can_be_called(save: NumberedSave) -> bool:
    """Whether the path can be repeated, and the texts be written with any quote."""
    return can_be_repeated(save.path) and _UNQUOTED.isdisjoint(save.before + save.after) and (save.before + save.after).isprintable()


def can_be_repeated(path: str) -> bool:
    """Whether the code of a path can be written and evaluated once more, in one line."""
    return "\n" not in path and _OF_PATHS.issuperset(_CALLED.findall(path))


def _called_after(source: Source, save: NumberedSave) -> Edit:
    """The call behind the lines of a save, after a comment there."""
    first, last = (source.position(at)[0] for at in (save.span.start, save.span.end))
    indent = source.lines[first - 1][: len(source.lines[first - 1]) - len(source.lines[first - 1].lstrip())]
    end = source.line_starts[last - 1] + len(source.lines[last - 1].encode(source.encoding))
    return Edit(source.span(end, end), f'{source.newline}{indent}{_NAME}({save.path}, "{save.before}", "{save.after}")')


def _helper(source: Source, save: Span, keep: int) -> list[Edit]:
    """The function, in front of the outermost definition that saves, and the import that it needs."""
    edit, path = ensure_import(source, "pathlib", "Path")
    number = source.position(save.start)[0]
    # A line that closes a bracket continues a statement; decorators and comments above belong to the definition.
    while number > 1 and (not source.lines[number - 1].strip() or source.lines[number - 1][0] in " \t)]}#"):
        number -= 1
    while number > 1 and source.lines[number - 2].startswith(("@", "#")):
        number -= 1
    blank = 2 - sum(not line.strip() for line in source.lines[max(number - 3, 0) : number - 1]) if number > 1 else 0
    text = "\n" * blank + _FUNCTION.format(keep=keep, Path=path)
    start = source.line_starts[number - 1]
    helper = Edit(source.span(start, start), text.replace("\n", source.newline))
    if edit is not None and edit.span == helper.span:
        return [Edit(edit.span, edit.text + helper.text)]
    return [helper, *([edit] if edit is not None else [])]


__all__ = ["NumberedSave", "can_be_repeated", "keep_last"]
