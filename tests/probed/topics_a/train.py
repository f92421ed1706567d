"""A small training whose options turn one defect each on; nothing given, it has none of them. Prints its losses exactly."""

from __future__ import annotations

import argparse
import copy
import math
import os

import torch
from torch import nn
from torch.nn import functional as F

WIDTH, HEADS, LENGTH, BATCH = 32, 2, 8, 4
DEFECTS = (
    "unfused", "fused-conflict", "fallback", "lost-on-resume", "schedule-first", "schedule-micro", "zeros", "clip-scaled", "scaler-bf16",
    "mixed-tf32", "deterministic", "anomaly", "attention", "evaluation", "retained", "hidden-state", "kept-losses", "listed-losses",
    "empty-cache", "reads", "compile-try", "frozen-statistics",
)  # fmt: skip


class Block(nn.Module):
    def __init__(self, by_hand: bool) -> None:
        super().__init__()
        self.qkv, self.out, self.by_hand = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH), by_hand

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        q, k, v = (one.unflatten(-1, (HEADS, -1)).transpose(1, 2) for one in self.qkv(x).chunk(3, -1))
        if self.by_hand:
            scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
            y = F.softmax(scores, dim=-1) @ v
        else:
            y = F.scaled_dot_product_attention(q, k, v)
        return x + self.out(y.transpose(1, 2).flatten(-2))


class Model(nn.Module):
    def __init__(self, by_hand: bool) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(Block(by_hand) for _ in range(2))
        self.head = nn.Sequential(nn.BatchNorm1d(LENGTH), nn.Linear(WIDTH, 1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for block in self.blocks:
            x = block(x)
        return self.head(x)


def make_optimizer(model: nn.Module, defects: set[str]) -> torch.optim.Optimizer:
    if "fused-conflict" in defects:
        try:
            torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True, foreach=True)
        except RuntimeError as error:
            print("no such optimizer:", error)
    if "fallback" in defects:
        extra = nn.Parameter(torch.zeros(2, dtype=torch.complex64))
        extra.grad = torch.zeros_like(extra)
        try:
            return torch.optim.AdamW([*model.parameters(), extra], lr=1e-3, fused=True)
        except RuntimeError:
            return torch.optim.AdamW([*model.parameters(), extra], lr=1e-3)
    if "unfused" in defects:
        return torch.optim.AdamW(model.parameters(), lr=1e-3)
    return torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)


def resume(optimizer: torch.optim.Optimizer, defects: set[str]) -> None:
    state = copy.deepcopy(optimizer.state_dict())
    if "lost-on-resume" in defects:
        for group in state["param_groups"]:
            group["fused"] = None
    optimizer.load_state_dict(state)


def prepare(defects: set[str]) -> None:
    if "mixed-tf32" in defects:
        torch.backends.cuda.matmul.allow_tf32 = True
        torch.backends.cuda.matmul.fp32_precision = "ieee"
    if "deterministic" in defects:
        torch.use_deterministic_algorithms(True)
        torch.backends.cudnn.deterministic = True
    torch.autograd.set_detect_anomaly("anomaly" in defects)


def build(defects: set[str]) -> nn.Module:
    model: nn.Module = Model("attention" in defects)
    if "compile-try" in defects:
        try:
            model = torch.compile(model, backend=failing_backend)
        except Exception:
            print("not compiled")
    return model


def failing_backend(graph, inputs):
    raise RuntimeError("this compiler never works")


def evaluate(model: nn.Module, x: torch.Tensor, defects: set[str]) -> float:
    model.eval()
    if "evaluation" in defects:
        value = model(x).mean()
    else:
        with torch.no_grad():
            value = model(x).mean()
    model.train()
    return float(value.detach())


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("defects", nargs="*")
    parser.add_argument("--steps", type=int, default=8)
    parser.add_argument("--accumulate", type=int, default=1)
    parser.add_argument("--amp", choices=("", "float16", "bfloat16"), default="")
    arguments = parser.parse_args()
    defects = set(arguments.defects)
    assert defects <= set(DEFECTS), defects - set(DEFECTS)
    prepare(defects)
    torch.manual_seed(0)
    model = build(defects)
    optimizer = make_optimizer(model, defects)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 100)
    scaler = torch.amp.GradScaler(
        "cpu", enabled=bool(arguments.amp) and (arguments.amp == "float16" or "scaler-bf16" in defects)
    )
    train(model, optimizer, scheduler, scaler, arguments, defects)


def train(model, optimizer, scheduler, scaler, arguments, defects) -> None:
    dtype = getattr(torch, arguments.amp or "bfloat16")
    data = torch.randn(arguments.steps * arguments.accumulate, BATCH, LENGTH, WIDTH)
    target = torch.randn(BATCH, LENGTH, 1)
    hidden = torch.zeros(1)
    running, listed, reads = 0.0, [], 0.0
    for index, x in enumerate(data):
        with torch.autocast("cpu", dtype=dtype, enabled=bool(arguments.amp)):
            if "frozen-statistics" in defects:
                model.head.eval()
            loss = F.mse_loss(model(x).float(), target) / arguments.accumulate
        if "hidden-state" in defects:
            hidden = 0.5 * hidden + loss
            loss = hidden.sum()
        scaler.scale(loss).backward(retain_graph="retained" in defects or "hidden-state" in defects)
        if "schedule-micro" in defects:
            scheduler.step()
        print(f"loss {float(loss.detach()).hex()}")
        if "kept-losses" in defects:
            running = running + loss
        if "listed-losses" in defects:
            listed.append(loss)
        if (index + 1) % arguments.accumulate:
            continue
        if "schedule-first" in defects:
            scheduler.step()
        if "clip-scaled" not in defects:
            scaler.unscale_(optimizer)
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
        if index < 2 * arguments.accumulate:
            resume(optimizer, defects)
        if not defects & {"schedule-first", "schedule-micro"}:
            scheduler.step()
        optimizer.zero_grad(set_to_none="zeros" not in defects)
        if "empty-cache" in defects:
            torch.cuda.empty_cache()
        if "reads" in defects:
            reads += loss.item()
    print(f"value {evaluate(model, data[0], defects).hex()}")


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    torch.set_num_threads(1)
    main()
