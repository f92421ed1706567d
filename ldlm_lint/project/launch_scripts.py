"""Scripts and the scripts they call: every place that starts a program, with its effective arguments."""

from __future__ import annotations

import os
import posixpath
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

from ldlm_lint.model import Span
from ldlm_lint.patterns import lazily
from ldlm_lint.project import launch_containers
from ldlm_lint.project import launch_heredocs as heredocs
from ldlm_lint.project.index import Project
from ldlm_lint.project.launch_paths import Paths, is_here, leading_variable, own_folder
from ldlm_lint.project.launch_values import Frame, environment_of, passed, possible, split
from ldlm_lint.project.programs import Given
from ldlm_lint.project.sourcing import Sourcing
from ldlm_lint.shell import launch_grammar, launchers, tree, words
from ldlm_lint.shell.launch_arguments import written_words
from ldlm_lint.shell.launch_code import Code
from ldlm_lint.shell.launch_commands import through_variables, words_of
from ldlm_lint.shell.launch_grammar import Invocation
from ldlm_lint.shell.script import Word
from ldlm_lint.shell.text import Text
from ldlm_lint.source import Kind

_CALLS = lazily(rb"\.(?:sh|bash|slurm|sbatch)\b|\b(?:bash|sbatch)[ \t]")
# Anchored at the beginning of a word, so that the search does not restart at each letter.
_SCRIPT = lazily(rb"(?<![\w.-])[\w.-]+\.(?:sh|bash|slurm|sbatch)\b")
_DEPTH = 3
_MOST_SCRIPTS = 1000


class Started(NamedTuple):
    """A launch of a frame: its parsed words, and the possible working folders, the likeliest first."""

    frame: Frame
    span: Span
    invocation: Invocation
    folders: tuple[str, ...]
    environment: tuple[Given, ...] = ()


@dataclass
class Scripts:
    """The shell scripts of a project; ``of_python`` returns the commands that its Python files start."""

    project: Project
    paths: Paths
    of_python: Callable[[], Iterable[tuple[str, Code]]] = tuple
    _started: dict[str, tuple[Started, ...]] = field(default_factory=dict)

    def started(self) -> Iterator[Started]:
        """Every launch of every script, once per call of its script, and those of containers and Python."""
        for path in self.project.of_kind(Kind.SHELL):
            yield from self.started_by(path)
        for path, (own, *strings) in launch_containers.codes(self.project):
            yield from self._launches(Frame(own, path), strings)
        for path, code in self.of_python():
            yield from self._launches(Frame(code, path), ())

    def started_by(self, path: str) -> tuple[Started, ...]:
        """The launches of one script, once per call of it."""
        if path not in self._started:
            self._started[path] = tuple(self._find_started(path)) if self._may_launch(path) else ()
        return self._started[path]

    def _find_started(self, path: str) -> Iterator[Started]:
        seen: set[tuple[object, ...]] = set()
        for frame in self._frames(path, ()):
            for one in self._launches(frame, self.codes(path)[1:]):
                key = (one.span, one.invocation, one.environment)
                if key not in seen:
                    seen.add(key)
                    yield one

    @cached_property
    def _sourcing(self) -> Sourcing:
        return Sourcing(self.project)

    def codes(self, path: str) -> tuple[Code, ...]:
        """The code of a script, its own first, then the strings that it runs, with the variables of sourced files."""
        return self._sourcing.codes(path)

    # Scripts that call scripts

    def _frames(self, path: str, above: tuple[str, ...]) -> Iterator[Frame]:
        """The runs of a script: one per call of it, or one manual run if it is never called."""
        found = self.codes(path)
        if not found:
            return
        called = False
        for caller, call, span in self._callers.get(path, ()) if len(above) < _DEPTH else ():
            if caller in above or caller == path:
                continue
            for frame in self._frames(caller, (*above, path)):
                called = True
                given = tuple(passed(frame, call.arguments))
                environment = (*frame.environment, *self._environment(frame, span))
                yield Frame(found[0], path, given, frame, (*frame.via, span), environment)
        if not called:
            yield Frame(found[0], path)

    @cached_property
    def _callers(self) -> dict[str, list[tuple[str, launch_grammar.Call, Span]]]:
        """The calls of each script of the project by other scripts, if they lead to a launch."""
        found: dict[str, list[tuple[str, launch_grammar.Call, Span]]] = {}
        wanted = self._worth_calling
        for path in self.project.of_kind(Kind.SHELL):
            source = self.project.source(path) if wanted & self._mentions(path) else None
            if source is None:
                continue
            text = Text.of(source)
            for node in tree.nodes(text.data)["command"]:
                if not _CALLS.search(text.data, node.start_byte, node.end_byte):
                    continue
                call = launch_grammar.call_of(words_of(text, node))
                if call is None or (
                    "$" not in call.script.text and os.fsencode(posixpath.basename(call.script.text)) not in wanted
                ):
                    continue
                span = text.span(node.start_byte, node.end_byte)
                code = self.codes(path)[:1]
                target = self.file(Frame(code[0], path), call.script, span) if code else None
                if target and self.project.others.get(target) is Kind.SHELL:
                    found.setdefault(target, []).append((path, call, span))
        return found

    def _mentions(self, path: str) -> frozenset[bytes]:
        """The names of scripts in the text of a script."""
        return frozenset(_SCRIPT.findall(self.project.data(path)))

    @cached_property
    def _worth_calling(self) -> frozenset[bytes]:
        """The names of the scripts that launch something, and of those that mention them.

        In collections of thousands of scripts, such as recipes, the calls between them are not followed: reading all of
        them would dominate the run time.
        """
        scripts = self.project.of_kind(Kind.SHELL)
        if len(scripts) > _MOST_SCRIPTS:
            return frozenset()
        names = {os.fsencode(posixpath.basename(path)) for path in scripts if self._may_launch(path)}
        for _ in range(_DEPTH - 1):
            names |= {os.fsencode(posixpath.basename(path)) for path in scripts if names & self._mentions(path)}
        return frozenset(names)

    def _may_launch(self, path: str) -> bool:
        data = self.project.data(path)
        return launchers.HINT.search(data) is not None or b".py" in data

    # Launches

    def _launches(self, frame: Frame, strings: Sequence[Code]) -> Iterator[Started]:
        own = frame.code
        through = list(through_variables(own))
        # The string of such a variable is not run separately.
        taken = {word.span.start for launch in through for word in written_words(own, launch)[:1]}
        for code in (own, *strings):
            launches = [*code.script.launches, *(through if code is own else ())]
            for launch in sorted(launches, key=lambda one: one.span):
                if code is not own and launch.words[0].span.start in taken:
                    continue
                written = heredocs.filled(frame.code, written_words(frame.code, launch))
                given = tuple(split(frame, passed(frame, written)))
                invocation = launch_grammar.read(given)
                if invocation is not None:
                    environment = (*frame.environment, *self._environment(frame, launch.span))
                    yield Started(frame, launch.span, invocation, self.folders(frame, launch.span), environment)

    def _environment(self, frame: Frame, place: Span) -> Iterator[Given]:
        sourced = self._sourcing.sourced_by(frame.path)
        codes = ((code, one.span) for one in sourced for code in self.codes(one.path)[:1])
        return environment_of(frame, place, codes)

    def folders(self, frame: Frame, place: Span) -> tuple[str, ...]:
        """The folders that a command may run in: after ``cd``, else those from the script's own up to the root."""
        start = self.folders(frame.caller, frame.via[-1]) if frame.caller else ()
        current = tuple(dict.fromkeys((*start, *self.paths.upwards(frame.path))))
        for at, folder in frame.code.moves:
            if at >= place.start:
                break
            current = self._moved(frame, current, folder) or current
        return current

    def _moved(self, frame: Frame, current: tuple[str, ...], raw: str) -> tuple[str, ...]:
        own = own_folder(raw, frame.path, self.paths.root)
        if own is not None:
            return (own,)
        text = words.read_word(raw)
        leading = leading_variable(text)
        if leading is not None:
            folder = self._folder(frame, leading[0])
            return self.paths.below([folder], leading[1].strip("/")) if folder else ()
        return () if "$" in text or "`" in text or text.startswith("/") else self.paths.below(current, text)

    def _folder(self, frame: Frame, name: str, depth: int = 0) -> str | None:
        """The folder of the project that a variable of a script holds by one of the idioms for it."""
        for assignment in reversed(frame.code.assigned(name)):
            raw = frame.code.source.slice(assignment.value_span)
            own = own_folder(raw, frame.path, self.paths.root)
            if own is not None:
                return own
            leading = leading_variable(raw.strip("\"'"))
            if (
                leading
                and depth < _DEPTH
                and leading[0] != name
                and (folder := self._folder(frame, leading[0], depth + 1))
            ):
                return posixpath.normpath(posixpath.join(folder, leading[1].strip("/")))
        return None

    def file(self, frame: Frame, word: Word, place: Span) -> str | None:
        """The file of the project named by a word of a command."""
        folders = self.folders(frame, place)
        known = possible(frame, word.text, word.span)
        texts = sorted({one.text for one in known}) if known else [word.text]
        found = {self._find(frame, text, folders) for text in texts}
        return found.pop() if len(found) == 1 else None

    def _find(self, frame: Frame, text: str, folders: tuple[str, ...]) -> str | None:
        own = own_folder(text, frame.path, self.paths.root)
        if own is not None and ")" in text:
            return own if own in self.paths.files else self.paths.find(text.rpartition(")")[2].strip('/"'), [own])
        leading = leading_variable(text)
        if leading:
            folder = self._folder(frame, leading[0])
            if folder is not None:
                return self.paths.find(leading[1].lstrip("/"), [folder])
            if any(is_here(frame.code.source.slice(one.value_span)) for one in frame.code.assigned(leading[0])):
                return self.paths.find(leading[1].lstrip("/"), folders)
        return self.paths.find(text, folders)
