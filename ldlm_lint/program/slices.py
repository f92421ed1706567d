"""Which modules take part in a training: those that train or join the ranks of one, who imports them, and what all of
these import.

Values are followed only inside this slice; other libraries in the repository are analysed file by file.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

from ldlm_lint.code import Table
from ldlm_lint.program.modules import Module, Modules, Shown
from ldlm_lint.program.together import closure
from ldlm_lint.program.uses import Uses
from ldlm_lint.vocabulary.losses import CLASS_WORDS

_BACKWARD = frozenset({"backward", "manual_backward"})
_HOOKS = frozenset({"training_step", "compute_loss", "forward_train", "train_step", "get_batch_loss_metrics"})
"""Methods that a framework's training calls: Lightning, the Trainer of transformers, OpenMMLab, trl."""
FOLLOWED_WHOLE = 100
"""Modules up to which all of a repository is followed: below that it costs less than a tenth of a second."""
LINKED_WHOLE = 500
"""Modules up to which all that an import makes run is followed; in a larger library only what is named."""
_REGISTERS = "register"
_JOINS = frozenset({"init_process_group", "InitProcessGroupKwargs"})
"""What makes several processes one training, whichever of them trains."""
_FILES = frozenset({"load", "save"})
_IMPORTERS = frozenset({"import_module", "__import__"})


def slice_of(modules: Modules) -> tuple[set[int], set[int]]:
    """The modules that train, and all that take part; tests are never among them."""
    own = [module for module in modules.all if not module.is_test]
    trains = {module.index for module in own if module.shown.trains}
    if len(own) <= FOLLOWED_WHOLE:
        return trains, {module.index for module in own}
    uses = Uses(modules)
    links = {module.index: uses.of(module) if len(own) > LINKED_WHOLE else modules.linked(module) for module in own}
    importers: dict[int, set[int]] = defaultdict(set)
    for index, linked in links.items():
        for target in linked:
            importers[target].add(index)
    joins = {module.index for module in own if module.shown.joins}
    above = closure(trains | joins, lambda index: importers.get(index, ()))
    losses = {module.index for module in own if module.shown.computes_loss}
    slice_ = closure(above | losses, lambda index: links.get(index, ()))
    computed = [modules.all[index] for index in slice_ if modules.all[index].shown.imports_by_name]
    inside = _named_in(modules, computed) if len(own) > LINKED_WHOLE else _below(modules, computed)
    slice_ |= closure(inside, lambda index: links.get(index, ()))
    # The origin of a file that an evaluation reads follows from its calls; its computed values are not needed.
    slice_ |= {module.index for module in own if module.shown.keeps_files}
    return trains, {index for index in slice_ if not modules.all[index].is_test}


def shown_by(table: Table) -> Shown:
    """The facts that determine the slice."""
    return Shown(
        imports=table.imports,
        trains=_trains(table),
        imports_by_name=not _IMPORTERS.isdisjoint(table.named),
        joins=not _JOINS.isdisjoint(table.named),
        searched=_searched(table),
        registers=_registers(table),
        computes_loss=any(scope.kind == "class" and any(word in scope.name for word in CLASS_WORDS) for scope in table.scopes),
        keeps_files=_keeps_files(table),
    )


def _keeps_files(table: Table) -> bool:
    """Whether a file reads or writes files saved by torch."""
    return not _FILES.isdisjoint(table.named) and any(name.partition(".")[0] == "torch" for name, _, _, _ in table.imports)


def _registers(table: Table) -> bool:
    """Whether a file itself, not a function of it, calls a registering function, or uses it as a decorator."""
    calls = [call for name, some in table.named.items() if name.startswith(_REGISTERS) for call in some]
    calls += [call for call, decorator, _ in table.decorations if _written(table, decorator).startswith(_REGISTERS)]
    return any(table.sites[call].scope == 0 for call in calls)


def _written(table: Table, number: int) -> str:
    row = table.nodes[number]
    if row[0] == "call":
        row = table.nodes[row[1]]
    return str(row[2]) if row[0] in ("free", "impf", "attr") else ""


def _searched(table: Table) -> frozenset[str]:
    """The names of the folders that a file adds to ``sys.path``, if they are literals."""
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


def _below(modules: Modules, computed: Iterable[Module]) -> set[int]:
    """The modules that may be imported by a computed name: everything below the folders on Python's path that they are
    in."""
    tops = tuple({_importable(modules, module) for module in computed})
    return {module.index for module in modules.all if tops and not module.is_test and module.path.startswith(tops)}


def _importable(modules: Modules, module: Module) -> str:
    """The folder on Python's path that a module is in."""
    parts = module.path.split("/")
    depth = len(parts) - 1
    while depth and ".".join(parts[:depth]) in modules.by_name:
        depth -= 1
    return "/".join(parts[:depth]) + "/" if depth else ""


def _named_in(modules: Modules, computed: Iterable[Module]) -> set[int]:
    """Like `_below`, but for a large library only the modules of which a text in the call names a part."""
    found: set[int] = set()
    for module in computed:
        for name in sorted(_IMPORTERS & module.table.named.keys()):
            for call in module.table.named[name]:
                texts = _texts(module, module.nodes[call][2][:1])
                if texts:
                    found |= {one.index for one in modules.all if not one.is_test and all(text in f".{one.name}." for text in texts)}
    return found


def _texts(module: Module, numbers: Sequence[int]) -> list[str]:
    """The texts with letters that a name is put together from."""
    found: list[str] = []
    for number in numbers:
        row = module.plain(number)
        if row[0] == "const" and row[1].__class__ is str and any(map(str.isalpha, row[1])):
            found.append(row[1])
        elif row[0] in ("fstr", "op"):
            found += _texts(module, row[1] if row[0] == "fstr" else row[2:4])
    return found
