"""The commands that Python starts, word by word: ``subprocess.run(["torchrun", …])``, ``os.system("torchrun …")``, ``os.execvp``."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from ldlm_lint.concepts.text_parts import Place
from ldlm_lint.program.atoms import MASK

if TYPE_CHECKING:
    from ldlm_lint.concepts.texts import Texts
    from ldlm_lint.program.queries import Queries

_RUNS = frozenset(f"subprocess.{name}" for name in ("run", "call", "check_call", "check_output", "Popen"))
_SHELLS = frozenset({"os.system", "os.popen", "subprocess.getoutput"})
_EXECUTES = frozenset(f"os.{name}" for name in ("execv", "execvp", "execve", "execvpe"))
_EXECUTABLE = "sys.executable"
_LONGEST = 10_000
_DEEPEST = 60


class CommandWord(NamedTuple):
    """A word of a command in shell syntax (``${name}`` for an unknown part), and its place: the list or call (key) that it
    is an element of, or a part of an element, and the index; -1 if it has none."""

    text: str
    slot: tuple[int, int] = (-1, 0)


class Command(NamedTuple):
    """A command and the call (key) that starts it."""

    call: int
    words: tuple[CommandWord, ...]


class StartedCommands:
    """Finds the commands."""

    def __init__(self, ask: Queries, texts: Texts) -> None:
        self._ask = ask
        self._texts = texts
        self._program = ask.program

    def all(self) -> Iterator[Command]:
        """Every command of which at least the first word is known."""
        for call, name in self._ask.calls_of(_RUNS | _SHELLS | _EXECUTES):
            position, parameter = (1, "args") if name in _EXECUTES else (0, "command" if name == "os.system" else "args")
            for source in self._ask.argument(call, parameter, position).sources[:1]:
                words = tuple(self._words(Place(source, slot=(call, position)), Place(call)) or ())
                if words and words[0].text and "$" not in words[0].text:
                    yield Command(call, words)

    def _words(self, place: Place, reader: Place) -> list[CommandWord] | None:
        """The words of a list argument, or of a text that a shell or `shlex` splits."""
        elements = self._texts.places.elements(place, reader)
        if elements is not None:
            return [word for one in elements for word in self._word(one)]
        resolved = self._texts.places.resolved(place)
        if resolved is None:
            return None
        row = self._texts.places.row(resolved)
        if row[0] == "seq":
            # Words may be added to the literal ones.
            own = [resolved.beside(one)._replace(slot=(resolved.key, index)) for index, one in enumerate(row[2])]
            return [*(word for one in own for word in self._word(one)), CommandWord("$@")]
        if row[0] == "call":
            module = self._program.module_of(resolved.key)
            function = module.nodes[row[1]]
            if function[0] == "attr" and function[2] == "split":
                # `text.split()`, `shlex.split(text)`
                resolved = resolved.beside(row[2][0] if row[2] else function[1])
        text = self._shown(resolved)
        slot = place.slot if resolved.key == place.key else (-1, 0)
        return None if text is None or len(text) > _LONGEST else [CommandWord(one, slot) for one in _split(text)]

    def _word(self, place: Place) -> Iterator[CommandWord]:
        text = self._shown(place) or self._name(place)
        yield CommandWord("$@" if self._is_star(place) else text, place.slot)

    def _is_star(self, place: Place) -> bool:
        """Whether any number of words may be at a position."""
        return self._texts.places.row(place)[0] == "star"

    def _shown(self, place: Place, depth: int = 0) -> str | None:
        """A text with ``$name`` for each unknown part; None for something else."""
        if depth > _DEEPEST:
            return None
        known = self._texts.of(place.key, place.context)
        if len(known) == 1:
            return known[0]
        resolved = self._texts.places.resolved(place)
        row = self._texts.places.row(resolved) if resolved is not None else ("",)
        if resolved is None or (not known and row[0] not in ("fstr", "op", "attr")):
            return None
        if row[0] == "attr" and self._is_executable(resolved):
            return "python"
        if row[0] == "fstr":
            return "".join(self._part(resolved.beside(one), depth + 1) for one in row[1])
        if row[0] == "op" and row[1] == "Add":
            sides = [resolved.beside(one) for one in row[2:4]]
            shown = [self._shown(side, depth + 1) for side in sides]
            return None if shown == [None, None] else "".join(text or self._name(side) for text, side in zip(shown, sides, strict=True))
        return None

    def _part(self, place: Place, depth: int) -> str:
        return self._shown(place, depth) or self._name(place)

    def _name(self, place: Place) -> str:
        """A variable of a shell for an unknown value."""
        module, row = self._program.module_of(place.key), self._texts.places.row(place)
        if row[0] == "call" and module.last_name(row[1]) == "str" and len(row[2]) == 1:
            return self._name(place.beside(row[2][0]))
        name = module.last_name(place.key & MASK).strip("()")
        return "${" + (name if name.isidentifier() and name.isascii() else "_") + "}"

    def _is_executable(self, place: Place) -> bool:
        return any(fields[1] == _EXECUTABLE for fields in self._program.atoms.kinds(self._program.ask(place.key), "x"))


def _split(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError:
        # An unclosed quote: a shell would reject it too.
        return []


__all__ = ["Command", "CommandWord", "StartedCommands"]
