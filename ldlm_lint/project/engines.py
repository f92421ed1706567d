"""Duties that DeepSpeed and Accelerate take over from Python: the optimizer, sharding, activation checkpointing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property
from typing import TYPE_CHECKING

from ldlm_lint.configs.document import Document, Shape
from ldlm_lint.frameworks.sections import vocabulary
from ldlm_lint.source import Kind
from ldlm_lint.untrusted_numbers import whole

if TYPE_CHECKING:
    from ldlm_lint.model import Span
    from ldlm_lint.project.index import Project
    from ldlm_lint.project.launches import Launches, Program

_DISTRIBUTED_TYPES = ("DEEPSPEED", "FSDP", "MEGATRON_LM")
_ACCUMULATION = {"accelerate": "gradient_accumulation_steps", "lightning": "accumulate_grad_batches"}
_HINTS = (b"zero_optimization", b"distributed_type", b"train_micro_batch_size")
_ON = ("true", "True", True)


class Engines:
    """The DeepSpeed and Accelerate files of a project, and the programs that run under them."""

    def __init__(self, project: Project, launches: Callable[[], Launches]) -> None:
        """``launches`` returns those of the project; most questions do not need it."""
        self._project = project
        self._find_launches = launches

    @cached_property
    def configs(self) -> dict[str, Document]:
        """The files by their path, recognised by their keys."""
        found = {}
        for path in self._project.of_kind(Kind.JSON, Kind.YAML):
            data = self._project.data(path)
            document = self._project.document(path) if any(hint in data for hint in _HINTS) else None
            if document is not None and _engine(document):
                found[path] = document
        return found

    def of(self, path: str) -> Iterator[Document]:
        """The files of the programs that run a Python file; the project's only one where no launch names it."""
        known = self.configs
        if not known:
            return
        launches = self._find_launches()
        named = {use.path for one in launches.running(path) for use in one.configs if use.path in known}
        if not named and len(known) == 1 and not any(map(launches.of_config, known)):
            # It is not referenced, so its owner is unknown: unknown is not a finding.
            named = set(known)
        for one in sorted(named):
            yield known[one]
            yield from (known[inner] for inner in _referred(self._project, one, known[one]) if inner in known)


def _engine(document: Document) -> str:
    names = [one.name for one in document.children()]
    return next((one for one in ("deepspeed", "accelerate") if vocabulary(one).recognises(names)), "")


def _referred(project: Project, path: str, document: Document) -> Iterator[str]:
    """The DeepSpeed file that an Accelerate file names."""
    entry = document.get("deepspeed_config", "deepspeed_config_file")
    if entry is None or not isinstance(entry.value, str):
        return
    folder = path.rpartition("/")[0]
    yield from (f"{base}/{entry.value.removeprefix('./')}" for base in (folder, project.root))


def makes_optimizer(document: Document) -> bool:
    """Whether DeepSpeed creates the optimizer from its file, or keeps it on the CPU."""
    described = document.get("optimizer")
    if described is not None and described.shape is Shape.MAPPING:
        return True
    stage = ("zero_optimization", "offload_optimizer", "device"), ("deepspeed_config", "offload_optimizer_device")
    found = (document.get(*path) for path in stage)
    return any(entry is not None and entry.text in ("cpu", "nvme") for entry in found)


def checkpoints_activations(document: Document) -> bool:
    """Whether an engine recomputes activations: FSDP by Accelerate's switch, DeepSpeed by its section."""
    switch = document.get("fsdp_config", "fsdp_activation_checkpointing")
    return (switch is not None and switch.value in _ON) or document.get("activation_checkpointing") is not None


def shards_optimizer(project: Project, program: Program) -> bool:
    """Whether a launch runs its program under DeepSpeed or FSDP."""
    if program.launcher == "deepspeed" or any(one.keys[-1:] == ("deepspeed",) for one in program.arguments):
        return True
    if any(one.keys[-1:] in (("use_deepspeed",), ("use_fsdp",)) for one in program.options):
        return True
    for use in program.configs:
        document = project.document(use.path) if project.others.get(use.path) in (Kind.YAML, Kind.JSON) else None
        kind = document.get("distributed_type") if document is not None else None
        if kind is not None and kind.text in _DISTRIBUTED_TYPES:
            return True
    return False


def hands_to_deepspeed(project: Project, program: Program) -> bool:
    """Whether Accelerate's launcher runs its program under DeepSpeed, which then steps the optimizer over flat partitions."""
    if program.launcher != "accelerate":
        return False
    if any(one.keys[-1:] == ("use_deepspeed",) for one in program.options):
        return True
    documents = (project.document(use.path) for use in program.configs if project.others.get(use.path) in (Kind.YAML, Kind.JSON))
    return any(document is not None and names_deepspeed(document) for document in documents)


def names_deepspeed(document: Document) -> bool:
    """Whether an Accelerate file chooses DeepSpeed."""
    kind = document.get("distributed_type")
    return kind is not None and kind.text == "DEEPSPEED"


def told_to_accumulate(project: Project, launches: Launches, path: str, engine: str) -> tuple[Span, str] | None:
    """The place where a launch of a Python file, or a file that it reads, makes Accelerate or Lightning accumulate, and
    the number."""
    name = _ACCUMULATION.get(engine, "")
    for program in launches.running(path):
        given = program.options if engine == "accelerate" else program.arguments
        for one in given:
            if one.keys[-1:] == (name,) and one.texts and all(map(_above_one, one.texts)):
                return one.span, f"--{name} {min(one.texts)}" if engine == "accelerate" else f"{name}={min(one.texts)}"
        # A file with Accelerate's name for it may belong to a manual accumulation loop.
        for use in program.configs if engine == "lightning" else ():
            document = project.document(use.path)
            for entry in document.named(name) if document is not None else ():
                if _above_one(entry.text) and not any(one.keys[-1:] == (name,) for one in program.arguments):
                    return entry.whole, f"{name}: {entry.text}"
    return None


def _above_one(text: str) -> bool:
    return text.isdecimal() and whole(text) > 1
