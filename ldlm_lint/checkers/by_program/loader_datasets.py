"""The datasets of loaders: the cost of an item, and whether a training changes the dataset between two passes of its
loader."""

from __future__ import annotations

from ldlm_lint.checkers.by_program.loader_calls import LoaderCall
from ldlm_lint.checkers.by_program.loader_collation import gives_ready_items, works_on_items
from ldlm_lint.checkers.by_program.view import View
from ldlm_lint.concepts.changing_datasets import ChangingDatasets
from ldlm_lint.program.atoms import FIRST, HOMES, HOST, MASK
from ldlm_lint.project.datasets import Load
from ldlm_lint.vocabulary.loaders import GRAPHS, STREAMS

_IN_MEMORY = ("TensorDataset", "builtins.range")
_NUMBERS = frozenset({"range", "arange", "randperm"})
"""Functions that give numbers one by one: with them as a dataset, a loader draws indices."""


def classes_of_dataset(view: View, one: LoaderCall) -> set[int]:
    """The classes of the project of a loader's possible datasets, also inside of other packages' wrappers."""
    atoms, program = view.program.atoms, view.program
    value, todo, wrappers = set[int](), [_value(view, one)], set[int]()
    while todo:
        value |= (given := todo.pop())
        for fields in atoms.kinds(given, "d"):
            todo.append(program.ask(("content", fields[1], None)) - value)
        for fields in atoms.kinds(given, "o"):
            if fields[2] and fields[2] not in wrappers:
                wrappers.add(fields[2])
                module = program.module_of(fields[2])
                row = module.nodes[fields[2] & MASK]
                todo += [program.ask(module.base | number) for number in (*row[2], *(number for _, number in row[3]))]
    classes = {fields[1] for kind in ("i", "self") for fields in atoms.kinds(frozenset(value), kind)}
    return {one for one in classes if _gives_items(view, one)}


def _gives_items(view: View, owner: int) -> bool:
    """Whether a class can be a dataset: a factory by configuration may also create models."""
    known = any(view.program.methods(owner, name) for name in ("__getitem__", "__getitems__", "__iter__"))
    return known or any("Dataset" in name for name in view.program.outside_of(owner))


def _value(view: View, one: LoaderCall) -> frozenset[int]:
    return frozenset().union(*(view.program.ask(source) for source in view.loaders.option(one, "dataset").sources))


def is_changed_between_passes(view: View, one: LoaderCall) -> bool:
    """Whether code outside of its own methods changes the dataset of a loader: persistent workers would keep their old
    copies."""
    path = view.path(one.module)
    if view.context.dataset_changes.between_passes(path, one.position):
        return True
    return view[ChangingDatasets].changes(one.call, classes_of_dataset(view, one), view.loaders.option(one, "dataset").sources)


def works_per_item(view: View, one: LoaderCall) -> bool:
    """Whether there may be work for each item: in the dataset, or in the collate function."""
    if one.loader.name in STREAMS:
        return True
    load = view.context.datasets.load(view.path(one.module), one.position)
    # Graph datasets are mostly entirely in memory.
    in_memory = _is_in_memory(view, one) or (load is Load.UNKNOWN and one.loader.name in GRAPHS) or _gives_ready_items(view, one, load)
    if load is Load.NONE or in_memory:
        return any(works_on_items(view, source) for source in view.loaders.option(one, "collate_fn").sources)
    return True


def _gives_ready_items(view: View, one: LoaderCall, load: Load) -> bool:
    """A replay buffer, tokens that are mapped into memory: every possible dataset only looks its items up."""
    classes = classes_of_dataset(view, one)
    is_known = load is not Load.WORK or view.ask.meaning(*view.loaders.option(one, "dataset").sources).is_complete
    return bool(classes) and is_known and all(gives_ready_items(view, owner) for owner in classes)


def is_of_tensors(view: View, one: LoaderCall) -> bool:
    """Whether a dataset is a tensor, of which an item is a row."""
    value = _value(view, one)
    return bool(value & HOMES) and all(each < FIRST for each in value)


def _is_in_memory(view: View, one: LoaderCall) -> bool:
    """A dataset that is a list, a range, or tensors in memory, as far as the program shows."""
    if any(_gives_numbers(view, source) for source in view.loaders.option(one, "dataset").sources):
        return True
    value = _value(view, one)
    atoms = view.program.atoms
    found = [atoms.of[each] for each in value if each >= FIRST]
    if is_of_tensors(view, one) or (HOST in value and not found):
        # Numbers, an array, a range.
        return True
    if any(fields[0] == "d" or (fields[0] == "view" and fields[1] != "items") for fields in found):
        return True
    return any(fields[0] in ("o", "x") and str(fields[1]).endswith(_IN_MEMORY) for fields in found)


def _gives_numbers(view: View, source: int) -> bool:
    module = view.program.module_of(source)
    row = module.plain(source & MASK)
    return row[0] == "call" and module.last_name(row[1]) in _NUMBERS
