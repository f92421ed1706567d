"""Programs that keep a limited number of graphs, and those that keep more with each step; graphs that are used again rarely."""

from __future__ import annotations

from pathlib import Path

import pytest
import warm

from ldlm_lint.evidence import files
from ldlm_lint.evidence.model import Judgement, Verdict
from ldlm_lint.evidence.verdicts import judge

pytestmark = pytest.mark.torch

WATCHED = Path(__file__).parent / "probed" / "watched.py"
VERIFIED, REFUTED, INCONCLUSIVE = Verdict

LOOP = """
import sys
from collections import defaultdict, deque
import torch
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
BEFORE
for step in range(STEPS):
    loss = model(torch.ones(2, 4)).square().mean()
    optimizer.zero_grad()
    BACKWARD
    optimizer.step()
    KEEP
"""
METER = """
class Meter:
    def __init__(self, window):
        self.window = deque(maxlen=window)
        self.last = None
    def update(self, value):
        self.window.append(value)
        self.last = sum(self.window) / len(self.window)
meter = Meter(5)"""
KEPT = {
    # name: (before the loop, in each step, steps, verdict, words of the reason)
    "a queue of five": ("recent = deque(maxlen=5)", "recent.append(loss)", 20, REFUTED, "stopped growing at"),
    "a queue that is not full": (
        "recent = deque(maxlen=50)",
        "recent.append(loss)",
        20,
        INCONCLUSIVE,
        "`recent` holds at most 50",
    ),
    "a queue and its mean": (
        "recent = deque(maxlen=50)",
        "recent.append(loss); mean = 0\n    for one in recent: mean = mean + one",
        20,
        INCONCLUSIVE,
        "holds at most 50",
    ),
    "a meter": (METER, "meter.update(loss)", 20, REFUTED, "stopped growing at"),
    "queues by name": (
        "meters = defaultdict(lambda: deque(maxlen=30))",
        "meters['loss'].append(loss)",
        20,
        INCONCLUSIVE,
        "`meters` holds at most 30",
    ),
    "a list that is cut": ("recent = []", "recent.append(loss); recent = recent[-5:]", 20, REFUTED, "stopped growing"),
    "a list that will be cut": (
        "recent = []",
        "recent.append(loss)\n    if len(recent) > 40: recent.pop(0)",
        20,
        INCONCLUSIVE,
        "also removes from it",
    ),
    "a ring": ("ring = [None] * 30", "ring[step % 30] = loss", 20, INCONCLUSIVE, "`ring` holds at most 30"),
    "a list": ("losses = []", "losses.append(loss)", 20, VERIFIED, "kept by `losses` (list)"),
    "a list, few steps": ("losses = []", "losses.append(loss)", 6, VERIFIED, "kept by `losses` (list)"),
    "a sum": ("total = 0", "total = total + loss", 20, VERIFIED, "kept by `total`"),
    "a queue without limit": ("recent = deque()", "recent.append(loss)", 20, VERIFIED, "kept by `recent` (deque)"),
    "lists by name": ("logs = defaultdict(list)", "logs['loss'].append(loss)", 20, VERIFIED, "kept by `logs`"),
    "by step": ("logs = {}", "logs[step] = loss", 20, VERIFIED, "kept by `logs` (dict)"),
    "a queue and a list": (
        "recent, losses = deque(maxlen=5), []",
        "recent.append(loss); losses.append(loss)",
        20,
        VERIFIED,
        "kept by",
    ),
    "a queue of a chain": (
        "states, state = deque(maxlen=5), 0",
        "state = 0.5 * state + loss; states.append(state)",
        20,
        VERIFIED,
        "kept by",
    ),
}
AGAIN = "loss.backward(retain_graph=True)\n    if step % {} == {}: (0.1 * loss).backward()"
RETAINED = {
    "every fifth step": (AGAIN.format(5, 4), 20, REFUTED, "went through"),
    "every fifth step, few steps": (AGAIN.format(5, 4), 4, INCONCLUSIVE, ""),
    "every sixteenth step": (AGAIN.format(16, 15), 20, INCONCLUSIVE, "had more backward pass"),
    "every third step, by its gradient": (
        "loss.backward(retain_graph=True)\n    if step % 6 == 5: torch.autograd.grad(loss, list(model.parameters()))",
        20,
        REFUTED,
        "went through",
    ),
    "in each step": (AGAIN.format(1, 0), 20, REFUTED, "went through"),
    "never": ("loss.backward(retain_graph=True)", 20, VERIFIED, "no later backward pass went through any of"),
    "never, beside another loss": (
        "loss.backward(retain_graph=True); model(torch.zeros(2, 4)).sum().backward()",
        20,
        VERIFIED,
        "no later backward pass went through any of",
    ),
}


def _judged(folder: Path, rule: str, steps: int, **parts: str) -> Judgement:
    text = LOOP.replace("STEPS", str(steps))
    for name, part in parts.items():
        text = text.replace(name, part)
    program, out = folder / "train.py", folder / "seen"
    program.write_text(text)
    code, _, err = warm.run([str(WATCHED), str(out), "40", str(program)], folder, {}, 120)
    assert code == 0, err
    evidence = files.read(out)
    assert not [one for one in evidence[0].unavailable.values() if "own error" in one], evidence[0].unavailable
    (found,) = [one for one in judge(evidence) if one.rule == rule]
    return found


@pytest.mark.parametrize("case", KEPT)
def test_only_graphs_that_become_more_accumulate(case: str, tmp_path: Path) -> None:
    before, keep, steps, verdict, said = KEPT[case]
    found = _judged(
        tmp_path, "loss-graph-accumulation", steps, BEFORE=before, KEEP=keep, BACKWARD="loss.backward()"
    )
    assert found.verdict is verdict and said in found.reason, found


@pytest.mark.parametrize("case", RETAINED)
def test_a_retained_graph_is_judged_when_it_could_have_been_used(case: str, tmp_path: Path) -> None:
    backward, steps, verdict, said = RETAINED[case]
    found = _judged(tmp_path, "graph-retained-on-backward", steps, BEFORE="", KEEP="pass", BACKWARD=backward)
    assert found.verdict is verdict and said in found.reason, found
