"""The commands that Python starts, word by word: ``subprocess.run(["torchrun", …])``, ``os.system("torchrun …")``, ``os.execvp``."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from typing import NamedTuple

from ldlm_lint.budget import deep
from ldlm_lint.concepts.text_parts import Place, Places
from ldlm_lint.concepts.texts import Texts
from ldlm_lint.program.codebase import Concept
from ldlm_lint.program.handles import Call, Expr

_RUNS = frozenset(f"subprocess.{name}" for name in ("run", "call", "check_call", "check_output", "Popen"))
_SHELLS = frozenset({"os.system", "os.popen", "subprocess.getoutput"})
_EXECUTES = frozenset(f"os.{name}" for name in ("execv", "execvp", "execve", "execvpe"))
_EXECUTABLE = "sys.executable"
_LONGEST = 10_000


class CommandWord(NamedTuple):
    """A word of a command in shell syntax (``${name}`` for an unknown part), and its place: the list or call that it is an
    element of, or a part of an element, and which one; None if it has none."""

    text: str
    holder: Expr | None = None
    nth: int = 0


class Command(NamedTuple):
    """A command and the call that starts it."""

    call: Call
    words: tuple[CommandWord, ...]


class Launches(Concept):
    """Finds the commands."""

    def all(self) -> Iterator[Command]:
        """Every command of which at least the first word is known."""
        for call in self.code.calls(_RUNS | _SHELLS | _EXECUTES):
            names = call.callee.interfaces
            position, parameter = (1, "args") if names & _EXECUTES else (0, "command" if "os.system" in names else "args")
            with deep():
                for source in call.argument(parameter, position).values[:1]:
                    words = tuple(self._words(Place(source, None, call, position), call) or ())
                    if words and words[0].text and "$" not in words[0].text:
                        yield Command(call, words)

    def _words(self, place: Place, reader: Call) -> list[CommandWord] | None:
        """The words of a list argument, or of a text that a shell or `shlex` splits."""
        places = self.code[Places]
        elements = places.elements(place, reader)
        if elements is not None:
            return [self._word(one) for one in elements]
        resolved = places.resolved(place)
        if resolved is None:
            return None
        made = resolved.expr
        if made.kind == "seq":
            # Words may be added to the literal ones.
            own = [Place(one, resolved.context, made, index) for index, one in enumerate(made.operands)]
            return [*map(self._word, own), CommandWord("$@")]
        if isinstance(made, Call) and made.receiver is not None and made.called_name == "split":
            # `text.split()`, `shlex.split(text)`
            resolved = resolved.beside(made.positional[0] if made.positional else made.receiver)
        text = self._shown(resolved)
        slot = (place.holder, place.nth) if resolved.expr == place.expr else (None, 0)
        return None if text is None or len(text) > _LONGEST else [CommandWord(one, *slot) for one in _split(text)]

    def _word(self, place: Place) -> CommandWord:
        # Any number of words may be at a star.
        text = "$@" if place.expr.kind == "star" else self._shown(place) or self._name(place)
        return CommandWord(text, place.holder, place.nth)

    def _shown(self, place: Place) -> str | None:
        """A text with ``$name`` for each unknown part; None for something else."""
        known = self.code[Texts].at(place)
        if len(known) == 1:
            return known[0]
        resolved = self.code[Places].resolved(place)
        if resolved is None or (not known and resolved.expr.kind not in ("fstr", "op", "attr")):
            return None
        made = resolved.expr
        if made.kind == "attr" and _EXECUTABLE in made.outside_names:
            return "python"
        if made.kind == "fstr":
            return "".join(self._part(resolved.beside(one)) for one in made.operands)
        if made.operator == "Add":
            sides = [resolved.beside(one) for one in made.operands]
            shown = [self._shown(side) for side in sides]
            return None if shown == [None, None] else "".join(text or self._name(side) for text, side in zip(shown, sides, strict=True))
        return None

    def _part(self, place: Place) -> str:
        return self._shown(place) or self._name(place)

    def _name(self, place: Place) -> str:
        """A variable of a shell for an unknown value."""
        expr = place.expr
        if isinstance(expr, Call) and expr.called_name == "str" and len(expr.positional) == 1:
            return self._name(place.beside(expr.positional[0]))
        name = expr.last_name.strip("()")
        return "${" + (name if name.isidentifier() and name.isascii() else "_") + "}"


def _split(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError:
        # An unclosed quote: a shell would reject it too.
        return []


__all__ = ["Command", "CommandWord", "Launches"]
