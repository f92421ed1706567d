"""Which framework reads a configuration file, by the launches that name it and by what the project's Python calls."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ldlm_lint.project.index import Project
from ldlm_lint.project.launches import Given, Launches, Program
from ldlm_lint.python.skim import without_comments
from ldlm_lint.rules.batch_size import is_world_size
from ldlm_lint.source import Kind

_TRAINER = re.compile(
    rb"\b(?:Seq2Seq)?TrainingArguments\b|\b(?:Hf|H4)ArgumentParser\b|\bTrlParser\b"
    rb"|\bfrom[ \t]+trl\b[^\n]*\b(?:SFT|DPO|GRPO|KTO|ORPO|CPO|PPO|RLOO|Reward)Config\b"
)
# Programs that hand a file to the Trainer of transformers, by the name they are started under.
_TOOLS = re.compile(rb"\b(?:llamafactory-cli|lmf)[ \t]+train\b|\btrl[ \t]+(?:sft|dpo|grpo|kto|orpo|reward|rloo)\b|\baxolotl\b|\bswift[ \t]+(?:sft|rlhf|pt)\b")
_TOOL_ENTRY = re.compile(r"(?:llamafactory|axolotl|trl|swift)(?:[-_.][\w.-]*)?")
_OWN_READERS = frozenset({"llamafactory", "axolotl"})
_SETS = (
    rb"(?<!\w)%s[ \t]*=(?!=|[ \t]*None\b)",
    rb"[\"'](?:--)?%s[\"']",
    rb"\b%s[ \t]*:[^=\n]*=(?!=|[ \t]*(?:None\b|field\([ \t\n]*(?:default[ \t]*=[ \t]*)?None\b))",
)
_DEFAULTS = re.compile(rb"^defaults:", re.M)
_EVERY_GPU = frozenset({"gpu", "auto"})
_LIGHTNING = re.compile(rb"^[ \t]*(?:import|from)[ \t]+(?:pytorch_)?lightning\b", re.M)


def reads_as_trainer(project: Project, launches: Launches, path: str, reader: str) -> bool:
    """Whether the Trainer of transformers gets the settings of a configuration file.

    ``reader`` is the framework that its keys speak of. A program that reads the file decides; where none is known, the
    project's Python or a script has to speak of the Trainer, unless the keys are those of one tool only.
    """
    programs = launches.of_config(path)
    if any(one.entry is not None for one in programs):
        return any(_runs_trainer(project, one) for one in programs)
    if reader in _OWN_READERS or any(_TOOL_ENTRY.fullmatch(one.entry_text) for one in programs):
        return True
    return speaks_of_trainer(project)


def _runs_trainer(project: Project, program: Program) -> bool:
    return program.entry is not None and entry_runs_trainer(project, program.entry)


def entry_runs_trainer(project: Project, entry: str) -> bool:
    """Whether a Python file, or one that it imports, takes its arguments as those of the Trainer."""
    return any(_TRAINER.search(without_comments(project.data(one))) for one in project.reach(entry))


def speaks_of_trainer(project: Project) -> bool:
    """Whether any Python of the project makes the Trainer's arguments, or a script starts a tool that does."""
    if any(_TRAINER.search(without_comments(project.data(one))) for one in project.files if not project.is_test(one)):
        return True
    return any(_TOOLS.search(project.data(one)) for one in project.of_kind(Kind.SHELL))


def uses_lightning(project: Project) -> bool:
    """Whether any Python of the project imports Lightning."""
    return any(_LIGHTNING.search(project.data(one)) for one in project.files)


def sets(data: bytes, name: str) -> bool:
    """Whether Python code gives a setting a value: as a keyword, an attribute, a key, an option; not as a field without one."""
    if name.encode() not in data:
        return False
    code, word = without_comments(data), re.escape(name).encode()
    return any(re.search(form % word, code) is not None for form in _SETS)


def setting_of(program: Program, name: str) -> Given | None:
    """What a program is given for a setting on its command line, under whatever section."""
    last = name.rpartition(".")[2]
    return next((one for one in reversed(program.arguments) if one.keys and one.keys[-1] == last), None)


def readers(project: Project, launches: Launches, path: str) -> Iterator[str]:
    """The Python files that a configuration file may meet: those of the programs that read it, else all but tests."""
    entries = {one.entry for one in launches.of_config(path) if one.entry is not None}
    if entries:
        yield from sorted({one for entry in entries for one in project.reach(entry)})
    else:
        yield from (one for one in sorted(project.files) if not project.is_test(one))


def varying_processes(program: Program) -> Given | None:
    """The launcher's option that takes the number of processes or nodes from outside, or differs from run to run."""
    for one in program.options:
        if one.keys and is_world_size(one.keys[-1]) and (one.texts is None or len(one.texts) > 1 or one.texts & _EVERY_GPU):
            return one
    return None


def including_files(project: Project) -> Iterator[str]:
    """The files with a defaults list of Hydra: each may be merged with any other."""
    return (one for one in project.of_kind(Kind.YAML) if _DEFAULTS.search(project.data(one)))


def holds_key(project: Project, path: str, name: str) -> bool:
    """Whether a configuration file gives a key a value somewhere."""
    if name.encode() not in project.data(path):
        return False
    document = project.document(path)
    return document is not None and any(one.value is not None for one in document.named(name))
