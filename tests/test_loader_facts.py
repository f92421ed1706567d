"""What is known of loaders: which loops begin passes, how many workers there may be, whether a dataset changes, and who sets epochs."""

from __future__ import annotations

import pytest
from linking import Alone, program_of

from ldlm_lint.concepts.datasets import Datasets
from ldlm_lint.concepts.devices import PinnedBatches
from ldlm_lint.concepts.loader_passes import LoaderPasses
from ldlm_lint.concepts.loaders import Loaders
from ldlm_lint.concepts.samplers import Samplers
from ldlm_lint.concepts.workers import Workers
from ldlm_lint.program.codebase import Codebase

HEAD = "from torch.utils.data import DataLoader, Dataset, DistributedSampler\n"
TRAINS = """
def fit(net, batches, optimizer):
    for batch in batches:
        net(batch).mean().backward()
        optimizer.step()
"""


class OfOne:
    """The trainings of a program that no file around it is about."""

    def is_test_or_tutorial(self, path: str) -> bool:
        return False

    def launched_options(self, path: str, names: object) -> list[frozenset[str] | None]:
        return []


def codebase(text: str) -> Codebase:
    code = Alone(program_of({"train.py": HEAD + TRAINS + text}))
    code.trainings = OfOne()  # type: ignore[assignment]
    return code


@pytest.mark.parametrize(
    ("loop", "again"),
    [
        ("for _ in range(3):\n        fit(net, loader, optimizer)", True),
        ("for _ in range(1):\n        fit(net, loader, optimizer)", False),
        ("fit(net, loader, optimizer)", False),
        ("fit(net, loader, optimizer)\n    fit(net, DataLoader(data), optimizer)", False),
        ("batches = endless(loader)\n    for _ in range(3):\n        fit(net, batches, optimizer)", False),
        ("for _ in range(3):\n        fit(net, endless(loader), optimizer)", True),
    ],
)
def test_a_pass_begins_again_where_its_loop_does(loop: str, again: bool):
    code = codebase(f"""
def endless(loader):
    for batch in loader:
        yield batch

def main(net, data, optimizer):
    loader = DataLoader(data, num_workers=2)
    {loop}
""")
    loader = code[Loaders].made[0]
    assert code[LoaderPasses].trains(loader.call)
    assert bool(code[LoaderPasses].repeated(loader)) is again


@pytest.mark.parametrize(
    ("number", "beyond"),
    [
        ("8", True),
        ("4", False),
        ("min(4, os.cpu_count())", False),
        ("os.cpu_count()", True),
        ("16 // 4", True),
        ("workers", True),
        ("3 if fast else 2", False),
        ("5 if os.cpu_count() > 5 else os.cpu_count()", False),
    ],
)
def test_what_a_number_of_workers_may_exceed(number: str, beyond: bool):
    code = codebase(f"""
import os

def main(net, data, optimizer, fast, workers=9):
    fit(net, DataLoader(data, num_workers={number}), optimizer)
""")
    (loader,) = code[Loaders].made
    (value,) = code[Workers].given(loader).values
    assert code[Workers].may_exceed(value, 5) is beyond


@pytest.mark.parametrize(
    ("change", "changes"),
    [
        ("data.epoch = epoch", True),
        ("data.set_epoch(epoch)", True),
        ("data.name = epoch", False),
        ("other.epoch = epoch", False),
        ("loader.sampler.set_epoch(epoch)", False),
    ],
)
def test_a_dataset_changes_where_its_items_rest_on_what_is_set(change: str, changes: bool):
    code = codebase(f"""
class Texts(Dataset):
    def __init__(self, lines):
        self.lines, self.epoch, self.name = lines, 0, ""

    def set_epoch(self, epoch):
        self.epoch = epoch

    def __getitem__(self, index):
        return self.lines[index] + self.epoch

class Other:
    pass

def main(net, lines, optimizer):
    data, other = Texts(lines), Other()
    loader = DataLoader(data, num_workers=2)
    for epoch in range(3):
        {change}
        fit(net, loader, optimizer)
""")
    (loader,) = code[Loaders].made
    assert code[Datasets].change_between_passes(loader) is changes


@pytest.mark.parametrize(
    ("tell", "count"), [("pass", 1), ("sampler.set_epoch(epoch)", 0), ("sampler.set_epoch(0)", 1), ("loader.sampler.set_epoch(epoch)", 0)]
)
def test_a_sampler_is_neglected_if_nobody_sets_its_epoch(tell: str, count: int):
    code = codebase(f"""
def main(net, data, optimizer):
    sampler = DistributedSampler(data)
    loader = DataLoader(data, sampler=sampler)
    for epoch in range(3):
        {tell}
        fit(net, loader, optimizer)

main(net, data, optimizer)
""")
    assert len(code[Samplers].neglected) == count


def test_an_object_without_its_own_method_cannot_be_pinned():
    code = codebase("""
class Batch:
    def __init__(self, items):
        self.items = items

class Pinned(Batch):
    def pin_memory(self):
        return self

def plain(items):
    return {"items": Batch(items)}

def pinned(items):
    return Pinned(items)

def main(net, data, optimizer):
    fit(net, DataLoader(data, collate_fn=plain), optimizer)
    fit(net, DataLoader(data, collate_fn=pinned), optimizer)
""")
    collates = [code[Loaders].option(one, "collate_fn").values[0] for one in code[Loaders].made]
    assert [code[PinnedBatches].are_unpinnable(one) for one in collates] == [True, False]


def test_a_loader_that_is_put_into_a_list_trains_where_it_is_taken_out():
    code = codebase("""
def make(sets):
    loaders = []
    for one in sets:
        loaders.append(DataLoader(one))
    return loaders

def main(net, texts, images, optimizer):
    train_loader, held_out = make([texts, images])
    fit(net, train_loader, optimizer)
""")
    (loader,) = code[Loaders].made
    assert code[LoaderPasses].trains(loader.call)
