"""The launches of a project: script or container → entry file → configuration files → the values.

One `Program` for each command that starts Python, anywhere. Unknown facts are None: unknown is not a fact.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from functools import cached_property

from ldlm_lint.model import KnownLaunch, Span
from ldlm_lint.project.index import Project
from ldlm_lint.project.launch_configs import Configs
from ldlm_lint.project.launch_entries import Entries
from ldlm_lint.project.launch_given import arguments, options
from ldlm_lint.project.launch_paths import Paths
from ldlm_lint.project.launch_precedence import configured, value_of
from ldlm_lint.project.launch_scripts import Scripts, Started
from ldlm_lint.project.launch_values import possible
from ldlm_lint.project.programs import ConfigUse, Effective, Given, Place, Possible, Program
from ldlm_lint.shell.launch_code import Code
from ldlm_lint.shell.launch_grammar import Form, Invocation
from ldlm_lint.source import Kind

_DOCUMENTS = (Kind.YAML, Kind.JSON, Kind.TOML)
# Modules that people run next to their trainings.
_TOOLS = frozenset(
    {
        "pip",
        "venv",
        "virtualenv",
        "ensurepip",
        "build",
        "twine",
        "pytest",
        "unittest",
        "coverage",
        "http",
        "json",
        "site",
        "timeit",
        "zipfile",
        "compileall",
        "nltk",
        "spacy",
        "ipykernel",
        "jupyter",
        "notebook",
        "tensorboard",
        "black",
        "ruff",
        "mypy",
        "pylint",
        "flake8",
        "sphinx",
        "mkdocs",
        "pre_commit",
        "setuptools",
        "wheel",
    }
)

_ONE_PROCESS = {
    **dict.fromkeys(("torchrun", "torch.distributed.run", "torch.distributed.launch"), "torchrun --nproc-per-node 1"),
    "accelerate": "accelerate launch --num_processes 1",
    "deepspeed": "deepspeed --num_gpus 1",
}
"""The launchers with one process; a program that another one starts runs by itself."""
_ON_EVERY_GPU = frozenset({"accelerate", "deepspeed"})
"""The launchers that start a process for each GPU where no number is given."""


@dataclass(frozen=True, eq=False)
class Start:
    """A launch and the project's Python file that it runs; None for a foreign one, or if unknown."""

    started: Started
    entry: str | None

    @property
    def path(self) -> str:
        """Its file."""
        return self.started.frame.path

    @property
    def span(self) -> Span:
        """The command."""
        return self.started.span

    @property
    def is_program(self) -> bool:
        """Whether it runs a Python file: ``srun hostname`` and ``python -c`` do not."""
        invocation = self.started.invocation
        return invocation.form is not Form.CODE and not (self.entry is None and _is_no_program(invocation))


class Launches:
    """All programs that the files of a project start; ``of_python`` returns the commands that its Python files
    start.
    """

    def __init__(self, project: Project, of_python: Callable[[], Iterable[tuple[str, Code]]] = tuple) -> None:
        self._project = project
        self._paths = Paths(project)
        self._scripts = Scripts(project, self._paths, of_python)
        self._entries = Entries(project, self._paths, self._scripts)
        self._configs = Configs(project, self._paths)
        self._programs: dict[Start, Program] = {}

    @cached_property
    def programs(self) -> tuple[Program, ...]:
        """Every program, ordered by file and place."""
        return tuple(map(self._program, self.starts))

    @cached_property
    def starts(self) -> tuple[Start, ...]:
        """The known facts of every program before its arguments are resolved, in the same order."""
        found = (Start(one, self._entries.of(one)) for one in self._scripts.started())
        return tuple(sorted((one for one in found if one.is_program), key=lambda one: (one.span, one.started.frame.via)))

    @cached_property
    def documented(self) -> frozenset[str]:
        """The files that the README at the root tells users to run."""
        from ldlm_lint.project.documented import documented

        return documented(self._project, self._paths)

    def entries_at(self, place: Span) -> frozenset[str]:
        """The project's Python files that the launches around a place run; of a script no other one's launches are read."""
        project = self._project
        if project.others.get(place.path) is Kind.SHELL and "programs" not in self.__dict__:
            started = (one for one in self._scripts.started_by(place.path) if one.span.start <= place.start < one.span.end)
            return frozenset(entry for one in started if (entry := self._entries.of(one)) is not None)
        here = (one for one in self.programs if one.span.path == place.path and one.span.start <= place.start < one.span.end)
        return frozenset(one.entry for one in here if one.entry is not None)

    def _program(self, start: Start) -> Program:
        if start not in self._programs:
            self._programs[start] = self._read(start.started, start.entry)
        return self._programs[start]

    def _read(self, started: Started, entry: str | None) -> Program:
        invocation = started.invocation
        given, complete = arguments(started.frame, invocation.arguments)
        launcher = tuple(options(started.frame, invocation.options))
        return Program(
            path=started.frame.path,
            span=started.span,
            launcher=invocation.launcher,
            entry_text=invocation.entry_text,
            entry=entry,
            options=launcher,
            arguments=given,
            configs=self._configs.of(entry, launcher, given, started.folders),
            launchers=invocation.launchers,
            processes=_count(started, invocation.processes),
            nodes=_count(started, invocation.nodes),
            complete=complete and invocation.form is not Form.UNKNOWN,
            environment=started.environment,
            via=started.frame.via,
        )

    def code_of(self, path: str) -> Code | None:
        """The code of a script, with the variables of the files that it sources; None for other files."""
        return next(iter(self._scripts.codes(path)), None) if self._project.others.get(path) is Kind.SHELL else None

    def of_config(self, path: str) -> tuple[Program, ...]:
        """The programs that read a configuration file."""
        return tuple(one for one in self.programs if any(use.path == path for use in one.configs))

    def running(self, path: str) -> tuple[Program, ...]:
        """The programs whose entry is a Python file or imports it, directly or through others."""
        reach = self._project.reach
        return tuple(self._program(one) for one in self.starts if one.entry is not None and path in reach(one.entry))

    def known(self, start: Start) -> KnownLaunch:
        """What it takes to start the program of a launch, as the launch does and as one process."""
        invocation = start.started.invocation
        count = _count(start.started, invocation.processes)
        launcher = invocation.launcher
        processes = 1 if count is None and launcher not in _ON_EVERY_GPU else int(count) if count is not None and count.isdecimal() else 0
        literal = all(one.literal for one in invocation.arguments)
        arguments = shlex.join(one.text for one in invocation.arguments) if literal else "<its arguments>"
        return KnownLaunch(start.path, processes, _ONE_PROCESS.get(launcher, "python"), start.entry or "", arguments)

    def taking_part(self, start: Start, paths: Collection[str]) -> frozenset[str]:
        """The files that contain a launch, are run by one, or are read as its configuration."""
        runs = self._project.reach(start.entry) if start.entry is not None else ()
        documents = [path for path in paths if self._project.others.get(path) in _DOCUMENTS]
        read = {use.path for use in self._program(start).configs} if documents else ()
        return frozenset({start.path, *runs, *read}.intersection(paths))

    def configured(self, program: Program, wanted: Callable[[str], bool]) -> frozenset[tuple[str, ...]]:
        """The keys of a program's configuration files with a requested last part, in the form for `value_of`."""
        return configured(self._project, self._configs, program, wanted)

    def value_of(self, program: Program, *keys: str) -> Effective | None:
        """The effective value of a key in a program: its last argument, else its configuration; None if it is not set.

        An argument wins over a configuration only where both have the same keys in full.
        """
        return value_of(self._project, self._configs, program, keys)


def _is_no_program(invocation: Invocation) -> bool:
    """Whether a launch runs a foreign command, or a Python tool that does not train."""
    module = invocation.entry_text.partition(".")[0] if invocation.form is Form.MODULE else ""
    return invocation.form is Form.COMMAND or module in _TOOLS


def _count(started: Started, text: str | None) -> str | None:
    """A number of processes or nodes, looked up if it is a variable with one value."""
    known = possible(started.frame, text, started.span) if text is not None and "$" in text else None
    texts = {one.text for one in known or ()}
    return texts.pop() if len(texts) == 1 else text


__all__ = ["ConfigUse", "Effective", "Given", "Launches", "Place", "Possible", "Program", "Start"]
