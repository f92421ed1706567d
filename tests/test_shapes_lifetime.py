"""An outline of a file, and all that was asked of it, goes when the next file comes: nothing waits for the collector."""

from __future__ import annotations

import ast
import gc
import weakref

from ldlm_lint.rules import ALL
from ldlm_lint.shapes import CONDITIONS, possible
from ldlm_lint.shapes.outline import outline_of
from ldlm_lint.shapes.prospects import PROSPECTS

TRAINS_AND_EVALUATES = """import torch
import torch.nn as nn
class Model(nn.Module):
    def __init__(self):
        self.blocks = nn.ModuleList([nn.TransformerEncoderLayer(8, 1) for _ in range(4)])
    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return x
def evaluate(model, loader):
    model.eval()
    for batch in loader:
        print(model(batch).item())
def train(model, loader, optimizer):
    model.train()
    for batch in loader:
        loss = model(batch).mean()
        loss.backward()
        optimizer.step()
        print(float(loss))
"""


def test_a_tree_goes_without_the_collector() -> None:
    text = TRAINS_AND_EVALUATES.encode()
    gc.collect()
    gc.disable()
    try:
        module = ast.parse(text)
        gone = weakref.ref(outline_of(module, text))
        found = possible(frozenset(CONDITIONS), module, text)
        assert "evaluation-with-gradients" in found
        for prospect in PROSPECTS.values():
            prospect(module, text)
        # Only the file at hand is kept, until the next one comes.
        outline_of(ast.parse(""), b"")
        del module
        assert gone() is None
    finally:
        gc.enable()


def test_the_tree_of_a_file_goes_with_the_next_outline() -> None:
    """The outline at hand knows what knows it: were they not parted, each file's tree would wait for the collector."""
    text = b"def train(model, data):\n    for batch in data:\n        model(batch).backward()\n        print(batch.item())\n"
    module = ast.parse(text)
    assert outline_of(module, text) is outline_of(module, text)
    possible(frozenset(rule.symbol for rule in ALL), module, text)
    gone = weakref.ref(module)
    gc.disable()
    try:
        del module
        outline_of(ast.parse("x = 1\n"), b"x = 1\n")
        assert gone() is None
    finally:
        gc.enable()
