"""Which modules take part in a training: those that train or join the ranks of one, who imports them, and what all of these import.

Values are followed inside of this slice alone; a library beside it is left to what its files say by themselves.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable

from ldlm_lint.program.modules import Module, Modules

_BACKWARD = frozenset({"backward", "manual_backward"})
_HOOKS = frozenset({"training_step", "compute_loss", "forward_train", "train_step", "get_batch_loss_metrics"})
"""Methods that a framework's training calls: Lightning, the Trainer of transformers, OpenMMLab, trl."""
_JOINS = frozenset({"init_process_group", "InitProcessGroupKwargs"})
"""What makes several processes one training, whoever trains then."""
_IMPORTERS = frozenset({"import_module", "__import__"})


def slice_of(modules: Modules) -> tuple[set[int], set[int]]:
    """The modules that train, and all that take part; tests are never among them."""
    own = [module for module in modules.all if not module.is_test]
    trains = {module.index for module in own if _trains(module)}
    links = {module.index: modules.linked(module) for module in own}
    importers: dict[int, set[int]] = defaultdict(set)
    for index, linked in links.items():
        for target in linked:
            importers[target].add(index)
    joins = {module.index for module in own if not _JOINS.isdisjoint(module.table.named)}
    above = _closure(trains | joins, lambda index: importers.get(index, ()))
    slice_ = _closure(above, lambda index: links.get(index, ()))
    for top in sorted({_importable(modules, modules.all[index]) for index in slice_ if _imports_by_name(modules.all[index])}):
        inside = [module.index for module in own if module.path.startswith(top)]
        slice_ |= _closure(inside, lambda index: links.get(index, ()))
    return trains, {index for index in slice_ if not modules.all[index].is_test}


def _trains(module: Module) -> bool:
    named = module.table.named
    if not _BACKWARD.isdisjoint(named):
        return True
    if any(not _HOOKS.isdisjoint(scope.bindings) for scope in module.scopes if scope.kind == "class"):
        return True
    return any(name.endswith("Trainer") for name in named)


def _imports_by_name(module: Module) -> bool:
    return not _IMPORTERS.isdisjoint(module.table.named)


def _importable(modules: Modules, module: Module) -> str:
    """The folder on Python's path that a module stands in: what it imports by a computed name is below."""
    parts = module.path.split("/")
    depth = len(parts) - 1
    while depth and ".".join(parts[:depth]) in modules.by_name:
        depth -= 1
    return "/".join(parts[:depth]) + "/" if depth else ""


def _closure(start: Collection[int], step: Callable[[int], Iterable[int]]) -> set[int]:
    seen = set(start)
    todo = list(start)
    while todo:
        for index in step(todo.pop()):
            if index not in seen:
                seen.add(index)
                todo.append(index)
    return seen
