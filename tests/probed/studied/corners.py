"""Trainings that look like a defect and have none, one for each word; and a few that have one."""

from __future__ import annotations

import collections
import copy
import os
import sys

import torch
from torch import nn
from torch.nn import functional as F

WORDS = set(sys.argv[1:])
STEPS = 14


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(8, 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.inner(x).relu()


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = nn.Linear(8, 8), nn.Linear(8, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.last(self.first(x).relu())


class Teacher(nn.Module):
    """Only ever run without gradients: it stores no activations that checkpoints could save."""

    def __init__(self) -> None:
        super().__init__()
        self.blocks, self.head = nn.ModuleList(Block() for _ in range(3)), nn.Linear(8, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for block in self.blocks:
            x = block(x)
        return self.head(x)


class Experts(nn.Module):
    """A gate over experts: a softmax over a product, and no attention."""

    def __init__(self) -> None:
        super().__init__()
        self.gate, self.experts = nn.Linear(8, 4), nn.Parameter(torch.randn(4, 8, 8))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        weights = F.softmax(self.gate(x), dim=-1)
        return torch.einsum("be,edf,bd->bf", weights, self.experts, x)


class Prototypes(nn.Module):
    """A mean of learned vectors, weighted by likeness."""

    def __init__(self) -> None:
        super().__init__()
        self.gate, self.values = nn.Parameter(torch.randn(8, 4)), nn.Parameter(torch.randn(4, 8))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.softmax(x @ self.gate, dim=-1) @ self.values


def saliency(model: nn.Module) -> None:
    """Gradients of the inputs in evaluation mode, which need the graph."""
    model.eval()
    x = torch.randn(4, 8, requires_grad=True)
    torch.autograd.grad(model(x).sum(), x)
    model.train()


def jacobians(model: nn.Module) -> None:
    """The same by the functions that are made for it."""
    model.eval()
    x = torch.randn(2, 8)
    if "jacobian" in WORDS:
        torch.autograd.functional.jacobian(model, x)
    else:
        torch.func.jacrev(model)(x)
    model.train()


def inferred(model: nn.Module) -> None:
    model.eval()
    with torch.inference_mode():
        model(torch.ones(4, 8))
    model.train()


def attack(model: nn.Module) -> torch.Tensor:
    """An adversarial example from the model in evaluation mode."""
    model.eval()
    x = torch.randn(4, 8, requires_grad=True)
    model(x).sum().backward()
    model.train()
    return (x + x.grad.sign()).detach()


def labels(model: nn.Module) -> torch.Tensor:
    """Pseudo-labels that are detached, although gradients were recorded for them."""
    model.eval()
    made = model(torch.ones(4, 8)).detach()  # holds: evaluation-with-gradients
    model.train()
    return made


def penalty(model: nn.Module, x: torch.Tensor) -> torch.Tensor:
    x = x.requires_grad_(True)
    (slope,) = torch.autograd.grad(model(x).sum(), x, create_graph=True)
    return (slope.norm(dim=1) - 1).square().mean()


def backward(model: nn.Module, x: torch.Tensor, losses: list, recent: collections.deque) -> None:
    loss = model(x).square().mean()
    if "recent" in WORDS:
        recent.append(loss.detach())
    if "window" in WORDS:
        # Two losses are collected before their one backward pass.
        losses.append(loss)
        if len(losses) == 2:
            sum(losses).backward()
            losses.clear()
        return
    if "twice" in WORDS:
        loss.backward(retain_graph=True)
        loss = loss * 2
    if "gradient-again" in WORDS:
        loss.backward(retain_graph=True)
        torch.autograd.grad(loss, list(model.parameters()))
        return
    if "penalty" in WORDS:
        loss = loss + penalty(model, x)
    loss.backward()


def main() -> None:
    torch.manual_seed(0)
    model = Net()
    if "experts" in WORDS:
        model = nn.Sequential(Experts(), Net())
    if "prototypes" in WORDS:
        model = nn.Sequential(Prototypes(), Net())
    teacher = Teacher() if "teacher" in WORDS else None
    average = copy.deepcopy(model).eval() if "average" in WORDS else None
    optimizer = torch.optim.RMSprop(model.parameters(), lr=0.001)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 5)
    second = torch.optim.lr_scheduler.ConstantLR(optimizer)
    scaler = torch.amp.GradScaler("cpu", enabled="skipped" in WORDS, init_scale=4.0)
    if "resumed" in WORDS:
        # The schedule is brought to where the earlier run ended, which had one epoch.
        for _ in range(1):
            scheduler.step()
    losses, recent = [], collections.deque(maxlen=5)
    for step in range(STEPS):
        x = torch.randn(4, 8)
        if "attack" in WORDS:
            x = attack(model)
        if "saliency" in WORDS:
            saliency(model)
        if WORDS & {"jacobian", "functional"}:
            jacobians(model)
        if "inferred" in WORDS:
            inferred(model)
        if "labels" in WORDS:
            labels(model)
        if "features" in WORDS:
            # What the training reads again, and no state of it.
            torch.save(x, f"features-{step}.pt")
        if "predictions" in WORDS:
            torch.save(model(x).detach(), "predictions.pt")
            torch.save([step, model(x).detach()], "written.tmp")
            os.replace("written.tmp", f"written-{step}.pt")
        optimizer.zero_grad()
        if "skipped" in WORDS:
            # The first loss overflows: the scaler leaves its step out.
            scaler.scale(model(x).square().mean() * (float("inf") if step == 0 else 1)).backward()
            scaler.step(optimizer)
            scaler.update()
            scheduler.step()
            continue
        if teacher is not None:
            with torch.no_grad():
                wanted = teacher(x)
            F.mse_loss(model(x), wanted).backward()
        else:
            backward(model, x, losses, recent)
        optimizer.step()
        scheduler.step()
        if "two-schedules" in WORDS:
            second.step()
        if average is not None:
            with torch.no_grad():
                for mine, its in zip(average.parameters(), model.parameters(), strict=True):
                    mine.lerp_(its, 0.1)
            average(x)
        if "six" in WORDS:
            # The last six are kept.
            torch.save(model.state_dict(), f"step-{step}.pt")
            if os.path.exists(f"step-{step - 6}.pt"):
                os.remove(f"step-{step - 6}.pt")


main()
