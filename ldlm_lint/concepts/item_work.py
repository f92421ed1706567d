"""The work for each item of a loader's batches, in the dataset or in the collate function: without any, workers only copy."""

from __future__ import annotations

import re
from collections.abc import Iterable

from ldlm_lint.concepts.datasets import Datasets
from ldlm_lint.concepts.loaders import Loader, Loaders
from ldlm_lint.patterns import lazily
from ldlm_lint.program.codebase import Codebase, Concept
from ldlm_lint.program.handles import Call, Class, Expr, Function
from ldlm_lint.vocabulary.items import CHEAP, DATASETS, IN_MEMORY, STREAMS_OF, TOYS, WRAPPERS
from ldlm_lint.vocabulary.loaders import GRAPHS, STREAMS
from ldlm_lint.vocabulary.tensors import HOST_METHODS, PLAIN_METHODS

_OF_PYTHON = {name for kind in (list, dict, set) for name in dir(kind)} | {name for name in dir(str) if name not in ("encode", "decode")}
_CHEAP = CHEAP | PLAIN_METHODS | HOST_METHODS | _OF_PYTHON | {"sum", "max", "min", "sorted", "pad", "pad_sequence", "default_collate"}
_PLAIN = ("builtins.", "itertools.", "collections.", "dataclasses.", "operator.", "copy.", "math.", "random.")
"""Modules whose functions copy or arrange what is in memory."""
_ARRAYS = ("torch.", "numpy.", *_PLAIN)
# Functions that process a list of texts or pictures in one call.
_TAKES_LISTS = lazily(r"tokeni[sz]er$|processor$|^batch_encode", re.I)
_NUMBERS = frozenset({"range", "arange", "randperm"})
"""Functions that give numbers one by one: with them as a dataset, a loader draws indices."""
_STREAMED = lazily(rb"streaming[ \t]*=[ \t]*True")
_GETS = ("__getitem__", "__getitems__")
_SHARES_OUT = frozenset({"torch.utils.data.get_worker_info", "torch.utils.data._utils.worker.get_worker_info"})
_DEVICE = lazily(r"device$|^dev$|^gpu", re.I)
_NO_TENSOR = lazily(r"model|net($|_)|module|encoder|decoder|vae|policy|arg|cfg|conf|opt|param|setting|self|trainer|accelerator", re.I)
_NONE, _WORK = "none", "work"


class ItemWork(Concept):
    """Answers for the loaders of a codebase."""

    def __init__(self, code: Codebase) -> None:
        super().__init__(code)
        self._datasets = code[Datasets]
        self._of_classes: dict[Class, str] = {}

    def may_be_there(self, loader: Loader) -> bool:
        """Whether there may be work for each item of a loader; an unknown dataset may do some."""
        if loader.interface in STREAMS:
            return True
        load = self._load(loader)
        # Graph datasets are mostly entirely in memory.
        in_memory = self._is_in_memory(loader) or (not load and loader.interface in GRAPHS) or self._gives_ready_items(loader, load)
        if load == _NONE or in_memory:
            return any(self._do_work(one.callables, _ARRAYS, for_each=False) for one in self._collate(loader))
        return True

    def is_collated_on_device(self, loader: Loader) -> bool:
        """Whether the collate function of a loader moves its batches to a GPU: a forked worker cannot do so, and GPU tensors
        cannot be pinned."""
        return any(_moves_to_gpu(call) for one in self._collate(loader) for function in one.callables for call in function.calls)

    def _collate(self, loader: Loader) -> list[Expr]:
        return self.code[Loaders].option(loader, "collate_fn").values

    def _load(self, loader: Loader) -> str:
        """Whether some possible dataset of a loader works for an item, or surely none; empty for unknown."""
        module = loader.call.module
        if self.code.trainings.is_test_or_tutorial(self.code.path(module)) or _STREAMED.search(self.code.source(module).data):
            return _NONE
        seen, todo, found = set[Expr](), self._datasets.given_to(loader), set[str]()
        while todo:
            dataset = todo.pop()
            seen.add(dataset)
            for call in self.code.iterated.made_by(dataset, WRAPPERS):
                found.update(map(_load_by_name, call.callee.interfaces))
                for owner in call.callee.classes:
                    inner = [one for one in _given_to_hand_on(owner, call) if one not in seen]
                    found.update([] if inner else [self._load_of(owner)])
                    todo += inner
        return _WORK if _WORK in found else _NONE if _NONE in found else ""

    def _load_of(self, owner: Class) -> str:
        if owner not in self._of_classes:
            self._of_classes[owner] = _load_of(owner)
        return self._of_classes[owner]

    def _gives_ready_items(self, loader: Loader, load: str) -> bool:
        """A replay buffer, tokens that are mapped into memory: every possible dataset only looks its items up."""
        classes, given = self._datasets.classes_of(loader), self._datasets.given_to(loader)
        is_known = load != _WORK or all(one.may_be().is_complete for one in given)
        return bool(classes) and is_known and all(map(self._only_looks_up, classes))

    def _only_looks_up(self, owner: Class) -> bool:
        """Whether the items of a dataset class are in memory already: the methods that give them only look them up."""
        methods = {one for name in (*_GETS, "__iter__") for one in owner.methods(name)}
        return bool(methods) and all(map(_reads_containers, methods)) and not self._do_work(methods, _PLAIN, for_each=True)

    def _do_work(self, functions: Iterable[Function], cheap: tuple[str, ...], *, for_each: bool) -> bool:
        """Whether functions, or those that they call, do work for each item: a call that is not just a copy, in a loop or,
        ``for_each``, in a function that runs for an item; functions of the ``cheap`` packages do none."""
        seen = set(functions)
        todo = [(function, for_each) for function in seen]
        while todo:
            function, is_repeated = todo.pop()
            for call in function.calls:
                again = is_repeated or call.spot.loop is not None
                if _is_work(call, cheap, for_each=again):
                    return True
                todo += [(one, again) for one in call.targets if one not in seen]
                seen.update(call.targets)
        return False

    def _is_in_memory(self, loader: Loader) -> bool:
        """A dataset that is a list, a range, or tensors in memory, as far as the program shows."""
        given = self._datasets.given_to(loader)
        calls = [one.plain for one in given]
        if any(isinstance(one, Call) and one.called_name in _NUMBERS for one in calls):
            return True
        if given and (all(one.is_bare_tensor for one in given) or all(one.is_of_python for one in given)):
            return True
        if any(one.containers or one.is_view for one in given):
            return True
        return any(name.endswith(("TensorDataset", "builtins.range")) for one in given for name in (*one.made_by, *one.outside_names))


def _is_work(call: Call, cheap: tuple[str, ...], *, for_each: bool) -> bool:
    name = call.called_name
    if _TAKES_LISTS.search(name):
        return True
    if not for_each or name in _CHEAP or not name or call.targets:
        return False
    return not call.callee.interfaces or not all(one.startswith(cheap) for one in call.callee.interfaces)


def _reads_containers(method: Function) -> bool:
    """Whether what a method takes items from is surely a container, an array or a tensor, and no dataset that makes them."""
    items = (event.expr.base for event in method.events if event.kind == "item")
    return all(one.is_container_or(_ARRAYS) for one in items if one is not None and one.plain.kind == "attr")


def _load_by_name(maker: str) -> str:
    """The work for an item of what another package makes."""
    last = maker.rpartition(".")[2]
    if last in IN_MEMORY or maker in IN_MEMORY or STREAMS_OF.search(maker) or TOYS.search(last):
        return _NONE
    return _WORK if maker.startswith("torchvision.datasets.") else ""


def _load_of(owner: Class) -> str:
    """The work for an item of a class of the project."""
    getters = [function for name in _GETS for function in owner.methods(name)]
    if TOYS.search(owner.name):
        return _NONE
    iterators = owner.methods("__iter__") if not getters else []
    if not getters and not iterators:
        return ""
    calls = _calls_within((getters or iterators)[0])
    if iterators and not any(_SHARES_OUT & call.callee.interfaces for call in calls):
        # An iterable dataset repeats its items in each worker unless it shares them out.
        return _NONE
    if any(_moves_to_gpu(call) and not _follows_tensor(call) for call in calls):
        return _NONE
    return _WORK if any(call.called_name not in CHEAP for call in calls) else _NONE


def _given_to_hand_on(owner: Class, made: Call) -> list[Expr]:
    """The dataset that a call gives a class which gives its items: ``return self.data[index]``; not a list of items."""
    getters = [function for name in _GETS for function in owner.methods(name)]
    returned = [one.unnamed for one in getters[0].returned] if getters and not getters[0].calls else []
    base = returned[0].base if len(returned) == 1 and returned[0].kind == "item" else None
    given = [made.given_for(one) for one in base.set_to if one.kind == "param"] if base is not None else []
    return [one for one in given if one is not None and (one.classes_of or any(map(DATASETS.search, (*one.names, one.plain.name))))]


def _calls_within(getter: Function) -> list[Call]:
    """The calls of a function; a call of the project's functions is replaced by the calls in them."""
    found: list[Call] = []
    seen, todo = {getter}, [getter]
    while todo:
        for call in todo.pop().calls:
            inner = [one for one in call.targets if one.name != "__init__" and (call.receiver is None or call.callee.owner_of_self is not None)]
            found += [] if inner else [call]
            todo += [one for one in inner if one not in seen]
            seen.update(inner)
    return found


def _moves_to_gpu(call: Call) -> bool:
    """``batch.cuda()``, ``batch.to(device)``, ``batch.to("cuda")``."""
    if call.called_name == "to":
        texts = [one.constant for one in call.arguments if isinstance(one.constant, str)]
        return any(_DEVICE.search(one.plain.name) for one in call.arguments) or any(str(one).startswith("cuda") for one in texts)
    return call.called_name == "cuda"


def _follows_tensor(call: Call) -> bool:
    """``window.to(wave.device)`` moves to the device of a tensor, which in a loader's worker is the host.

    Arguments of torch functions count as tensors, and parameters of helpers unless named like a model or settings.
    """
    owners = [one.base.plain for one in call.arguments if one.kind == "attr" and one.name == "device" and one.base is not None]
    used = {one.plain for other in call.function.calls if any(name.startswith("torch.") for name in other.callee.interfaces) for one in other.arguments}
    is_helper = call.function.owner is None
    return bool(owners) and all(one in used or (is_helper and one.kind == "param" and not _NO_TENSOR.search(one.name)) for one in owners)


__all__ = ["ItemWork"]
