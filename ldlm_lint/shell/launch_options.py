"""The options of launchers: which words of a command belong to them, and where they end.

After an option that is in no table it is unknown whether the next word is its value, unless the following words show
it.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ldlm_lint import tables
from ldlm_lint.patterns import lazily
from ldlm_lint.shell import launchers
from ldlm_lint.shell.script import Word

_EXPANSION = lazily(r"\$(?:\{[^{}]*\}|\w+|[@*])")
_LIST = lazily(r"\$(?:\{(?:\w+\[[@*]\]|[@*][^{}]*)\}|[@*])")
_OF_OPTIONS = lazily(r"arg|opt|flag|param|setting|dist|launch|config|nccl|env|extra", re.I)
PROGRAM = lazily(r".*\.pyc?\"?")
ALIASES = {"torch.distributed.run": "torchrun", "tune": "torchrun"}
_ASSIGNMENT = lazily(r"[A-Za-z_]\w*=")
_SHORT = 2


class Option(NamedTuple):
    """An option of a launcher: ``name`` as in the launcher's documentation, and its values.

    A value joined to the option (``--nproc-per-node=8``) is ``joined``, and ``values`` is empty.
    """

    launcher: str
    name: str
    word: Word
    values: tuple[Word, ...] = ()
    joined: str | None = None

    @property
    def text(self) -> str | None:
        """The value as written, None for a flag."""
        return self.joined if self.joined is not None else (self.values[-1].text if self.values else None)


class Table(NamedTuple):
    """The options of one launcher by name: the number of values of each."""

    arity: Mapping[str, int]
    dashes: bool

    @classmethod
    @functools.cache
    def of(cls, launcher: str) -> Table:
        """The table of a launcher; an unknown one has no options."""
        named = tables.launchers()["options"].get(ALIASES.get(launcher, launcher), {})
        arity = {
            name: count for kind, count in (("flag", 0), ("value", 1), ("pair", 2)) for name in named.get(kind, ())
        }
        return cls(arity, launcher not in ("srun", "sbatch", "mpirun", "python"))

    def find(self, written: str) -> str | None:
        """The name of an option as the table has it; argparse and getopt take unambiguous beginnings of long names."""
        name = "--" + written[2:].replace("_", "-") if self.dashes and written.startswith("--") else written
        if name in self.arity:
            return name
        if not name.startswith("--"):
            return None
        longer = [one for one in self.arity if one.startswith(name)]
        return longer[0] if len(longer) == 1 else None


def read_options(launcher: str, rest: Sequence[Word], index: int) -> tuple[list[Option], int, bool]:
    """The options of a launcher from a word on, where they end, and whether that is certain."""
    table = Table.of(launcher)
    found: list[Option] = []
    while index < len(rest):
        word = rest[index]
        if word.text == "--":
            return found, index + 1, True
        if word.text == ":" and launcher in launchers.STARTERS:
            # The next step of a heterogeneous job.
            index += 1
            continue
        if not word.text.startswith("-") or word.text == "-":
            if not _is_list(launcher, rest, index):
                return found, index, True
            found.append(Option(launcher, "", word))
            index += 1
            continue
        option, taken = _option(launcher, table, rest, index)
        if option is None:
            return found, index, False
        found.append(option)
        index += taken
    return found, index, True


def _option(launcher: str, table: Table, rest: Sequence[Word], index: int) -> tuple[Option | None, int]:
    """The option at a word and its number of values; None if unknown."""
    word = rest[index]
    written, equals, value = word.text.partition("=")
    name = table.find(written)
    if name is None and not written.startswith("--") and table.arity.get(written[:_SHORT]):
        # `-N1`, `-pgpu`
        return Option(launcher, written[:_SHORT], word, joined=word.text[_SHORT:]), 1
    if name is None:
        clustered = not written.startswith("--") and all(table.arity.get(f"-{one}") == 0 for one in written[1:])
        taken = 1 if clustered or equals else _taken_by_unknown(launcher, rest, index)
        values = tuple(rest[index + 1 : index + taken])
        return (Option(launcher, written, word, values, value if equals else None), taken) if taken else (None, 0)
    if equals:
        return Option(launcher, name, word, joined=value), 1
    taken = table.arity[name]
    return Option(launcher, name, word, tuple(rest[index + 1 : index + 1 + taken])), 1 + taken


def _taken_by_unknown(launcher: str, rest: Sequence[Word], index: int) -> int:
    """The number of words of an option in no table, from the following words; 0 if unknown."""
    following, second = (rest[at].text if at < len(rest) else "-" for at in (index + 1, index + 2))
    if following.startswith("-") or _starts(launcher, rest, index + 1):
        return 1
    return 2 if following.isdecimal() or second == "-m" or _starts(launcher, rest, index + 2) else 0


def _starts(launcher: str, rest: Sequence[Word], index: int) -> bool:
    """Whether a word can only be a launcher's program."""
    if index >= len(rest):
        return False
    if launcher in launchers.STARTERS:
        return launchers.launcher_of([word.text for word in rest[index:]]) is not None
    return PROGRAM.fullmatch(rest[index].text) is not None


def _is_list(launcher: str, rest: Sequence[Word], index: int) -> bool:
    """Whether a word means options or settings: an array, a bare variable in front of the program, ``NAME=value``."""
    word = rest[index]
    starter = launcher in launchers.STARTERS
    if _LIST.fullmatch(word.text) or (starter and _ASSIGNMENT.match(word.text)):
        return True
    if not _EXPANSION.fullmatch(word.text):
        return False
    quoted = word.span.end - word.span.start > len(word.text.encode())
    if quoted or index + 1 >= len(rest):
        return False
    if starter:
        # `srun ${BIND} python train.py`, `srun $EXTRA -l torchrun train.py`
        return rest[index + 1].text.startswith("-") or _starts(launcher, rest, index + 1)
    following = next((one.text for one in rest[index + 1 :] if not _EXPANSION.fullmatch(one.text)), "")
    if _OF_OPTIONS.search(word.text):
        return True
    return following.startswith("-m") or PROGRAM.fullmatch(following) is not None
