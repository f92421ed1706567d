"""Run ``train.py`` of the working directory, and print what autograd kept: graphs of losses, and bytes of an evaluation."""

import sys
import weakref
from pathlib import Path
from types import SimpleNamespace

import torch

sys.path[:0] = [str(Path.cwd()), str(Path(__file__).parents[1])]

import train
from saved import SavedBytes


class Graphs:
    """Counts the graphs of losses that are alive at once."""

    def __init__(self):
        self.nodes = []
        self.peak = 0

    def __call__(self, value):
        loss = Same.apply(value)
        self.nodes = [node for node in [*self.nodes, weakref.ref(loss.grad_fn)] if node() is not None]
        self.peak = max(self.peak, len(self.nodes))
        return loss


class Same(torch.autograd.Function):
    """The identity, whose node is an object of Python's."""

    @staticmethod
    def forward(ctx, value):
        return value.clone()

    @staticmethod
    def backward(ctx, gradient):
        return gradient


def main():
    graphs, saved, mse_loss = Graphs(), SavedBytes(), train.F.mse_loss
    evaluate = train.evaluate
    train.F = SimpleNamespace(mse_loss=lambda *values: graphs(mse_loss(*values)))

    def observed(*values):
        with saved:
            return evaluate(*values)

    train.evaluate = observed
    train.main()
    print(f"graphs alive = {graphs.peak}")
    print(f"saved bytes = {saved.peak}")


if __name__ == "__main__":
    main()
