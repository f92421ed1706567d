"""A launch: a program with its arguments, their possible values, its environment and its configuration files."""

from __future__ import annotations

from typing import NamedTuple

from ldlm_lint.model import Span


class Possible(NamedTuple):
    """A value that an argument may have, as text, and where a user would edit it; ``note`` says its source."""

    text: str
    span: Span
    note: str = ""


class Given(NamedTuple):
    """An argument that reaches a program, a launcher's option, or a variable of the environment.

    ``keys``: ``--dataloader.num-workers 4`` and ``dataloader.num_workers=4`` are both ``("dataloader",
    "num_workers")``; empty for a positional. ``values`` are all the values it may have, None if one is unknown; a flag
    without a value has none. ``override``: it has the form ``key=value`` (Hydra, OmegaConf), not as an option; ``mark``
    is the prefix of the key: the dashes, or Hydra's ``+``, ``++`` and ``~``. ``written`` is the name as written after
    the mark, empty for a positional.
    """

    keys: tuple[str, ...]
    values: tuple[Possible, ...] | None
    span: Span
    override: bool = False
    mark: str = ""
    written: str = ""

    @property
    def home(self) -> Span:
        """The place to edit: the assignment of its only value, else the argument itself."""
        homes = {one.span for one in self.values or ()}
        return homes.pop() if len(homes) == 1 else self.span

    @property
    def shown(self) -> str:
        """The name as the user wrote it."""
        return self.mark + self.written

    @property
    def name(self) -> str:
        """The keys with dots between them."""
        return ".".join(self.keys)

    @property
    def texts(self) -> frozenset[str] | None:
        """The texts of all values; None if one is unknown."""
        return None if self.values is None else frozenset(one.text for one in self.values)


class ConfigUse(NamedTuple):
    """A configuration file of the project that a program reads, and the place that shows it.

    ``primary``: the file is named by the launch or by the program; others are parts that the primary one includes.
    """

    path: str
    span: Span
    why: str
    primary: bool = True


class Program(NamedTuple):
    """A command that starts a program of the project.

    ``path`` is the file it is in, ``launcher`` the one that starts the entry as in `ldlm_lint.shell.script.Launch` (of
    ``srun torchrun …`` torchrun; ``launchers`` has both), ``entry`` the project's Python file that runs (None: not of
    this project, or unknown), ``entry_text`` as written, ``options`` the launchers' own. ``complete``: no argument can
    reach the program that is not among ``arguments``; False if ``"$@"`` or an unknown variable full of arguments is
    passed on. ``environment`` are the variables from the script, named in ``keys``. ``via`` are the commands of other
    scripts that call this one, outermost first; their arguments are filled in.
    """

    path: str
    span: Span
    launcher: str
    entry_text: str
    entry: str | None
    options: tuple[Given, ...]
    arguments: tuple[Given, ...]
    configs: tuple[ConfigUse, ...] = ()
    launchers: tuple[str, ...] = ()
    processes: str | None = None
    nodes: str | None = None
    complete: bool = True
    environment: tuple[Given, ...] = ()
    via: tuple[Span, ...] = ()

    def given(self, *keys: str) -> Given | None:
        """The last argument with these keys, which is the effective one."""
        return next((one for one in reversed(self.arguments) if one.keys == keys), None)

    def exported(self, name: str) -> Given | None:
        """The variable of the environment that the script passes to the program; the last assignment counts."""
        return next((one for one in reversed(self.environment) if one.keys == (name,)), None)


class Place(NamedTuple):
    """A place that sets a key, where a user would edit it: ``source`` is ``"argument"``, ``"environment"`` or
    ``"config"``.

    ``values`` are all possible values, None if one is unknown.
    """

    values: tuple[str, ...] | None
    span: Span
    source: str


class Effective(NamedTuple):
    """The effective value of a key in one program: the winning place, and those it overrides, strongest first."""

    winner: Place
    shadowed: tuple[Place, ...] = ()
