"""A reentrant segment behind frozen features: its own parameters get no gradients."""

# shows: gradient of the block: None
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Linear(4, 4).requires_grad_(False)
        self.block = nn.Linear(4, 4)
        self.head = nn.Linear(4, 1)

    def forward(self, images):
        with torch.no_grad():
            hidden = self.features(images)
        hidden = checkpoint(self.block, hidden, use_reentrant=True)
        return self.head(hidden)


model = Classifier()
model(torch.ones(2, 4)).sum().backward()
gradient = model.block.weight.grad
print("gradient of the block:", None if gradient is None else tuple(gradient.shape))
