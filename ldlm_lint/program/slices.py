"""Which modules take part in a training: those that train or join the ranks of one, who imports them, and what all of these import.

Values are followed inside of this slice alone; a library beside it is left to what its files say by themselves.
"""

from __future__ import annotations

from collections import defaultdict

from ldlm_lint.code import Table
from ldlm_lint.program.modules import Module, Modules, Shown
from ldlm_lint.program.together import closure

_BACKWARD = frozenset({"backward", "manual_backward"})
_HOOKS = frozenset({"training_step", "compute_loss", "forward_train", "train_step", "get_batch_loss_metrics"})
"""Methods that a framework's training calls: Lightning, the Trainer of transformers, OpenMMLab, trl."""
FOLLOWED_WHOLE = 100
"""Modules up to which all of a repository is followed: below that it costs less than a tenth of a second."""
_JOINS = frozenset({"init_process_group", "InitProcessGroupKwargs"})
"""What makes several processes one training, whoever trains then."""
_IMPORTERS = frozenset({"import_module", "__import__"})


def slice_of(modules: Modules) -> tuple[set[int], set[int]]:
    """The modules that train, and all that take part; tests are never among them."""
    own = [module for module in modules.all if not module.is_test]
    trains = {module.index for module in own if module.shown.trains}
    if len(own) <= FOLLOWED_WHOLE:
        return trains, {module.index for module in own}
    links = {module.index: modules.linked(module) for module in own}
    importers: dict[int, set[int]] = defaultdict(set)
    for index, linked in links.items():
        for target in linked:
            importers[target].add(index)
    joins = {module.index for module in own if module.shown.joins}
    above = closure(trains | joins, lambda index: importers.get(index, ()))
    slice_ = closure(above, lambda index: links.get(index, ()))
    for top in sorted({_importable(modules, modules.all[index]) for index in slice_ if modules.all[index].shown.imports_by_name}):
        inside = [module.index for module in own if module.path.startswith(top)]
        slice_ |= closure(inside, lambda index: links.get(index, ()))
    return trains, {index for index in slice_ if not modules.all[index].is_test}


def shown_by(table: Table) -> Shown:
    """What the slice is found by."""
    return Shown(table.imports, _trains(table), not _IMPORTERS.isdisjoint(table.named), not _JOINS.isdisjoint(table.named), _searched(table))


def _searched(table: Table) -> frozenset[str]:
    """The names of the folders that a file adds to ``sys.path``, as far as it writes them out."""
    for name in ("append", "insert", "extend"):
        for call in table.named.get(name, ()):
            function = table.nodes[table.nodes[call][1]]
            if function[0] == "attr" and "path" in table.nodes[function[1]][1:]:
                texts = [row[1] for row in table.nodes if row[0] == "const" and row[1].__class__ is str]
                return frozenset(part for text in texts if not text.startswith("/") for part in text.split("/"))
    return frozenset()


def _trains(table: Table) -> bool:
    if not _BACKWARD.isdisjoint(table.named):
        return True
    if any(not _HOOKS.isdisjoint(scope.bindings) for scope in table.scopes if scope.kind == "class"):
        return True
    return any(name.endswith("Trainer") for name in table.named)


def _importable(modules: Modules, module: Module) -> str:
    """The folder on Python's path that a module stands in: what it imports by a computed name is below."""
    parts = module.path.split("/")
    depth = len(parts) - 1
    while depth and ".".join(parts[:depth]) in modules.by_name:
        depth -= 1
    return "/".join(parts[:depth]) + "/" if depth else ""
