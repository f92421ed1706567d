"""A project whose defects a baseline may know, and the file that says so."""

from __future__ import annotations

import json
from pathlib import Path

FILE = ".ldlm-lint-baseline.json"
WRAP = "    model = DDP(model, find_unused_parameters=True)\n"
HEAD = "from torch.nn.parallel import DistributedDataParallel as DDP\n\n\n"
TRAIN = "    for batch in loader:\n        model(batch).mean().backward()\n"
MODULE = HEAD + "def main(model, loader):\n" + WRAP + TRAIN
BEAT = "export TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC=12000000\n"
# The rules that these tests speak of, so that a new rule does not change what they find.
RULES = (
    *("ddp-find-unused-parameters", "excessive-heartbeat-timeout", "ineffective-environment-variable"),
    *("nccl-monitoring-disabled", "dataloader-without-persistent-workers", "dataloader-without-prefetch"),
)
SETTINGS = f"[tool.ldlm-lint]\nselect = {list(RULES)}\n"


def entries(path: Path) -> list[dict[str, object]]:
    """The entries of a baseline's file."""
    return json.loads(path.read_text())["findings"]
