"""The commands that Python starts, word by word: ``subprocess.run(["torchrun", …])``, ``os.system("torchrun …")``, ``os.execvp``."""

from __future__ import annotations

import ast
import shlex
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple

from ldlm_lint.concepts.text_parts import Place
from ldlm_lint.program.atoms import MASK

if TYPE_CHECKING:
    from ldlm_lint.concepts.texts import Texts
    from ldlm_lint.program.modules import Module
    from ldlm_lint.program.queries import Queries

_RUNS = frozenset(f"subprocess.{name}" for name in ("run", "call", "check_call", "check_output", "Popen"))
_SHELLS = frozenset({"os.system", "os.popen", "subprocess.getoutput"})
_EXECUTES = frozenset(f"os.{name}" for name in ("execv", "execvp", "execve", "execvpe"))
_EXECUTABLE = "sys.executable"
_LONGEST = 10_000
_DEEPEST = 60


class CommandWord(NamedTuple):
    """A word of a command in shell syntax (``${name}`` for an unknown part), and its expression.

    ``node`` is that of the whole text where the word is a part of it; it and ``home`` (a module's index) are None if it
    has no expression here.
    """

    text: str
    home: int | None = None
    node: ast.expr | None = None


class Command(NamedTuple):
    """A command and the call (key) that starts it."""

    call: int
    words: tuple[CommandWord, ...]


class StartedCommands:
    """Finds the commands; ``written`` maps start positions to the expressions of a module."""

    def __init__(self, ask: Queries, texts: Texts, written: Callable[[Module], Mapping[int, list[ast.expr]]]) -> None:
        self._ask = ask
        self._texts = texts
        self._program = ask.program
        self._written = written

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
        home, node = self._node(place) if resolved.key == place.key else (None, None)
        return None if text is None or len(text) > _LONGEST else [CommandWord(one, home, node) for one in _split(text)]

    def _word(self, place: Place) -> Iterator[CommandWord]:
        text = self._shown(place) or self._name(place)
        home, node = self._node(place)
        if self._is_star(place):
            yield CommandWord("$@", home, node)
        else:
            yield CommandWord(text, home, node)

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

    def _node(self, place: Place) -> tuple[int | None, ast.expr | None]:
        """The expression that an element of a list is written as."""
        holder, index = place.slot
        if holder < 0:
            return None, None
        module = self._program.module_of(holder)
        for one in self._written(module).get(module.table.places[holder & MASK], ()):
            held = one.elts if isinstance(one, (ast.List, ast.Tuple)) else one.args if isinstance(one, ast.Call) else []
            if index < len(held) and (isinstance(one, ast.Call)) == (module.nodes[holder & MASK][0] == "call"):
                return module.index, held[index]
        return None, None


def _split(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError:
        # An unclosed quote: a shell would reject it too.
        return []


__all__ = ["Command", "CommandWord", "StartedCommands"]
