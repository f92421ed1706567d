"""A recurrent model of words with no optimizer: updates by hand, a hidden state carried on, the best state kept."""

from __future__ import annotations

import math
import sys

import torch
from torch import nn
from torch.nn import functional as F

WORDS = set(sys.argv[1:])
VOCABULARY, WIDTH, LENGTH, BATCH = 20, 16, 6, 4


class Words(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.words, self.rnn, self.out = (
            nn.Embedding(VOCABULARY, WIDTH),
            nn.LSTM(WIDTH, WIDTH, 2),
            nn.Linear(WIDTH, VOCABULARY),
        )

    def forward(self, words: torch.Tensor, hidden: tuple) -> tuple[torch.Tensor, tuple]:
        y, hidden = self.rnn(self.words(words), hidden)
        return self.out(y), hidden


def chunks(data: torch.Tensor):
    for start in range(0, len(data) - LENGTH - 1, LENGTH):
        yield data[start : start + LENGTH], data[start + 1 : start + 1 + LENGTH]


def fresh() -> tuple[torch.Tensor, torch.Tensor]:
    return torch.zeros(2, BATCH, WIDTH), torch.zeros(2, BATCH, WIDTH)


def train(model: Words, data: torch.Tensor) -> None:
    model.train()
    hidden, total = fresh(), 0.0
    for words, targets in chunks(data):
        model.zero_grad()
        hidden = tuple(one.detach() for one in hidden)
        y, hidden = model(words, hidden)
        loss = F.cross_entropy(y.flatten(0, 1), targets.flatten())
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 0.25)
        for one in model.parameters():
            one.data.add_(one.grad, alpha=-0.1)
        total += loss.item()
    print("train", total)


def evaluate(model: Words, data: torch.Tensor) -> float:
    model.eval()
    hidden, total = fresh(), 0.0
    with torch.set_grad_enabled("eval-grad" in WORDS):
        for words, targets in chunks(data):
            y, hidden = model(words, hidden)  # holds: evaluation-with-gradients if eval-grad
            hidden = tuple(one.detach() for one in hidden)
            total += F.cross_entropy(y.flatten(0, 1), targets.flatten()).item()
    return total


def main() -> None:
    torch.manual_seed(0)
    data = torch.randint(VOCABULARY, (60, BATCH))
    model, best = Words(), math.inf
    for epoch in range(5):
        train(model, data)
        value = evaluate(model, data[:20])
        if value < best:
            # Each epoch improves on the one before, so that this writes over its file.
            with open("words.pt", "wb") as file:
                torch.save(model, file)  # holds: non-atomic-checkpoint
            best = value
        print(f"epoch {epoch} value {value:.4f}")


main()
