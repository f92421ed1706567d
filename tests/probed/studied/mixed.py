"""Mixed precision on the CPU: autocast, a scaler where float16 needs one, gradients clipped, micro-batches."""

from __future__ import annotations

import sys

import torch
from torch import nn

WORDS = set(sys.argv[1:])
TYPE = torch.float16 if "float16" in WORDS else torch.bfloat16
MICRO = 2 if "micro" in WORDS else 1


def main() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 1))
    # holds: optimizer-not-fused unless fused
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused="fused" in WORDS)
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 1 / (1 + step))
    # holds: grad-scaler-with-bfloat16 if scaler
    scaler = torch.amp.GradScaler("cpu", enabled=bool(WORDS & {"float16", "scaler"}), init_scale=64.0)
    for index in range(14 * MICRO):
        with torch.autocast("cpu", dtype=TYPE):
            loss = (model(torch.randn(8, 16)) - 1).float().square().mean() / MICRO
        scaler.scale(loss).backward()
        if "schedule-micro" in WORDS:
            scheduler.step()  # holds: scheduler-per-micro-batch if micro
        if (index + 1) % MICRO:
            continue
        if "clip-scaled" not in WORDS:
            scaler.unscale_(optimizer)
        # A norm that is only measured clips nothing.
        most = float("inf") if "norm-only" in WORDS else 1.0
        torch.nn.utils.clip_grad_norm_(
            model.parameters(), most
        )  # holds: clip-before-unscale if clip-scaled unless norm-only
        scaler.step(optimizer)
        scaler.update()
        if "schedule-micro" not in WORDS:
            scheduler.step()
        optimizer.zero_grad(set_to_none=True)
        if "anomaly" in WORDS:
            torch.autograd.set_detect_anomaly(True)
        print(f"loss {loss.item():.4f}")


main()
