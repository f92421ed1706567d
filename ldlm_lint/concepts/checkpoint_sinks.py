"""The calls that write a model or a training's state to a path: functions, methods of frameworks, and copies of written
files."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING, NamedTuple

from ldlm_lint.concepts.path_patterns import OF_PATHS, PathPatterns, may_meet
from ldlm_lint.concepts.written_states import WrittenStates
from ldlm_lint.program.atoms import MASK
from ldlm_lint.program.queries import Queries, State

if TYPE_CHECKING:
    from ldlm_lint.code.table import Node
    from ldlm_lint.program.modules import Module

_SHARDED = {
    f"torch.distributed.checkpoint.{module}{function}": ("checkpoint_id", 9)
    for module in ("", "state_dict_saver.")
    for function in ("save", "async_save")
}
"""Those that write nothing but states."""
_SINKS = {
    "torch.save": ("f", 1),
    "torch.jit.save": ("f", 1),
    "safetensors.torch.save_file": ("filename", 1),
    "safetensors.torch.save_model": ("filename", 1),
    "pickle.dump": ("file", 1),
    "joblib.dump": ("filename", 1),
    **_SHARDED,
}
"""Functions that write what they are given, with the parameter of the path and its place."""
_PICKLES = frozenset({"pickle.dump", "joblib.dump"})
FILES = frozenset({"torch.save", "torch.jit.save", "safetensors.torch.save_file", "safetensors.torch.save_model", *_PICKLES})
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
COPIES = {
    **dict.fromkeys(("shutil.copy", "shutil.copy2", "shutil.copyfile", "shutil.copytree", "shutil.move"), ("dst", 1)),
    **dict.fromkeys(("os.rename", "os.replace", "os.renames", "os.link"), ("dst", 1)),
}
"""Functions that give a file that is there another name, from their first argument."""
_MODES = frozenset({"w", "wb", "w+b", "wb+", "x", "xb", "a", "ab"})
_PATHS_METHODS = ("rename", "replace")
_MOST_METHODS = 200
_STEPS = 12


class Sink(NamedTuple):
    """A call (key) that writes, the expression of its path, and for a copy the expression of the source file, else
    0.
    """

    call: int
    path: int
    source: int = 0


class Sinks:
    """The sinks of a program."""

    def __init__(self, ask: Queries, patterns: PathPatterns) -> None:
        self.ask = ask
        self.program = ask.program
        self.patterns = patterns
        self.states = WrittenStates(ask.program)

    def all(self) -> Iterator[Sink]:
        """Every sink; copies come last."""
        written = [*self._written(), *self._saved_by_objects()]
        yield from written
        yield from self._copied(written)

    def files(self) -> Iterator[Sink]:
        """Every call that writes one file with torch or safetensors, with any content; no copies."""
        yield from self._of_functions(_SINKS.keys() & FILES - _PICKLES)
        yield from (sink for sink, _ in self._of_objects())

    def engines(self) -> Iterator[Sink]:
        """Every call that has an engine write its own state and that of its client below a path."""
        yield from (sink for sink in self._of_methods() if self._is_engine(sink.call))

    def _is_engine(self, call: int) -> bool:
        module = self.program.module_of(call)
        return module.last_name(module.nodes[call & MASK][1]) == "save_checkpoint"

    def _written(self) -> Iterator[Sink]:
        yield from self._of_functions(_SHARDED)
        yield from (sink for sink in self._of_functions(_SINKS.keys() - _SHARDED.keys()) if self.states.written_by(sink.call))
        yield from self._of_methods()

    def _of_functions(self, names: Collection[str]) -> Iterator[Sink]:
        for call, name in self.ask.calls_of(names):
            for writing in self._handing_on(call):
                for source in self.ask.argument(writing, *_SINKS[name]).sources[:1]:
                    yield Sink(writing, self._opened(source))

    def _handing_on(self, call: int) -> list[int]:
        """The calls that determine content and path of a write: itself, or those of a function that passes everything
        on by ``*args``."""
        module = self.program.module_of(call)
        args = module.nodes[call & MASK][2]
        if args and module.nodes[args[0]][0] == "star" and module.plain(module.nodes[args[0]][1])[0] == "vararg":
            function = self.program.function_of(call)
            return self.program.calls_of_function(function) if not module.scopes[function & MASK].params else []
        return [call]

    def _of_methods(self) -> Iterator[Sink]:
        for name, places in _METHODS.items():
            for call in self.program.calls.get(name, ()):
                for place in places:
                    if not self._is_of_others(call, place[0]):
                        continue
                    for source in self.ask.argument(call, *place).sources[:1]:
                        yield Sink(call, source)

    def _saved_by_objects(self) -> Iterator[Sink]:
        saved = (sink for sink, writes_state in self._of_objects() if writes_state or self.states.written_by(sink.call))
        yield from (sink for sink in saved if not self._is_filtered(sink.call))

    def _is_filtered(self, call: int) -> bool:
        """Whether Fabric writes only what a function lets through, the adapters of a model for example:
        https://lightning.ai/docs/fabric/latest/guide/checkpoint/checkpoint.html."""
        return self.ask.argument(call, "filter", 2).state is State.GIVEN

    def _of_objects(self) -> Iterator[tuple[Sink, bool]]:
        """``checkpointer.save("model_{:07d}".format(step))`` by the object's class, and whether it always writes a
        training's state."""
        for call in self.program.calls.get("save", ())[:_MOST_METHODS]:
            module = self.program.module_of(call)
            function = module.nodes[module.nodes[call & MASK][1]]
            if function[0] == "attr":
                made = self._made_by(module, function[1])
                for name in sorted(made & _SAVING.keys()):
                    for source in self.ask.argument(call, *_SAVING[name]).sources[:1]:
                        yield Sink(call, source), not made.isdisjoint(_PATH_FIRST)

    def _made_by(self, module: Module, number: int) -> set[str]:
        """The classes of other packages of a possible object."""
        made = {fields[1] for fields in self.program.atoms.kinds(self.program.ask(module.base | number), "o")}
        row = module.plain(number)
        if not made and row[0] == "param":
            made = {_ANNOTATED.get(module.scopes[row[1]].annotations.get(row[2], ""), "")}
        return made - {""}

    def _is_of_others(self, call: int, parameter: str) -> bool:
        """Whether a method is not a function of the project, which has its own parameters and its own write call, or
        has the same parameter."""
        module = self.program.module_of(call)
        if module.nodes[module.nodes[call & MASK][1]][0] != "attr":
            return False
        targets = self.program.targets_of.get(call, ())
        return all(parameter in self.program.module_of(one).scopes[one & MASK].params for one in targets)

    def _opened(self, key: int) -> int:
        """The path of a file that ``open``, or a context like ``atomic_write(path)``, opened; else the expression
        itself."""
        module = self.program.module_of(key)
        row = module.plain(key & MASK)
        if row[0] == "enter":
            row = module.plain(row[1])
            if row[0] == "call" and _opens_first(module, row) and module.last_name(row[1]) != "open":
                # ``with BlobFile(path, "wb") as file:``
                return module.base | row[2][0]
        if row[0] == "call" and module.last_name(row[1]) in ("open", "File"):
            function = module.nodes[row[1]]
            if row[2] and module.last_name(row[1]) == "open" and function[0] == "attr" and self._is_path(module, function[1]):
                return module.base | function[1]
            return module.base | row[2][0] if row[2] else key
        return key

    def _copied(self, written: list[Sink]) -> Iterator[Sink]:
        """The copies and moves of files that a sink writes under a fixed name."""
        for call, source, target in self._copies():
            if any(self._is_written(source, one) for one in written):
                yield Sink(call, target, source)

    def _copies(self) -> Iterator[tuple[int, int, int]]:
        for call, name in self.ask.calls_of(COPIES):
            source = self.ask.argument(call, "src", 0).sources[:1]
            target = self.ask.argument(call, *COPIES[name]).sources[:1]
            if source and target:
                yield call, source[0], target[0]
        for name in _PATHS_METHODS:
            for call in self.program.calls.get(name, ())[:_MOST_METHODS]:
                module = self.program.module_of(call)
                row = module.nodes[call & MASK]
                function = module.nodes[row[1]]
                # A text's `replace` takes two.
                if function[0] == "attr" and len(row[2]) == 1 and not row[3] and self._is_path(module, function[1]):
                    yield call, module.base | function[1], module.base | row[2][0]

    def _is_path(self, module: Module, number: int) -> bool:
        """Whether an expression is a `pathlib.Path`, by its constructor."""
        row = module.plain(number)
        for _ in range(_STEPS):
            if row[0] != "op" or row[1] != "Div":
                break
            row = module.plain(row[2])
        if row[0] == "op":
            return True
        name = module.last_name(row[1]) if row[0] == "call" else ""
        return name in ("Path", "PurePath", "with_suffix", "with_name") or any(
            fields[1].startswith("pathlib.") for fields in self.program.atoms.kinds(self.program.ask(module.base | number), "o")
        )

    def _is_written(self, source: int, sink: Sink) -> bool:
        """Whether a copied file is written by a sink of the same program: same name or same variable."""
        module, home = self.program.module_of(source), self.program.module_of(sink.call)
        if home.index not in self.program.together.programs_of(module):
            return False
        if home is module and behind_paths(module, source & MASK) == behind_paths(module, sink.path & MASK):
            return True
        names, written = (_named(self.patterns.of(one)) for one in (source, sink.path))
        return bool(names) and bool(written) and may_meet(names, written)


def _opens_first(module: Module, row: Node) -> bool:
    """Whether what a context gives to a write is opened from its first argument, and not, as ``path.open("wb")`` or
    ``NamedTemporaryFile("wb")`` do, with a mode there."""
    if not row[2]:
        return False
    first = module.nodes[row[2][0]]
    return first[0] != "const" or first[1] not in _MODES


def behind_paths(module: Module, number: int) -> int:
    """An expression without conversions to a path."""
    for _ in range(_STEPS):
        row = module.nodes[number]
        if row[0] == "copy":
            number = row[1]
        elif row[0] == "call" and len(row[2]) == 1 and not row[3] and module.last_name(row[1]) in OF_PATHS:
            number = row[2][0]
        else:
            break
    return number


def _named(patterns: frozenset[str]) -> list[str]:
    """The patterns whose last component is known."""
    return [one for one in patterns if "*" not in one.rpartition("/")[2]]
