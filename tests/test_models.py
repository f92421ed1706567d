"""Facts about models on small programs: their stacks and sizes, what recomputes them, which of their runs are recorded."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from collected import for_every
from linking import Alone, program_of

from ldlm_lint.concepts.freezing import Freezing
from ldlm_lint.concepts.models import Models, Size
from ldlm_lint.concepts.recomputing import Recomputing
from ldlm_lint.concepts.recorded_runs import RecordedRuns
from ldlm_lint.program.handles import Class

BLOCK = """\
from torch import nn
class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.attn = nn.MultiheadAttention(width, 8)
    def forward(self, x):
        return x + self.attn(x, x, x)[0]
"""
NET = "class Net(nn.Module):\n    def __init__(self, width=512, depth=12):\n        super().__init__()\n        {}\n"
RUN = "    def forward(self, x):\n        for block in self.blocks:\n            x = block(x)\n        return x\n"
LIST = "self.blocks = nn.ModuleList([Block(width) for _ in range(depth)])"
USE = "from net import Net\nnet = Net()\nfor x in data:\n    net(x).mean().backward()\n    optimizer.step()\n"


class _All:
    """Every file belongs to one training, without an engine."""

    def __init__(self, paths: Collection[str]) -> None:
        self.paths = paths

    def bringing(self, _path: str) -> Collection[str]:
        return self.paths

    around = bringing

    def recompute_by_engine(self, _path: str) -> bool:
        return False


class _Trained(Alone):
    @property
    def trainings(self) -> Any:  # type: ignore[override]
        return _All([self.path(one) for one in self.modules])


def code(files: Mapping[str, str]) -> Alone:
    return _Trained(program_of(files))


def net(found: Alone) -> Class:
    return next(one for one in found.classes if one.name == "Net")


STACKS = {
    "a list": LIST,
    "appended": "self.blocks = nn.ModuleList()\n        for _ in range(depth):\n            self.blocks.append(Block(width))",
    "by a function": "make = lambda: Block(width)\n        self.blocks = nn.ModuleList([make() for _ in range(depth)])",
    "copies": "import copy\n        block = Block(width)\n        self.blocks = nn.Sequential(*[copy.deepcopy(block) for _ in range(depth)])",
}


@for_every("built", STACKS.values(), ids=STACKS)
def test_a_stack_is_found_however_it_is_built(built: str) -> None:
    found = code({"net.py": BLOCK + NET.format(built), "train.py": USE})
    (stack,) = found[Models].stacks(net(found))
    assert stack.what == "every `Block`"
    assert found[Models].size(net(found)) == Size(12, 512)


NO_STACKS = {
    "few": LIST.replace("range(depth)", "range(2)"),
    "no attention": LIST.replace("Block(width)", "nn.Linear(width, width)"),
    "stages of convolutions": "self.blocks = nn.ModuleList()\n        for _ in range(depth):\n            self.blocks.append(ConvBlock(width))\n            self.blocks.append(Block(width))",
}


@for_every("built", NO_STACKS.values(), ids=NO_STACKS)
def test_what_is_no_stack(built: str) -> None:
    found = code({"net.py": BLOCK + "class ConvBlock(nn.Module):\n    pass\n" + NET.format(built), "train.py": USE})
    assert not found[Models].stacks(net(found))


def test_blocks_side_by_side_are_no_stack() -> None:
    run = "    def forward(self, x):\n        return sum([block(x) for block in self.blocks])\n"
    found = code({"net.py": BLOCK + NET.format(LIST) + run, "train.py": USE})
    assert not found[Models].stacks(net(found))


SWITCHES = {
    "its own": (NET.format(LIST) + "        self.use_checkpoint = False\n", USE, True),
    "of who holds it": (NET.format(LIST), USE + "class Whole(nn.Module):\n    def __init__(self):\n        self.net, self.grad_ckpt = Net(), False\n", True),
    "of another model": (NET.format(LIST) + "class Other(nn.Module):\n    def __init__(self):\n        self.use_checkpoint = True\n", USE, False),
    "about files": (NET.format(LIST) + "    def load_checkpoint(self, checkpoint_path):\n        pass\n", USE, False),
}


@for_every("model, training, applies", SWITCHES.values(), ids=SWITCHES)
def test_what_switches_recomputation_on(model: str, training: str, applies: bool) -> None:
    found = code({"net.py": BLOCK + model, "train.py": "from torch import nn\n" + training})
    assert found[Recomputing].may_apply_to(net(found)) is applies


def test_runs_are_recorded_in_any_order_of_questions() -> None:
    around = "def a(x):\n    return b(x)\ndef b(x):\n    if x:\n        return a(x)\n    return net(x)\nwith torch.no_grad():\n    a(x)\n"
    program = {"net.py": BLOCK + NET.format(LIST) + RUN, "train.py": "import torch\n" + USE.replace("    net(x)", "    b(x)") + around}
    for order in (1, -1):
        found = code(program)
        runs = found[RecordedRuns].runs(net(found))[::order]
        assert [found[RecordedRuns].is_recorded(one) for one in runs] == [True] * len(runs)


def test_a_model_that_runs_without_gradients_is_never_recorded() -> None:
    use = "import torch\nfrom net import Net\nnet = Net()\nfor x in data:\n    with torch.no_grad():\n        y = net(x)\n    head(y).backward()\n"
    found = code({"net.py": BLOCK + NET.format(LIST) + RUN, "train.py": use})
    assert found[RecordedRuns].is_never_recorded(net(found))


def test_a_helper_switches_at_its_calls() -> None:
    helper = "def hold(part, still):\n    for weight in part.parameters():\n        weight.requires_grad = not still\n"
    use = USE.replace("    net(x)", "    hold(net.blocks, flag)\n    net(x)").replace("import Net", "import Net, hold")
    found = code({"net.py": BLOCK + NET.format(LIST) + RUN + helper, "train.py": use})
    (group,) = found[Freezing].switches
    assert [(one.model.module.path, one.spot.line) for one in group] == [("train.py", 4)]
