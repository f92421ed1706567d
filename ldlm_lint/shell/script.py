"""The scanner's result for a script: assignments, expansions and launcher commands, with their places."""

from __future__ import annotations

import enum
from dataclasses import dataclass, field
from typing import NamedTuple

from ldlm_lint.model import Span
from ldlm_lint.rules.settings import Value
from ldlm_lint.shell.values import Variables


class Form(enum.Enum):
    """The ways in which a script sets a variable; OPTION: for a program, by an option of its launcher."""

    PLAIN = "plain"
    DECLARED = "declared"
    PREFIX = "prefix"
    ENV = "env"
    OPTION = "option"
    DEFAULT = "default"


class Reading(enum.Enum):
    """The purpose of an expansion of a name: printed, read in order to set the same name, or anything else."""

    PRINTED = "printed"
    OWN = "own"
    USED = "used"


class Block(NamedTuple):
    """The list of commands that a statement is in; only a whole program may become empty."""

    start: int
    size: int
    may_be_empty: bool


class Statement(NamedTuple):
    """The simple command around one or more assignments, and how it can be split.

    ``parts`` are the words that can be removed one by one; ``before`` is the end of the text before the first of them
    in the command, ``after`` the start of the text after the last (None if there is none). ``deletion`` are the bytes
    to delete with the whole statement (None: impossible), ``noop`` the bytes that ``:`` can replace. ``block`` is None
    if a deletion cannot leave a block empty. ``tail`` is not 0 for one of the last statements of a block, with their
    number, of which one must remain: the status of the block would be another command's.
    """

    span: Span
    parts: tuple[Span, ...]
    before: int | None = None
    after: int | None = None
    deletion: Span | None = None
    noop: Span | None = None
    block: Block | None = None
    tail: int = 0


class Assignment(NamedTuple):
    """A variable that the script sets.

    ``values`` is None when unknown; ``span`` covers ``NAME=value`` and ``value_span`` the value with its
    quotes. ``exported``: child processes see it. ``substitutes``: the value runs a command.
    """

    name: str
    form: Form
    span: Span
    value_span: Span
    values: tuple[Value, ...] | None
    exported: bool
    statement: Statement
    substitutes: bool = False
    append: bool = False


class Expansion(NamedTuple):
    """A place that reads a variable: ``$NAME``, ``${NAME…}`` or a name in arithmetic."""

    name: str
    span: Span
    reading: Reading


class Word(NamedTuple):
    """A word of a command: quotes removed, expansions as written; ``literal`` if it has no expansions."""

    text: str
    span: Span
    literal: bool


class Launch(NamedTuple):
    """A command that starts training processes; ``span`` has its prefix assignments but no redirections.

    ``launcher`` is ``torchrun``, ``torch.distributed.run``, ``torch.distributed.launch``, ``accelerate``,
    ``deepspeed``, ``srun``, ``mpirun`` or ``python``.
    """

    launcher: str
    span: Span
    words: tuple[Word, ...]


@dataclass(frozen=True, slots=True)
class Script:
    """Everything the rules need of a script; ``unseen`` are the lines that no parser could read.

    ``sources`` are the files that it runs in its own shell, as written; ``variables`` returns the possible values of a
    variable at a place.
    """

    assignments: tuple[Assignment, ...] = ()
    expansions: tuple[Expansion, ...] = ()
    launches: tuple[Launch, ...] = ()
    unset: tuple[str, ...] = ()
    unseen: tuple[int, ...] = ()
    sources: tuple[Word, ...] = ()
    variables: Variables = field(default_factory=Variables, compare=False, repr=False)
