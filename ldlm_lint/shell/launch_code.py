"""The commands of a script as the launch rules see them: its own, and those in strings that it evaluates."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from tree_sitter import Node

from ldlm_lint.shell import launchers, tree
from ldlm_lint.shell.scanner import scan
from ldlm_lint.shell.script import Assignment, Launch, Script
from ldlm_lint.shell.text import Text
from ldlm_lint.source import Kind, Source

_DISTRIBUTED = ("torchrun", "torch.distributed.run", "torch.distributed.launch", "accelerate", "deepspeed")
_STARTERS = ("srun", "mpirun")
_INNER = re.compile(r"(?:.*/)?(?:torchrun|deepspeed)|torch\.distributed\.(?:run|launch)|accelerate")
_MODULES = re.compile(r"torch\.distributed\.(?:run|launch)|accelerate\.commands\.launch|deepspeed\.launcher\.runner")
_TRAINS = re.compile(r"train|fine_?-?tun|distill?|(?<![a-z])(?:sft|dpo|ppo|grpo|rlhf|lora)(?![a-z])", re.I)
_MAY_TRAIN = re.compile(r"(?:^|/)(?:main|run)(?:_\w+)?(?:\.py)?$", re.I)
_OTHER_FIRST = re.compile(
    r"(?:eval|test|infer|sampl|generat|predict|preproc|process|prepar|convert|export|bench|profil|download|demo|serve|plot|visual"
    r"|extract|tokeni|encode|score|merge|check|report|analy|average|measure|dump|server|count|split|build|make|get)",
    re.I,
)
_OTHER = re.compile(rf"(?:^|[_.-]){_OTHER_FIRST.pattern}", re.I)
_OTHER_FLAGS = re.compile(r"--(?:do[_-])?(?:eval|evaluate|test|inference|predict)(?:[_-]only)?|--mode=(?:eval|test|infer)\w*")
_TRAIN_FLAGS = re.compile(r"--do[_-]train")
_VARIABLE = re.compile(r'"?\$\{?(\w+)\}?"?')


@dataclass(frozen=True)
class Code:
    """A stretch of shell code: ``text`` has the bytes of the file, blanks where the stretch is not.

    ``nodes`` are those of its syntax tree by kind; ``evaluated`` where the stretch is a string that the script
    gives to ``eval``, which a bare expansion is not: there a ``|`` is an argument.
    """

    text: Text
    script: Script
    root: Node
    nodes: Mapping[str, list[Node]]
    evaluated: bool = False

    @property
    def source(self) -> Source:
        """The source that the offsets of the stretch count in."""
        return self.text.source

    def assigned(self, name: str) -> list[Assignment]:
        """The assignments of a variable, in their order."""
        return [one for one in self.script.assignments if one.name == name]


def codes(source: Source, script: Script) -> tuple[Code, ...]:
    """A script, followed by the strings of launch commands that it builds and then runs."""
    own = _code(source, script)
    return (own, *_strings(own))


def _code(source: Source, script: Script, evaluated: bool = False) -> Code:
    text = Text.of(source)
    root = tree.parse(text.data)
    return Code(text, script, root, tree.nodes(root), evaluated)


def _strings(code: Code) -> Iterator[Code]:
    """``cmd="torchrun … | tee log"`` with ``eval $cmd`` or ``$cmd``."""
    run = _run_variables(code)
    for node in code.nodes["assignment"]:
        name, value = node.child_by_field_name("name"), node.child_by_field_name("value")
        if name is None or value is None or value.type != "string" or code.text.of_node(name) not in run:
            continue
        start, end = value.start_byte + 1 + code.source.bom, value.end_byte - 1 + code.source.bom
        inner = code.source.data[start:end]
        if launchers.HINT.search(inner):
            # Blanks in front keep every offset the one of the file.
            padded = Source.from_bytes(code.source.path, b" " * start + inner, Kind.SHELL)
            yield _code(padded, scan(padded), run[code.text.of_node(name)])


def _run_variables(code: Code) -> dict[str, bool]:
    """The variables whose value is run as a command, and whether ``eval`` runs it."""
    found: dict[str, bool] = {}
    for command in code.nodes["command"]:
        words = [code.text.of_node(word) for word in tree.words(command)[:2]]
        evaluated = words[:1] == ["eval"]
        match = _VARIABLE.fullmatch(words[-1] if evaluated else words[0]) if words else None
        if match:
            found[match[1]] = found.get(match[1], False) or evaluated
    return found


def entry_of(launch: Launch) -> str:
    """The Python file or module that a launch runs, as it is written; empty where it cannot be told."""
    words = [word.text for word in launch.words]
    for index, word in enumerate(words):
        if word.endswith(".py"):
            return word
        if word == "-m" and index + 1 < len(words) and not _MODULES.fullmatch(words[index + 1]):
            return words[index + 1]
        if word == "-c" and index and "python" in words[index - 1]:
            return ""
    return ""


def is_distributed(launch: Launch) -> bool:
    """Whether a launch starts one process per GPU."""
    if launch.launcher in _DISTRIBUTED:
        return True
    return launch.launcher in _STARTERS and any(_INNER.fullmatch(word.text) for word in launch.words)


def is_training(launch: Launch) -> bool:
    """Whether a launch runs a training: told by the name of its entry, by its flags, or by a launcher of ranks."""
    texts = [word.text for word in launch.words]
    if any(_OTHER_FLAGS.fullmatch(text) for text in texts) and not any(_TRAIN_FLAGS.fullmatch(text) for text in texts):
        return False
    entry = entry_of(launch)
    name = entry.removesuffix(".py").rpartition("/")[2].rpartition(".")[2]
    if _OTHER_FIRST.match(name):
        return False
    if _TRAINS.search(name):
        return True
    if _OTHER.search(name):
        return False
    return is_distributed(launch) or _MAY_TRAIN.search(name) is not None
