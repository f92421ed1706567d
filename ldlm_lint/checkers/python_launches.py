"""The rules of launch commands applied to commands that Python starts: ``subprocess.run(["torchrun", …])``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ldlm_lint.checkers.project_code import STARTING, ProjectCode
from ldlm_lint.concepts.launches import Command, CommandWord, Launches
from ldlm_lint.edits.written_parts import Part, parts_of
from ldlm_lint.model import Finding, Span
from ldlm_lint.rules import ALL
from ldlm_lint.source import Kind, Source

if TYPE_CHECKING:
    from ldlm_lint.shell.launch_code import Code
    from ldlm_lint.shell.script import Word

RULES = tuple(rule for rule in ALL if "sh" in rule.reads)
WORDS = STARTING


def find(code: ProjectCode) -> Iterator[Finding]:
    """The findings of the launch rules; without fixes, which would be shell code."""
    for path, command in code.launches_of_python:
        from ldlm_lint.checkers.scripts import launches

        call = command.script.launches[0].span
        for finding in launches.findings((command,), code.facts_on(path)):
            # A word without a place in Python is reported at the command's start.
            span = call if finding.span.path == call.path and finding.span.start == call.start else finding.span
            related = tuple(one for one in finding.related if one.span != finding.span)
            yield finding._replace(span=span, fix=None, related=related)


def codes_of(code: ProjectCode) -> Iterator[tuple[str, Code]]:
    """The launches of Python, each as a script of one command whose words are mapped to Python source."""
    # The reader of scripts is loaded only where there is something to read.
    from ldlm_lint.shell import launchers, tree
    from ldlm_lint.shell.launch_code import Code
    from ldlm_lint.shell.script import Launch, Script
    from ldlm_lint.shell.text import Text

    for command in code[Launches].all():
        launcher = launchers.launcher_of([one.text for one in command.words])
        if launcher:
            module = command.call.module
            source = Source(code.path(module), code.source(module).data, Kind.SHELL)
            started = Launch(launcher, command.call.span, tuple(_words(code, command)))
            script = Script(launches=(started,))
            yield code.path(module), Code(Text.of(source), script, tree.parse(b""), {kind: [] for kind in tree.KINDS})


def _words(code: ProjectCode, command: Command) -> Iterator[Word]:
    from ldlm_lint.shell.script import Word

    behind = 0
    for word in command.words:
        span = _span(code, command, word, behind)
        behind = span.end
        yield Word(word.text, span, "$" not in word.text)


def _span(code: ProjectCode, command: Command, word: CommandWord, behind: int) -> Span:
    """The place of a word; inside a longer text ``behind`` the previous one, if the text contains it verbatim.

    If it has no place, the first bytes of the call with its length.
    """
    length = len(word.text.encode())
    call = command.call.span
    elsewhere = call._replace(end=call.start + length)
    written = _written(word)
    if written is None or word.holder is None:
        return elsewhere
    span = written.span
    if not (written.is_constant or written.is_formatted) or written.is_name:
        return span
    start = code.source(word.holder.module).data.find(word.text.encode(), max(span.start, behind if behind <= span.end else 0), span.end)
    return span._replace(start=start, end=start + length) if start >= 0 else elsewhere


def _written(word: CommandWord) -> Part | None:
    """The element of a list, or argument of a call, that a word is or is a part of."""
    parts = [one for one in parts_of(word.holder) if not one.name] if word.holder is not None else []
    return parts[word.nth] if word.nth < len(parts) else None
