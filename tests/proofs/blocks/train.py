"""Trains each of the models for a few steps; ``--options`` are given to the constructors."""

import argparse
import json

import torch
from models import DiT, Halves, SmallDiT, Stacked
from saved import SavedBytes

MODELS = {
    "DiT": DiT,
    "SmallDiT": SmallDiT,
    "Halves": Halves,
    "Stacked": Stacked,
}


def train(name: str, model: torch.nn.Module) -> None:
    torch.manual_seed(1)
    print("model", name)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    mask = torch.zeros(16, 16)
    for step in range(1, 5):
        x, c = torch.randn(8, 16, 32), torch.randn(8, 32)
        saved = SavedBytes()
        with saved:
            loss = model(x, c, mask=mask).square().mean()
        loss.backward()
        print(f"step {step} loss {loss.item().hex()}")
        print(f"saved {saved.peak}")
        print("gradients", *(parameter.grad.double().norm().item().hex() for parameter in model.parameters()))
        optimizer.step()
        optimizer.zero_grad()
    model.eval()
    print("evaluation", model(x, c, mask=mask).sum().item().hex())
    print("keys", *model.state_dict())


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--options", type=json.loads, default={})
    args = parser.parse_args()
    torch.manual_seed(0)
    for name, kind in MODELS.items():
        train(name, kind() if kind is SmallDiT else kind(**args.options))


if __name__ == "__main__":
    main()
