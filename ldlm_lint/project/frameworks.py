"""The framework that reads a configuration file, by the launches that name it and the calls in the project's Python."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterator
from functools import cached_property
from typing import TYPE_CHECKING

from ldlm_lint.concepts.framework_trainers import FrameworkTrainers
from ldlm_lint.patterns import lazily
from ldlm_lint.project.traits import Trait
from ldlm_lint.python.skim import without_comments
from ldlm_lint.source import Kind
from ldlm_lint.vocabulary.batch_sizes import is_world_size

if TYPE_CHECKING:
    from ldlm_lint.program.codebase import Codebase
    from ldlm_lint.program.modules import Module
    from ldlm_lint.project.config_homes import Homes
    from ldlm_lint.project.filesets import FileSet
    from ldlm_lint.project.index import Project
    from ldlm_lint.project.launches import Given, Launches, Program

_TRAINER = Trait(
    lazily(
        # `HfArgumentParser` alone reads any dataclass.
        rb"\b\w*TrainingArguments\b|\bH4ArgumentParser\b|\bTrlParser\b"
        rb"|\bfrom[ \t]+trl\b[^\n]*\b(?:SFT|DPO|GRPO|KTO|ORPO|CPO|PPO|RLOO|Reward)Config\b"
    ),
    (b"TrainingArguments", b"H4ArgumentParser", b"TrlParser", b"trl"),
    code=True,
)
# Programs that pass a file to the Trainer of transformers, by the name they are started under.
_TOOLS = lazily(rb"\b(?:llamafactory-cli|lmf)[ \t]+train\b|\btrl[ \t]+(?:sft|dpo|grpo|kto|orpo|reward|rloo)\b|\baxolotl\b|\bswift[ \t]+(?:sft|rlhf|pt)\b")
_TOOL_ENTRY = lazily(r"(?:llamafactory|axolotl|trl|swift)(?:[-_.][\w.-]*)?")
_OWN_READERS = frozenset({"llamafactory", "axolotl"})
_SETS = (
    rb"(?<!\w)%s[ \t]*=(?!=|[ \t]*None\b)",
    rb"[\"'](?:--)?%s[\"']",
    rb"\b%s[ \t]*:[^=\n]*=(?!=|[ \t]*(?:None\b|field\([ \t\n]*(?:default[ \t]*=[ \t]*)?None\b))",
)
_DEFAULTS = lazily(rb"^defaults:", re.M)
_EVERY_GPU = frozenset({"gpu", "auto"})
_LIGHTNING = lazily(rb"^[ \t]*(?:import|from)[ \t]+(?:pytorch_)?lightning\b", re.M)


class Trainers:
    """Where the Trainer of transformers gets its settings in a project."""

    def __init__(self, project: Project, launches: Launches, homes: Callable[[], Homes], code: Callable[[], Codebase]) -> None:
        self._project = project
        self._launches = launches
        self._homes = homes
        self._code = code

    @cached_property
    def _speaking(self) -> FileSet:
        """The Python files that parse arguments of the Trainer; no tests."""
        return self._project.showing(_TRAINER) & self._project.plain

    @cached_property
    def _tool_is_started(self) -> bool:
        """Whether a script starts a tool that passes files to the Trainer."""
        return any(_TOOLS.search(self._project.data(one)) for one in self._project.of_kind(Kind.SHELL))

    def entry_runs(self, entry: str) -> bool:
        """Whether a Python file, or one that it imports, parses arguments of the Trainer."""
        return not self._speaking.isdisjoint(self._project.reach(entry))

    def reads(self, path: str, reader: str) -> bool:
        """Whether the Trainer gets the settings of a configuration file.

        ``reader`` is the framework that its keys mention. A program that reads the file decides; if none is known, the
        trainings nearest to the file must mention the Trainer, unless the keys belong to one tool only.
        """
        programs = self._launches.of_config(path)
        entries = [one.entry for one in programs if one.entry is not None]
        if entries:
            return any(self.entry_runs(one) and self._makes_trainer(one) for one in entries)
        if not self._may_be_trainers(path):
            return False
        if reader in _OWN_READERS or any(_TOOL_ENTRY.fullmatch(one.entry_text) for one in programs):
            return True
        return self._nearest_speak(path) or self._tool_is_started

    def _may_be_trainers(self, path: str) -> bool:
        """Whether no loop of the project's own may be what reads a configuration file: a program that parses the
        Trainer's arguments and makes none."""
        chosen = [one.entry for one in self._homes().of(path) if one.chosen]
        if chosen:
            return any(map(self._makes_trainer, chosen))
        importing = {imported for one in self._speaking for imported in self._project.reach(one) if imported != one}
        return all(self._makes_trainer(one) for one in self._speaking if one not in importing)

    def _makes_trainer(self, entry: str) -> bool:
        """Whether a Python file, or one that it imports, makes a Trainer, as far as the program shows."""
        code = self._code()
        known = {code.path(module): module for module in code.modules}
        return any(known[one] in self._with_trainers for one in self._project.reach(entry) if one in known) or entry not in known

    @cached_property
    def _with_trainers(self) -> frozenset[Module]:
        return self._code()[FrameworkTrainers].files()

    def _nearest_speak(self, path: str) -> bool:
        """Whether the Trainer is mentioned below the nearest folder around a file that has a training below it."""
        folder, root = posixpath.dirname(path), self._project.root
        trainings = self._project.universe.joined(self._speaking, self._project.training_files)
        while folder.startswith(root):
            below = [one for one in trainings if one.startswith(f"{folder}/")]
            if below or folder == root:
                return not self._speaking.isdisjoint(below)
            folder = posixpath.dirname(folder)
        return False


def uses_lightning(project: Project) -> bool:
    """Whether any Python of the project imports Lightning."""
    return any(_LIGHTNING.search(project.data(one)) for one in project.files)


def sets(data: bytes, name: str) -> bool:
    """Whether Python code sets a setting: as a keyword, an attribute, a key, an option; not as a field without one."""
    if name.encode() not in data:
        return False
    code, word = without_comments(data), re.escape(name).encode()
    return any(re.search(form % word, code) is not None for form in _SETS)


def stores(data: bytes, name: str) -> bool:
    """Whether Python code sets an attribute of that name, on any object."""
    if name.encode() not in data:
        return False
    return re.search(rb"\.%s[ \t]*=(?!=)" % re.escape(name.encode()), without_comments(data)) is not None


def setting_of(program: Program, name: str) -> Given | None:
    """The command-line values of a program for a setting, in any section."""
    last = name.rpartition(".")[2]
    return next((one for one in reversed(program.arguments) if one.keys and one.keys[-1] == last), None)


def readers(project: Project, launches: Launches, path: str) -> Iterator[str]:
    """The Python files that may read a configuration file: those of the programs that read it, else all but tests."""
    entries = {one.entry for one in launches.of_config(path) if one.entry is not None}
    if entries:
        yield from sorted({one for entry in entries for one in project.reach(entry)})
    else:
        yield from (one for one in sorted(project.files) if not project.is_test(one))


def varying_processes(program: Program) -> Given | None:
    """The launcher's option whose number of processes or nodes comes from outside, or differs between runs."""
    for one in program.options:
        if one.keys and is_world_size(one.keys[-1]) and (one.texts is None or len(one.texts) > 1 or one.texts & _EVERY_GPU):
            return one
    return None


def including_files(project: Project) -> Iterator[str]:
    """The files with a defaults list of Hydra: each may be merged with any other."""
    return (one for one in project.of_kind(Kind.YAML) if _DEFAULTS.search(project.data(one)))


def holds_key(project: Project, path: str, name: str) -> bool:
    """Whether a configuration file sets a key somewhere."""
    if name.encode() not in project.data(path):
        return False
    document = project.document(path)
    return document is not None and any(one.value is not None for one in document.named(name))
