"""The launch grammar: which words belong to the launcher, which is the entry, and which reach the program.

Pure, on the words of one command with quotes removed and expansions as written. The options of each launcher are data
(`ldlm_lint/tables/launchers.json`). After an unknown option it is unknown whether the next word is its value: the entry
is then only set if no other word can be one.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Sequence
from typing import NamedTuple

from ldlm_lint import tables
from ldlm_lint.shell import launchers
from ldlm_lint.shell.launch_options import ALIASES, PROGRAM, Option, read_options
from ldlm_lint.shell.script import Word

# Modules that run the program after their options. `srun env nice torchrun …`: deeper nesting means something else.
_MOST_STARTERS = 20
_UNDER = {
    "pdb": frozenset({"-c"}),
    "ipdb": frozenset({"-c"}),
    "debugpy": frozenset({"--listen", "--connect", "--configure-subProcess"}),
    "cProfile": frozenset({"-o", "-s"}),
    "viztracer": frozenset({"-o", "--output_file", "--tracer_entries"}),
    "memory_profiler": frozenset(),
    "torch.utils.bottleneck": frozenset(),
    "kernprof": frozenset({"-o"}),
}


class Form(enum.Enum):
    """The kind of a launch's entry."""

    FILE = "file"
    MODULE = "module"
    CONSOLE = "console"
    COMMAND = "command"
    CODE = "code"
    UNKNOWN = "unknown"


class Invocation(NamedTuple):
    """A parsed launch command.

    ``launchers`` from the outside in (``srun``, ``torchrun``); the last one starts the entry. ``entry`` is the word of
    the file, module, console command or executable, None if unknown (``form`` is UNKNOWN) or if the program is code on
    the command line. ``arguments`` are the words that reach the program, unless the entry is unknown.
    """

    launchers: tuple[str, ...]
    options: tuple[Option, ...]
    entry: Word | None
    form: Form
    arguments: tuple[Word, ...]

    @property
    def launcher(self) -> str:
        """The launcher that starts the entry."""
        return self.launchers[-1] if self.launchers else ""

    @property
    def entry_text(self) -> str:
        """The entry as written; empty if there is none."""
        return self.entry.text if self.entry is not None else ""

    def option(self, *names: str) -> Option | None:
        """The last option with one of these names."""
        return next((one for one in reversed(self.options) if one.name in names), None)

    @property
    def processes(self) -> str | None:
        """The number of processes, as written: per node for torchrun and deepspeed; None if not given."""
        return self._counted("processes")

    @property
    def nodes(self) -> str | None:
        """The number of nodes, as written; None if not given."""
        return self._counted("nodes")

    def _counted(self, what: str) -> str | None:
        named = tables.launchers()[what]
        for launcher in reversed(self.launchers):
            wanted = named.get(ALIASES.get(launcher, launcher), ())
            found = next(
                (one for one in reversed(self.options) if one.launcher == launcher and one.name in wanted), None
            )
            if found is not None:
                return found.text
        return None


class Call(NamedTuple):
    """A command that runs another shell script: its word, and the arguments that the script gets."""

    script: Word
    arguments: tuple[Word, ...]
    launchers: tuple[str, ...] = ()
    options: tuple[Option, ...] = ()


def read(words: Sequence[Word]) -> Invocation | None:
    """A parsed launch command; None for a command that starts no program.

    ``words`` are those of one simple command, with known argument variables expanded.
    """
    started, options, rest = _started(words)
    name = launchers.named([word.text for word in rest]) if rest else None
    if name is None or name in launchers.STARTERS:
        return _python_file(started, options, rest) if rest else None
    names = (*started, name)
    if name in launchers.CONSOLE:
        return _console(names, options, rest)
    if name == "python":
        return _python(names, options, rest)
    return _ranks(names, options, rest[_taken(rest) :])


def call_of(words: Sequence[Word]) -> Call | None:
    """The shell script that a command runs or submits to a scheduler; None for any other command."""
    started, options, rest = _started(words)
    if not rest:
        return None
    name, index = rest[0].text.rpartition("/")[2], 0
    if name in ("bash", "sh", "zsh", "dash"):
        index = next((at for at, word in enumerate(rest[1:], 1) if not word.text.startswith(("-", "+"))), len(rest))
        if any(re.fullmatch(r"-\w*c", word.text) for word in rest[1:index]):
            return None
    elif name == "sbatch":
        more, index, certain = read_options("sbatch", rest, 1)
        options = (*options, *more)
        if not certain:
            return None
    elif not re.fullmatch(r".+\.(?:sh|bash|slurm|sbatch)", name):
        return None
    return Call(rest[index], tuple(rest[index + 1 :]), started, options) if index < len(rest) else None


def _started(words: Sequence[Word]) -> tuple[tuple[str, ...], tuple[Option, ...], list[Word]]:
    """The starters in front of a command with their options, and the command, without wrappers."""
    names: list[str] = []
    options: list[Option] = []
    rest = list(words)
    for _ in range(_MOST_STARTERS):
        if not rest:
            break
        texts = [word.text for word in rest]
        behind = launchers.unwrapped(texts)
        if behind is not None:
            rest = rest[behind:]
            continue
        name = launchers.named(texts)
        if name not in launchers.STARTERS:
            break
        found, index, certain = read_options(name, rest, 1)
        if not certain:
            return tuple(names), tuple(options), []
        names.append(name)
        options += found
        rest = rest[index:]
    else:
        rest = []
    return tuple(names), tuple(options), rest


def _python_file(started: tuple[str, ...], options: tuple[Option, ...], rest: list[Word]) -> Invocation | None:
    """``srun ./train.py`` and ``uv run train.py``, or another program that a starter runs."""
    if PROGRAM.fullmatch(rest[0].text):
        return Invocation((*started, "python"), options, rest[0], Form.FILE, tuple(rest[1:]))
    return Invocation(started, options, rest[0], Form.COMMAND, tuple(rest[1:])) if started else None


def _console(names: tuple[str, ...], options: tuple[Option, ...], rest: list[Word]) -> Invocation:
    """A command installed by a library; ``tune run`` accepts the options of torchrun before its recipe."""
    name, taken = names[-1], 1 + bool(launchers.CONSOLE[names[-1]])
    if name == "tune":
        found, taken, certain = read_options(name, rest, taken)
        options = (*options, *found)
        taken = taken if certain else len(rest)
    return Invocation(names, options, rest[0], Form.CONSOLE, tuple(rest[taken:]))


def _taken(rest: Sequence[Word]) -> int:
    """How many words name a launcher: ``torchrun``, ``accelerate launch``, ``python -u -m torch.distributed.run``."""
    texts = [word.text for word in rest]
    name = texts[0].rpartition("/")[2]
    if name == "accelerate":
        return 2
    if not name.startswith("python"):
        return 1
    index, module = launchers.python_target(texts)
    installed = module is None and "accelerate" in texts[index]
    return index + 1 + installed


def _ranks(names: tuple[str, ...], options: tuple[Option, ...], rest: list[Word]) -> Invocation:
    """A launcher of ranks and the words after its name."""
    found, index, certain = read_options(names[-1], rest, 0)
    options = (*options, *found)
    own = {one.name for one in found}
    table = tables.launchers()
    form = Form.MODULE if own & {*table["module"]} else Form.COMMAND if own & {*table["command"]} else Form.FILE
    if not certain or index >= len(rest) or not _is_entry(rest[index].text):
        return Invocation(names, options, None, Form.UNKNOWN, ())
    return Invocation(names, options, rest[index], form, tuple(rest[index + 1 :]))


def _python(names: tuple[str, ...], options: tuple[Option, ...], rest: list[Word]) -> Invocation:
    """Plain python: a file, a module or code; a debugger or profiler is looked through."""
    texts = [word.text for word in rest]
    index, module = launchers.python_target(texts)
    while module in _UNDER:
        index += 1
        while index < len(texts) and texts[index].startswith("-") and texts[index] != "-m":
            index += 2 if texts[index] in _UNDER[module] else 1
        module = None
        if texts[index : index + 1] == ["-m"]:
            index, module = index + 1, texts[index + 1] if index + 1 < len(texts) else ""
    if index >= len(texts) or texts[index] == "-" or re.fullmatch(r"-\w*c", texts[index]):
        # Without a file it reads code from its input.
        return Invocation(names, options, None, Form.CODE, ())
    if not _is_entry(texts[index]):
        return Invocation(names, options, None, Form.UNKNOWN, ())
    return Invocation(
        names, options, rest[index], Form.FILE if module is None else Form.MODULE, tuple(rest[index + 1 :])
    )


def _is_entry(text: str) -> bool:
    """Whether a word can be a path or a module: an escaped blank at the end of a line is neither."""
    return re.search(r"\w", text) is not None
