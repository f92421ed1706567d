"""Follows the dataset of a loader back to its creation, to decide whether loading an item is expensive."""

from __future__ import annotations

import enum
import re
from collections.abc import Iterator

from ldlm_lint.patterns import lazily
from ldlm_lint.project.calls import Calls
from ldlm_lint.project.index import Project
from ldlm_lint.project.text import call_text, class_text
from ldlm_lint.project.training import is_tutorial
from ldlm_lint.python.flow import Callee, CallSite, Function
from ldlm_lint.python.slots import ANY_ELEMENT, Slot

_STEPS = 400
_DEPTH = 3
# Wrappers that pass on the items of their first argument.
_WRAPPERS = {"Subset", "ConcatDataset", "random_split", "train_test_split", "DatasetWrapper"}
_IN_MEMORY = {"TensorDataset", "torch.load", "numpy.load", "pickle.load", "joblib.load", "numpy.memmap", "from_numpy"}
_TOYS = lazily(r"toy|dummy|fake|synthetic|mock|mnist|^random_?(?:data|tensor|token|image|text)", re.I)
_STREAMS = lazily(r"^(webdataset|wds|litdata|streaming|nvidia\.dali|torchdata|torchtext\.datasets)\.|IterableDataset|Streaming")
_STREAMED = lazily(rb"streaming[ \t]*=[ \t]*True")
CHEAP = {
    *("len", "int", "float", "str", "dict", "list", "tuple", "range", "min", "max", "slice", "zip", "enumerate", "isinstance", "bool"),
    *("tensor", "as_tensor", "from_numpy", "LongTensor", "FloatTensor", "IntTensor", "BoolTensor", "Tensor", "array", "asarray"),
    *("stack", "cat", "zeros", "ones", "zeros_like", "ones_like", "full", "arange", "empty"),
    *("long", "float", "int", "bool", "clone", "copy", "to", "item", "view", "reshape", "unsqueeze", "squeeze", "astype", "contiguous"),
    *("randn", "rand", "randint", "random", "choice", "randrange", "seed", "manual_seed", "get", "items", "keys", "values", "append"),
    *("is_tensor", "tolist", "type", "size", "index_select", "memmap", "is_available", "print", "sum", "expand", "repeat", "BatchEncoding", "split", "strip", "map"),
}
_NAMES_DATASET = lazily(r"data_?sets?($|_)|^ds$|_ds$", re.I)
_DEVICE = lazily(r"device$|^dev$|^gpu", re.I)
_LITERAL = lazily(rb"\.to\([ \t]*[\"']cuda")
_OWNER = lazily(rb"(\w+)\.device\b")
_NO_TENSOR = lazily(r"model|net($|_)|module|encoder|decoder|vae|policy|arg|cfg|conf|opt|param|setting|self|trainer|accelerator", re.I)


class Load(enum.Enum):
    """The cost of one item of a dataset."""

    WORK = "work"
    NONE = "none"
    UNKNOWN = "unknown"


class Datasets:
    """The datasets of loaders, by the calls that may have created them."""

    def __init__(self, project: Project, calls: Calls) -> None:
        self.project = project
        self.calls = calls

    def load(self, path: str, position: str) -> Load:
        """The cost of an item in the dataset of the loader at ``line:column`` of a file."""
        if is_tutorial(self.project, path) or _STREAMED.search(self.project.data(path)):
            return Load.NONE
        made = (state for state in self.origins(path, position) if state[1].kind == "out")
        found = {load for where, slot in made for load in self._made(where, slot)}
        return Load.WORK if Load.WORK in found else Load.NONE if Load.NONE in found else Load.UNKNOWN

    def origins(self, path: str, position: str) -> set[tuple[str, Slot]]:
        """Every place of origin of the dataset of the loader at ``line:column``: variables, attributes, calls."""
        loaders = [call for call in self.project.flow(path).calls if call.position == position]
        waiting = [(path, passed.slot) for call in loaders for passed in call.passed if passed.key in (0, "dataset")]
        seen: set[tuple[str, Slot]] = set()
        while waiting and len(seen) < _STEPS:
            state = waiting.pop()
            if state not in seen:
                seen.add(state)
                waiting.extend(self._sources(*state))
        return seen

    def classes_at(self, path: str, slot: Slot) -> Iterator[tuple[str, str]]:
        """The classes of the project instantiated by the call behind a slot, each with its file."""
        found = (self._class(path, call.callee) for call in self._calls_at(path, slot))
        yield from (one for one in found if one is not None)

    def collates_on_device(self, path: str, name: str) -> bool:
        """Whether a function of this name, in a file connected to this one, moves its batches to a GPU.

        A forked worker cannot do so, and GPU tensors cannot be pinned.
        """
        near = self.project.defining(name) & self.project.around(path)
        calls = ((one, call) for one in near for call in self.project.flow(one).calls if call.scope.rpartition(".")[2] == name)
        return any(self._moves_to_gpu(one, call) for one, call in calls)

    def _moves_to_gpu(self, path: str, call: CallSite) -> bool:
        """``batch.cuda()``, ``batch.to(device)``, ``batch.to("cuda")``."""
        last = call.callee.name.rpartition(".")[2]
        if last != "to" or any(_DEVICE.search(passed.slot.name) for passed in call.passed):
            return last in ("cuda", "to")
        return _LITERAL.search(call_text(self.project.data(path), call.position)) is not None

    def _made(self, path: str, slot: Slot) -> Iterator[Load]:
        """The load of the call behind a slot, if it creates a dataset itself."""
        for call in self._calls_at(path, slot):
            name = call.callee.name
            last = name.rpartition(".")[2]
            owner = self._class(path, call.callee)
            if owner is not None:
                yield Load.UNKNOWN if any(self._hands_on(path, call, *owner)) else self._load_of_class(*owner)
            elif last in _IN_MEMORY or name in _IN_MEMORY or _STREAMS.search(name) or _TOYS.search(last):
                yield Load.NONE
            elif name.startswith("torchvision.datasets."):
                yield Load.WORK

    def _calls_at(self, path: str, slot: Slot) -> list[CallSite]:
        return [call for call in self.project.flow(path).calls if call.position == slot.name]

    def _class(self, path: str, callee: Callee) -> tuple[str, str] | None:
        """The class of the project instantiated by a call."""
        found = (path, callee.name) if callee.kind == "def" else None
        if callee.kind == "import":
            found = self.project.resolve(path, callee.name)
        if found is None or not found[1]:
            return None
        scopes = {function.scope for function in self.project.flow(found[0]).functions}
        return found if found[1] not in scopes and any(one.startswith(f"{found[1]}.") for one in scopes) else None

    def _hands_on(self, caller: str, call: CallSite, path: str, name: str) -> Iterator[Slot]:
        """The dataset argument of a class whose items it returns: ``return self.data[index]``; not a list filled
        before."""
        function = self.calls.function(path, f"{name}.__init__")
        if function is None:
            return
        kept = {
            source.name: target.name
            for source, target in self.project.flow(path).moves
            if (source.kind, source.scope, source.index, target.kind) == ("var", function.scope, "", "attr")
        }
        text = class_text(self.project.data(path), name)
        # ``datasets[name] = Given(datasets[name])`` puts the wrapper instead of the dataset.
        own = Slot("out", "", call.position)
        filled = {target[:3] for source, target in self.project.flow(caller).moves if target.index == ANY_ELEMENT and source != own}
        for passed in call.passed:
            attribute = kept.get(self.calls.parameter(function, call, passed.key), "")
            given = re.search(rb"def __getitem__\([^\n]*\n[ \t]*return self\.%s\[\w+\][ \t]*\r?\n" % attribute.encode(), text)
            if attribute and given and _NAMES_DATASET.search(passed.slot.name) and passed.slot[:3] not in filled:
                yield passed.slot

    def _load_of_class(self, path: str, name: str) -> Load:
        functions = {function.scope: function for function in self.project.flow(path).functions}
        if _TOYS.search(name):
            return Load.NONE
        getter = functions.get(f"{name}.__getitem__") or functions.get(f"{name}.__getitems__")
        if getter is None:
            # An iterable dataset repeats its items in each worker unless it shares them out.
            return Load.NONE if f"{name}.__iter__" in functions else Load.UNKNOWN
        calls = list(self._calls_within(path, getter, 0))
        if any(self._moves_to_gpu(where, call) and not self._follows_tensor(where, call) for where, call in calls):
            return Load.NONE
        return Load.WORK if any(call.callee.name.rpartition(".")[2] not in CHEAP for _, call in calls) else Load.NONE

    def _follows_tensor(self, path: str, call: CallSite) -> bool:
        """``window.to(wave.device)`` moves to the device of the tensor, which in a loader's worker is the host.

        Arguments of torch functions count as tensors, and parameters of project helpers unless named like a model or
        settings.
        """
        line, _, column = call.position.partition(":")
        rest = self.project.data(path).splitlines()[int(line) - 1][int(column) :]
        owners = _OWNER.findall(rest) if call.callee.name.rpartition(".")[2] == "to" else []
        tensors = {
            passed.slot.name
            for one in (self.project.flow(path).calls if owners else ())
            if one.scope == call.scope and one.callee.name.startswith("torch.")
            for passed in one.passed
            if passed.slot.kind == "var"
        }
        helper = self.calls.function(path, call.scope) if owners and "." not in call.scope else None
        given = {name for name in helper.params if not _NO_TENSOR.search(name)} if helper is not None else set()
        return bool(owners) and all(owner.decode() in tensors | given for owner in owners)

    def _calls_within(self, path: str, function: Function, depth: int) -> Iterator[tuple[str, CallSite]]:
        """The calls of a function; a call of a project function is replaced by the calls in that function."""
        for call in self.project.flow(path).calls:
            if call.scope != function.scope:
                continue
            targets = self.calls.targets(path, call.callee) if depth < _DEPTH and call.callee.kind in ("self", "def", "import") else ()
            if not targets:
                yield path, call
            for where, target in targets:
                yield from self._calls_within(where, target, depth + 1)

    def _sources(self, path: str, slot: Slot) -> Iterator[tuple[str, Slot]]:
        """The slots that a slot got its value from."""
        flow = self.project.flow(path)
        for source, target in flow.moves:
            if (target.kind, target.scope, target.name) == (slot.kind, slot.scope, slot.name) and _meets(target.index, slot.index):
                # The slot's own element contains the whole unpacked value.
                yield path, source if source.index or target.index == slot.index else source.at(slot.index)
        if slot.kind == "var":
            yield from self._arguments(path, slot)
        elif slot.kind == "out":
            yield from self._behind_call(path, slot)

    def _arguments(self, path: str, slot: Slot) -> Iterator[tuple[str, Slot]]:
        function = self.calls.function(path, slot.scope)
        if function is None or slot.name not in function.params or function.scope != slot.scope:
            return
        for caller, call in self.calls.callers(path, slot.scope):
            for passed in call.passed:
                if self.calls.parameter(function, call, passed.key) == slot.name:
                    yield caller, passed.slot

    def _behind_call(self, path: str, slot: Slot) -> Iterator[tuple[str, Slot]]:
        for call in self._calls_at(path, slot):
            if call.callee.name.rpartition(".")[2] in _WRAPPERS:
                yield from ((path, passed.slot) for passed in call.passed if passed.key in (0, "dataset"))
            elif (owner := self._class(path, call.callee)) is not None:
                yield from ((path, one) for one in self._hands_on(path, call, *owner))
            else:
                for where, function in self.calls.targets(path, call.callee):
                    yield where, Slot("ret", function.scope, "", slot.index)


def _meets(target: str, wanted: str) -> bool:
    return target in ("", wanted) or wanted == "" or ANY_ELEMENT in (target, wanted)
