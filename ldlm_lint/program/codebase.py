"""The code of a repository as concepts and rules see it: its program, and the facts about it, each found out once."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, cast

from ldlm_lint.program.modules import Module
from ldlm_lint.program.program import Program
from ldlm_lint.program.queries import Queries

if TYPE_CHECKING:
    from ldlm_lint.source import Kind

C = TypeVar("C", bound="Concept")


class Files(Protocol):
    """The configuration files and scripts of a project."""

    @property
    def others(self) -> Mapping[str, Kind]:
        """Their kinds by their paths."""

    def of_kind(self, *kinds: Kind) -> tuple[str, ...]:
        """The paths of those of some kinds, in order."""

    def data(self, path: str) -> bytes:
        """The bytes of one."""

    def document(self, path: str) -> Any:
        """One as a document of values; None if it cannot be read."""


class Concept:
    """One fact about a codebase, such as what its training steps are; ``code[Training]`` builds it on first use."""

    def __init__(self, code: Codebase) -> None:
        self.code = code
        self.program = code.program
        self.ask = code.ask


class Codebase(ABC):
    """A program with its concepts; what is known of the files around it comes from the host."""

    @property
    @abstractmethod
    def program(self) -> Program:
        """The linked program; no value of it grows any more."""

    @property
    @abstractmethod
    def files(self) -> Files:
        """The configuration files of the project."""

    @cached_property
    def ask(self) -> Queries:
        """The questions about calls, arguments and values."""
        return Queries(self.program)

    @cached_property
    def _concepts(self) -> dict[type[Concept], Any]:
        return {}

    def __getitem__(self, kind: type[C]) -> C:
        """A concept, built on first use."""
        found = self._concepts.get(kind)
        if found is None:
            found = self._concepts[kind] = kind(self)
        return cast(C, found)

    @abstractmethod
    def is_used_outside(self, module: Module, name: str) -> bool:
        """Whether a configuration has a name, or users of the package that a module belongs to may use it."""

    @abstractmethod
    def is_aside(self, module: Module) -> bool:
        """Whether a module is an example beside a training of the project's own."""

    @abstractmethod
    def is_named_in_configurations(self, *names: str) -> bool:
        """Whether a configuration file of the project, or a script, mentions one of these names."""

    @abstractmethod
    def is_in_configurations(self, name: str) -> bool:
        """Whether a configuration file or a script of the project contains a word."""
