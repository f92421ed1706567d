"""The datasets of loaders: the cost of an item, and whether a training changes the dataset between two passes of its
loader."""

from __future__ import annotations

from collections.abc import Iterator

from ldlm_lint.checkers.by_program.loader_calls import LoaderCall
from ldlm_lint.checkers.by_program.loader_collation import works_on_items
from ldlm_lint.checkers.by_program.view import View
from ldlm_lint.program.atoms import FIRST, HOMES, HOST, MASK
from ldlm_lint.project.datasets import Load
from ldlm_lint.vocabulary.loaders import GRAPHS, STREAMS

_READS = frozenset({"__init__", "__getitem__", "__getitems__", "__iter__", "__len__", "__next__"})
_IN_MEMORY = ("TensorDataset", "builtins.range")
_NUMBERS = frozenset({"range", "arange", "randperm"})
"""Functions that give numbers one by one: with them as a dataset, a loader draws indices."""


def classes_of_dataset(view: View, one: LoaderCall) -> set[int]:
    """The classes of the project of a loader's possible datasets."""
    value = _value(view, one)
    classes = {fields[1] for kind in ("i", "self") for fields in view.program.atoms.kinds(value, kind)}
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
    classes = classes_of_dataset(view, one)
    return any(_is_changed(view, one, owner) for owner in classes)


def _is_changed(view: View, one: LoaderCall, owner: int) -> bool:
    program = view.program
    family = set(program.order(owner))
    for name in _changing_methods(view, family):
        for call in program.calls.get(name, ()):
            module = program.module_of(call)
            function = module.nodes[module.nodes[call & MASK][1]]
            if function[0] != "attr" or program.class_of_self(module, function[1]) in family:
                continue
            if _may_be(view, module.base | function[1], family) and view.loaders.concept.comes_again(call, one.call):
                return True
    names = [name for name in program.other_writes if any((each, name) in program.own_writes for each in family)]
    writes = ((target, name) for name in names for target, _ in program.other_writes[name] if _may_be(view, target, family))
    return any(_is_written_again(view, one, *write) for write in dict.fromkeys(writes))


def _is_written_again(view: View, one: LoaderCall, target: int, name: str) -> bool:
    """Whether an attribute of an object (key) is set repeatedly during the life of one loader."""
    module = view.program.module_of(target)
    for number, scope in enumerate(module.scopes):
        for base, written, _, place in scope.writes:
            if (base, written) == (target & MASK, name) and view.loaders.concept.happens_again(module.base | number, view.loop_around(module, place), one.call):
                return True
    return False


def _changing_methods(view: View, family: set[int]) -> Iterator[str]:
    """The methods of classes that set attributes of their object and are not used when items are read."""
    program = view.program
    for owner in sorted(family):
        module = program.module_of(owner)
        for name, bound in module.scopes[owner & MASK].bindings.items():
            row = module.nodes[bound[-1]]
            if row[0] == "def" and name not in _READS and module.scopes[row[1]].writes:
                yield name


def _may_be(view: View, key: int, family: set[int]) -> bool:
    atoms = view.program.atoms
    return any(one >= FIRST and atoms.of[one][0] in ("i", "self") and atoms.of[one][1] in family for one in view.program.ask(key))


def works_per_item(view: View, one: LoaderCall) -> bool:
    """Whether there may be work for each item: in the dataset, or in the collate function."""
    if one.loader.name in STREAMS:
        return True
    load = view.context.datasets.load(view.path(one.module), one.position)
    # Graph datasets are mostly entirely in memory.
    in_memory = _is_in_memory(view, one) or (one.loader.name in GRAPHS and load is Load.UNKNOWN)
    if load is Load.NONE or in_memory:
        return any(works_on_items(view, source) for source in view.loaders.option(one, "collate_fn").sources)
    return True


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
