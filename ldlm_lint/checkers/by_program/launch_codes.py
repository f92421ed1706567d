"""Commands that Python starts as shell code whose words are mapped to Python source."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ldlm_lint.checkers.by_program.written import Part, parts_of
from ldlm_lint.concepts.started_commands import Command, CommandWord, StartedCommands
from ldlm_lint.concepts.texts import Texts
from ldlm_lint.model import Span
from ldlm_lint.shell import launchers, tree
from ldlm_lint.shell.launch_code import Code
from ldlm_lint.shell.script import Launch, Script, Word
from ldlm_lint.shell.text import Text
from ldlm_lint.source import Kind, Source

if TYPE_CHECKING:
    from ldlm_lint.checkers.by_program.view import View


def codes_of(view: View) -> Iterator[tuple[str, Code]]:
    """The launches of Python, each as a script of one command whose words are mapped to Python source."""
    for command in StartedCommands(view.ask, view[Texts]).all():
        texts = [one.text for one in command.words]
        launcher = launchers.launcher_of(texts)
        if launcher:
            module = view.program.module_of(command.call)
            source = Source(view.path(module), view.source(module).data, Kind.SHELL)
            started = Launch(launcher, view.call_span(command.call), tuple(_words(view, command)))
            script = Script(launches=(started,))
            yield view.path(module), Code(Text.of(source), script, tree.parse(b""), {kind: [] for kind in tree.KINDS})


def _words(view: View, command: Command) -> Iterator[Word]:
    behind = 0
    for word in command.words:
        span = _span(view, command, word, behind)
        behind = span.end
        yield Word(word.text, span, "$" not in word.text)


def _span(view: View, command: Command, word: CommandWord, behind: int) -> Span:
    """The place of a word; inside a longer text ``behind`` the previous one, if the text contains it verbatim.

    If it has no place, the first bytes of the call with its length.
    """
    length = len(word.text.encode())
    call = view.call_span(command.call)
    elsewhere = call._replace(end=call.start + length)
    written = _written(view, word)
    if written is None:
        return elsewhere
    span, module = written.span, view.program.module_of(word.slot[0])
    if not (written.is_constant or written.row[0] == "fstr") or written.is_name:
        return span
    start = view.source(module).data.find(word.text.encode(), max(span.start, behind if behind <= span.end else 0), span.end)
    return span._replace(start=start, end=start + length) if start >= 0 else elsewhere


def _written(view: View, word: CommandWord) -> Part | None:
    """The element of a list, or argument of a call, that a word is or is a part of."""
    holder, index = word.slot
    parts = [one for one in parts_of(view, holder) if not one.name] if holder >= 0 else []
    return parts[index] if index < len(parts) else None


__all__ = ["codes_of"]
