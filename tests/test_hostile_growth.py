"""Twice the text takes about twice the time: what made files of some form cost its square, or more, stays mended."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random

import pytest
from calling import Enter, Run
from fuzz.growth import FIXTURES, TOKENS, cases
from test_bad_input import BEAT, WRAP

LOOP = "def t(l, opt, m):\n    for x in l:\n"
SAVE = "import torch\n" + LOOP + "        loss.backward()\n"
GROUP = "import os\nimport torch.distributed as dist\ndist.init_process_group('nccl')\n"

OPTIMIZER = "opt = torch.optim.AdamW(m.parameters(){})\n"
DDP = "m = torch.nn.parallel.DistributedDataParallel(m)\n"
FROZEN = "for p in m.module.parameters():\n    p.requires_grad = False\n"
SEGMENT = "        torch.utils.checkpoint.checkpoint(self.layer, x)\n"

FORMS: dict[str, tuple[str, Callable[[int], str]]] = {
    # The name of a file and its text of about so many bytes.
    "backward passes": ("a.py", lambda n: WRAP + "loss.backward()\n" * (n // 16)),
    "loops": ("a.py", lambda n: "import torch\ndef t(l, m):\n" + "    for x in l:\n        m(x).mean().backward()\n" * (n // 47)),
    "optimizers": ("a.py", lambda n: SAVE + OPTIMIZER.format("") * (n // 38)),
    "fused optimizers": ("a.py", lambda n: SAVE + OPTIMIZER.format(", fused=True") * (n // 50)),
    "wrappers": ("a.py", lambda n: SAVE + DDP * (n // 49) + FROZEN),
    "segments": ("a.py", lambda n: "import torch\nclass M(torch.nn.Module):\n    def forward(self, x):\n" + SEGMENT * (n // 56)),
    "switches": ("a.py", lambda n: SAVE + "torch.autograd.set_detect_anomaly(True)\n" * (n // 41)),
    "decorators of nothing": ("a.py", lambda n: WRAP + "@a\n" * (n // 3)),
    "steps in cases": ("a.py", lambda n: WRAP + "def f(x):\n    match x:\n" + "        case 1:\n            loss.backward()\n" * (n // 44)),
    "saves": ("a.py", lambda n: SAVE + "        torch.save(m.state_dict(), f'a{x}.pt')\n" * (n // 47)),
    "variables": ("a.py", lambda n: GROUP + "os.environ['NCCL_TIMEOUT'] = '7200'\n" * (n // 38)),
    "names imported again": ("a.py", lambda n: WRAP + "from x import (" + "a as b,\n" * (n // 8) + "c)\n"),
    "comments in Python": ("a.py", lambda n: WRAP + "x = 1  # ldlm-lint: ignore[a] b\n" * (n // 34)),
    "comments in YAML": ("a.yaml", lambda n: "num_workers: 0\n" + "a: 1  # ldlm-lint: ignore[a] b\n" * (n // 32)),
    "here-documents": ("a.sh", lambda n: BEAT + "# ldlm-lint: ignore[a]\n" + "cat <<EOF\nA\nEOF\n" * (n // 16)),
    "a long word": ("a.sh", lambda n: BEAT + "torchrun t.py " + "a" * n + "\n"),
    "brackets left open": ("a.sh", lambda n: BEAT + "(" * n + "\ntorchrun t.py\n"),
    "quotes and brackets left open": ("a.sh", lambda n: BEAT + 'echo "$(' * (n // 8) + "\ntorchrun t.py\n"),
    "sizes": ("a.sh", lambda n: BEAT + "ACCUM=$((512 / WORLD_SIZE))\n" * (n // 28) + "torchrun t.py --gradient_accumulation_steps $ACCUM\n"),
    "expansions": ("a.sh", lambda n: BEAT + "torchrun t.py " + "$1" * (n // 2) + "\n"),
    "a long value": ("a.sh", lambda n: BEAT + "N=$((" + "f" * n + "))\ntorchrun t.py\n"),
    "starters": ("a.sh", lambda n: BEAT + "srun " * (n // 5) + "torchrun t.py\n"),
    "options of set": ("a.sh", lambda n: BEAT + "set a " * (n // 6) + "\ntorchrun t.py\n"),
}
SMALL, LARGE = 10_000, 40_000
MOST = 9.0
"""Four times the text: 4 times the time where it grows with it, 16 times where with its square."""


def least(tries: int, run: Run, place: Path, text: str) -> Iterator[float]:
    """Processor seconds of some runs over one file."""
    for _ in range(tries):
        place.write_text(text)
        began = time.process_time()
        assert run("check", "--no-cache", "--select", "ALL", "--format", "concise")[0] in (0, 1)
        yield time.process_time() - began


@pytest.mark.slow
@pytest.mark.parametrize("what", FORMS)
def test_time_grows_with_the_text(what: str, enter: Enter, run: Run) -> None:
    name, text = FORMS[what]
    place = enter({"pyproject.toml": "", name: text(100)}) / name
    run("check", "--no-cache", "--select", "ALL", "--format", "concise")
    large = min(least(2, run, place, text(LARGE)))
    # What takes no time at all has no growth to be measured.
    assert large < 0.2 or large / min(least(3, run, place, text(SMALL))) < MOST


@pytest.mark.parametrize("kind", TOKENS)
def test_what_is_searched_holds_a_piece_many_times(kind: str) -> None:
    for case in itertools.islice(cases(kind, 2_000, Random(7)), 40):
        assert case.name.endswith(f".{kind}")
        assert case.times == 2 or 1_000 < len((case.piece * case.times).encode()) <= 2_000
        fixture = (FIXTURES / case.name).read_text(encoding="utf-8", errors="replace")
        # The piece is one of the fixture, or a token that was put into it.
        assert fixture in (case.before + case.piece + case.behind, case.before + case.behind)


def test_a_text_of_the_search_is_linted() -> None:
    assert next(cases("sh", 500, Random(7))).seconds() < 5
