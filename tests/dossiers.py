"""Evidence made by hand, for tests of what it does to findings."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from ldlm_lint.evidence import files
from ldlm_lint.evidence.model import Environment, Evidence, Judgement, Measurement, Run, Scope, Site, Verdict

UNUSED = "ddp-find-unused-parameters"
# A program, and the lines of its defects.
WRAP, LOADER, SYNCHRONIZE = 8, 9, 14
TRAIN = """\
import torch
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader


def main(model, dataset):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    model = DDP(model, find_unused_parameters=True)
    loader = DataLoader(dataset, num_workers=2, persistent_workers=True)
    for epoch in range(3):
        for batch in loader:
            optimizer.zero_grad()
            model(batch.cuda()).mean().backward()
            torch.cuda.synchronize()
            optimizer.step()
"""
VERIFIED, REFUTED, INCONCLUSIVE = Verdict.VERIFIED, Verdict.REFUTED, Verdict.INCONCLUSIVE


def site(path: Path, line: int, root: Path, *, end: int = 0) -> Site:
    """A place in a file as it is on disk now, relative to the root where it lies below it."""
    shown = path.relative_to(root) if path.is_relative_to(root) else path
    return Site(shown.as_posix(), line, end, hashlib.sha256(path.read_bytes()).hexdigest())


def judged(
    rule: str,
    verdict: Verdict,
    sites: Sequence[Site] = (),
    *,
    reason: str = "",
    lifts: bool = False,
    device: str = "cpu",
    steps: int = 50,
) -> Judgement:
    """A judgement on two ranks."""
    scope = Scope(device, device, steps, (0, 1), 2)
    said = reason or f"{rule} was {verdict.value} {scope.words}"
    figure = Measurement("ratio", 4.4233, "x", (4.33, 4.47), 25, 1.05, 1.006)
    return Judgement(rule, f"the claim of {rule}", verdict, said, scope, tuple(sites), figure, lifts)


def written(folder: Path, root: Path, *judgements: Judgement, run_id: str = "a", kind: str = "watch") -> Path:
    """A folder with the evidence of one run, which made the judgements itself."""
    run = Run(kind, run_id, ("torchrun", "train.py"), root.as_posix(), pid=len(run_id), world_size=1)
    evidence = Evidence(run, Environment(device=judgements[0].scope.device if judgements else "cpu"))
    path = files.write(replace(evidence, judgements=tuple(judgements)), folder)
    path.rename(path.with_name(f"evidence-{run_id}-{kind}.json"))
    return folder
