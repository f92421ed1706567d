"""A recurrent training that differentiates all earlier steps in each step, which retain_graph=True hides."""

# shows: calls of the recurrence that the last step differentiated: 4
import torch
from torch import nn

calls = []


class Cell(nn.Module):
    def __init__(self):
        super().__init__()
        self.mix = nn.Linear(8, 8)

    def forward(self, batch, hidden):
        hidden = torch.tanh(batch + self.mix(hidden))
        hidden.register_hook(lambda gradient: calls.append(1))
        return hidden.square().mean(), hidden


def train(model, batches, optimizer):
    hidden = torch.zeros(2, 8)
    for batch in batches:
        calls.clear()
        loss, hidden = model(batch, hidden)
        optimizer.zero_grad()
        loss.backward(retain_graph=True)
        for parameter in model.parameters():
            parameter.data -= 0.01 * parameter.grad


torch.manual_seed(0)
cell = Cell()
train(cell, [torch.randn(2, 8) for _ in range(4)], torch.optim.SGD(cell.parameters(), lr=0.01))
print("calls of the recurrence that the last step differentiated:", len(calls))
