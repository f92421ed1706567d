"""The calls that write a model or a training's state to a path: functions, methods of frameworks, and copies of written
files."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from functools import cached_property
from typing import NamedTuple

from ldlm_lint.concepts.path_patterns import PathPatterns, behind_paths, may_meet
from ldlm_lint.concepts.payloads import Payloads
from ldlm_lint.program.codebase import Codebase, Concept
from ldlm_lint.program.handles import Call, Expr

_SHARDED = {
    f"torch.distributed.checkpoint.{module}{function}": ("checkpoint_id", 9)
    for module in ("", "state_dict_saver.")
    for function in ("save", "async_save")
}
"""Those that write nothing but states."""
_FUNCTIONS = {
    "torch.save": ("f", 1),
    "torch.jit.save": ("f", 1),
    "safetensors.torch.save_file": ("filename", 1),
    "safetensors.torch.save_model": ("filename", 1),
    "pickle.dump": ("file", 1),
    "joblib.dump": ("filename", 1),
    **_SHARDED,
}
"""Functions that write what they are given, with the parameter of the path and its place."""
PICKLES = frozenset({"pickle.dump", "joblib.dump"})
FILES = frozenset({"torch.save", "torch.jit.save", "safetensors.torch.save_file", "safetensors.torch.save_model", *PICKLES})
"""Those that write one file."""
_METHODS = {
    "save_pretrained": (("save_directory", 0),),
    "save_state": (("output_dir", 0),),
    # DeepSpeed's engine names a folder below the path by its tag.
    "save_checkpoint": (("filepath", 0), ("tag", 1)),
}
"""Methods of models, Accelerate, trainers and engines that write to a path of their own."""
_CHECKPOINTER = ("name", 0)
_PATH_FIRST = {
    **dict.fromkeys(("fvcore.common.checkpoint.Checkpointer", "detectron2.checkpoint.DetectionCheckpointer"), _CHECKPOINTER),
    "detectron2.checkpoint.detection_checkpoint.DetectionCheckpointer": _CHECKPOINTER,
    **dict.fromkeys(("lightning.Fabric", "lightning.fabric.Fabric", "lightning_fabric.Fabric"), ("path", 0)),
}
"""Classes whose ``save`` writes a training's state to the path that it takes first, with the parameter and its place."""
_SAVING = {**_PATH_FIRST, **dict.fromkeys(("accelerate.Accelerator", "accelerate.accelerator.Accelerator"), ("f", 1))}
"""These, and Accelerate, which writes whatever it is given first."""
_ANNOTATED = {"Fabric": "lightning.Fabric", "Accelerator": "accelerate.Accelerator"}
"""What the annotation of a parameter says of an object that no caller is seen to pass."""
_COPIES = {
    **dict.fromkeys(("shutil.copy", "shutil.copy2", "shutil.copyfile", "shutil.copytree", "shutil.move"), ("dst", 1)),
    **dict.fromkeys(("os.rename", "os.replace", "os.renames", "os.link"), ("dst", 1)),
}
"""Functions that give a file that is there another name, from their first argument."""
_MODES = frozenset({"w", "wb", "w+b", "wb+", "x", "xb", "a", "ab"})
_OF_PATHLIB = frozenset({"Path", "PurePath", "with_suffix", "with_name"})


class Write(NamedTuple):
    """A call that writes, its path, and for a copy the path of the file that is copied."""

    call: Call
    path: Expr
    source: Expr | None = None


class CheckpointWrites(Concept):
    """The calls of a program that write."""

    def __init__(self, code: Codebase) -> None:
        super().__init__(code)
        self._patterns = code[PathPatterns]
        self._payloads = code[Payloads]

    @cached_property
    def of_states(self) -> list[Write]:
        """Every call that writes a training's state; copies come last."""
        written = [*self._by_functions(_SHARDED), *self._of_states(_FUNCTIONS.keys() - _SHARDED.keys()), *self._by_methods(), *self._saved_by_objects()]
        return [*written, *self._copied(written)]

    @cached_property
    def of_files(self) -> list[Write]:
        """Every call that writes one file with torch or safetensors, with any content; no copies."""
        return [*self._by_functions(FILES - PICKLES), *(write for write, _ in self._by_objects())]

    @cached_property
    def by_engines(self) -> list[Write]:
        """Every call that has an engine write its own state and that of its client below a path."""
        return [write for write in self._by_methods() if write.call.called_name == "save_checkpoint"]

    def _of_states(self, names: Collection[str]) -> Iterator[Write]:
        return (write for write in self._by_functions(names) if self._payloads.holds_state(write.call))

    def _by_functions(self, names: Collection[str]) -> Iterator[Write]:
        for name in sorted(names):
            for call in self.code.calls({name}):
                for writing in _handing_on(call):
                    for path in writing.argument(*_FUNCTIONS[name]).values[:1]:
                        yield Write(writing, _opened(path))

    def _by_methods(self) -> Iterator[Write]:
        for name, places in _METHODS.items():
            for call in self.code.calls_named(name):
                for place in places:
                    if call.receiver is not None and _takes(call, place[0]):
                        yield from (Write(call, path) for path in call.argument(*place).values[:1])

    def _saved_by_objects(self) -> Iterator[Write]:
        saved = (write for write, is_state in self._by_objects() if is_state or self._payloads.holds_state(write.call))
        # Fabric writes only what a `filter` lets through, the adapters of a model for example:
        # https://lightning.ai/docs/fabric/latest/guide/checkpoint/checkpoint.html
        return (write for write in saved if not write.call.argument("filter", 2).is_given)

    def _by_objects(self) -> Iterator[tuple[Write, bool]]:
        """``checkpointer.save("model_{:07d}".format(step))`` by the object's class, and whether it always writes a
        training's state."""
        for call in self.code.calls_named("save"):
            made = _made_by(call.receiver) if call.receiver is not None else frozenset()
            for name in sorted(made & _SAVING.keys()):
                for path in call.argument(*_SAVING[name]).values[:1]:
                    yield Write(call, path), not made.isdisjoint(_PATH_FIRST)

    def _copied(self, written: list[Write]) -> Iterator[Write]:
        """The copies and moves of files that are written under a fixed name."""
        return (copy for copy in self._copies() if copy.source is not None and any(self._is_written(copy.source, one) for one in written))

    def _copies(self) -> Iterator[Write]:
        for name in sorted(_COPIES):
            for call in self.code.calls({name}):
                source, target = call.argument("src", 0).values[:1], call.argument(*_COPIES[name]).values[:1]
                if source and target:
                    yield Write(call, target[0], source[0])
        for call in self.code.calls_named("rename", "replace"):
            # A text's `replace` takes two.
            if call.receiver is not None and len(call.arguments) == len(call.positional) == 1 and _is_path(call.receiver):
                yield Write(call, call.positional[0], call.receiver)

    def _is_written(self, source: Expr, write: Write) -> bool:
        """Whether a copied file is written by a call of the same program: same name or same variable."""
        if not source.may_run_with(write.call):
            return False
        if behind_paths(source) == behind_paths(write.path):
            return True
        names, written = self._patterns.are_named(source), self._patterns.are_named(write.path)
        return bool(names) and bool(written) and may_meet(names, written)


def _handing_on(call: Call) -> list[Call]:
    """The calls that determine content and path of a write: itself, or those of a function that passes everything
    on by ``*args``."""
    first = call.positional[0] if call.positional else call
    if first.kind == "star" and first.base is not None and first.base.plain.kind == "vararg":
        return list(call.function.callers) if not call.function.parameters else []
    return [call]


def _takes(call: Call, parameter: str) -> bool:
    """Whether a method is not a function of the project, which has its own parameters and its own write call, or
    has the same parameter."""
    return all(parameter in one.parameters for one in call.targets)


def _made_by(obj: Expr) -> frozenset[str]:
    """The classes of other packages of a possible object."""
    return obj.made_by or frozenset({_ANNOTATED.get(obj.plain.annotation, "")} - {""})


def _opened(path: Expr) -> Expr:
    """The path of a file that ``open``, or a context like ``atomic_write(path)``, opened; else the expression
    itself."""
    at = path.plain
    if at.kind == "enter" and at.base is not None:
        at = at.base.plain
        if isinstance(at, Call) and at.called_name != "open" and at.positional and at.positional[0].constant not in _MODES:
            # ``with BlobFile(path, "wb") as file:``; ``path.open("wb")`` and ``NamedTemporaryFile("wb")`` take a mode there.
            return at.positional[0]
    if not isinstance(at, Call) or at.called_name not in ("open", "File") or not at.positional:
        return path
    receiver = at.receiver if at.called_name == "open" else None
    return receiver if receiver is not None and _is_path(receiver) else at.positional[0]


def _is_path(expr: Expr) -> bool:
    """Whether an expression is a `pathlib.Path`, by its constructor."""
    at = expr.plain
    while at.kind == "op" and at.operator == "Div":
        at = at.operands[0].plain
    return (isinstance(at, Call) and at.called_name in _OF_PATHLIB) or any(one.startswith("pathlib.") for one in expr.made_by)


__all__ = ["FILES", "PICKLES", "CheckpointWrites", "Write"]
