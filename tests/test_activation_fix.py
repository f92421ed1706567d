"""The fix of missing-activation-checkpointing: the shapes that it knows, and all those that it leaves alone."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from collected import for_every

from ldlm_lint.config import Config
from ldlm_lint.fixing import apply_fixes
from ldlm_lint.model import Applicability

_HEAD = """import torch
from torch import nn


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.attn = nn.MultiheadAttention(width, 8)
        self.calls = 0

    def forward(self, x, c=None):
        return x + self.attn(x, x, x)[0]


"""
_INIT = """class Model(nn.Module):
    def __init__(self, width, depth):
        super().__init__()
        self.blocks = nn.ModuleList([Block(width) for _ in range(depth)])

"""
_TRAIN = """

def train(loader):
    model = Model(1024, 12)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x in loader:
        model(x).mean().backward()
        optimizer.step()
"""
_LOOP = """    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return x
"""
_GUARD = "if self.gradient_checkpointing and self.training:"


def fixed(tmp_path: Path, files: Mapping[str, str]) -> dict[str, str]:
    """The files of a project after its fix; each is written with its line endings."""
    for name, text in {"pyproject.toml": "", **files}.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(text.encode())
    config = Config(root=tmp_path.as_posix(), select=("missing-activation-checkpointing",))
    outcome = apply_fixes([tmp_path], config, tmp_path, Applicability.UNSAFE, write=True)
    assert not outcome.notes, outcome.notes
    return {name: (tmp_path / name).read_bytes().decode() for name in files}


def with_forward(tmp_path: Path, forward: str, head: str = _HEAD, init: str = _INIT, train: str = _TRAIN) -> str | None:
    """A model's file after its fix, None where nothing changed."""
    text = head + init + forward + train
    after = fixed(tmp_path, {"model.py": text})["model.py"]
    return None if after == text else after


@for_every(
    ("loop", "expected"),
    [
        (
            "for i, block in enumerate(self.blocks):\n            x = block(x)",
            "x = checkpoint(block, x, use_reentrant=False)",
        ),
        (
            "for block, c in zip(self.blocks, x):\n            x = block(x, c=c)",
            "x = checkpoint(block, x, c=c, use_reentrant=False)",
        ),
        (
            "for block in self.blocks[1:]:\n            x = x + block(x)",
            "x = x + checkpoint(block, x, use_reentrant=False)",
        ),
        (
            "for block in reversed(self.blocks):\n            x = block(x)[0]",
            "x = checkpoint(block, x, use_reentrant=False)[0]",
        ),
        (
            "for i in range(12):\n            x = self.blocks[i](x)",
            "x = checkpoint(self.blocks[i], x, use_reentrant=False)",
        ),
        (
            "for i in range(12):\n            block = self.blocks[i]\n            x = block(x)",
            "x = checkpoint(block, x, use_reentrant=False)",
        ),
        (
            "for block in self.blocks:\n            x, weights = block(x, *[x])",
            "x, weights = checkpoint(block, x, *[x], use_reentrant=False)",
        ),
        (
            "for block in self.blocks:\n            x = block(x, **{'c': x})",
            "x = checkpoint(block, x, **{'c': x}, use_reentrant=False)",
        ),
        (
            "for block in self.blocks:\n            if len(x) > 1:\n                x = block(x)",
            "x = checkpoint(block, x, use_reentrant=False)",
        ),
    ],
)
def test_shapes(tmp_path, loop, expected):
    after = with_forward(tmp_path, f"    def forward(self, x):\n        {loop}\n        return x\n")
    assert after is not None
    assert _GUARD in after and expected in after
    assert "        self.gradient_checkpointing = gradient_checkpointing\n" in after


@for_every(
    "loop",
    [
        pytest.param("for block in self.blocks:\n            x, cache = block(x, c=cache)", id="a cache is handed on"),
        pytest.param("for block in self.blocks:\n            x = block(x, use_cache=True)", id="a cache is asked for"),
        pytest.param("for block, past in zip(self.blocks, x):\n            x = block(x)", id="caches go along"),
        pytest.param("for block in self.blocks:\n            x += block(x)", id="the input is changed in place"),
        pytest.param(
            "for block in self.blocks:\n            y = block(x)\n            x.add_(y)",
            id="the input is changed by a method",
        ),
        pytest.param(
            "with torch.no_grad():\n            for block in self.blocks:\n                x = block(x)",
            id="without gradients",
        ),
        pytest.param("for block in self.blocks: x = block(x)", id="one line"),
        pytest.param("for block in self.blocks:\n            x = block(x); x = x * 2", id="two statements in a line"),
        pytest.param("for block in self.blocks:\n            x = block(x, c='''\n''')", id="a text of lines"),
        pytest.param(
            "for block in self.blocks:\n            x = block(x, debug=True)", id="a keyword of checkpoint itself"
        ),
        pytest.param("for block in self.blocks:\n            x = block()", id="no input"),
        pytest.param("for block in self.blocks:\n            x = block(block(x))", id="two calls in a statement"),
        pytest.param("x = [block(x) for block in self.blocks]", id="a comprehension"),
        pytest.param("for block in self.others:\n            x = block(x)", id="something else"),
    ],
)
def test_left_alone(tmp_path, loop):
    assert with_forward(tmp_path, f"    def forward(self, x, cache=None):\n        {loop}\n        return x\n") is None


@pytest.mark.parametrize(
    ("old", "new"),
    [
        pytest.param("        return x +", "        self.calls += 1\n        return x +", id="a counter"),
        pytest.param("        return x +", "        x += 1\n        return x +", id="the argument in place"),
        pytest.param("self.calls = 0", "self.norm = nn.BatchNorm1d(width)", id="statistics"),
        pytest.param(
            "        return x +",
            "        if random.random() > 0.5:\n            return x\n        return x +",
            id="another generator",
        ),
        pytest.param(
            "        return x +",
            "        x = x + torch.rand(1, generator=self.calls)\n        return x +",
            id="a generator of its own",
        ),
    ],
)
def test_blocks_that_cannot_run_twice(tmp_path, old, new):
    assert with_forward(tmp_path, _LOOP) is not None
    head = _HEAD.replace(old, new).replace("import torch\n", "import random\nimport torch\n", 1)
    assert head.count(new) == 1
    assert with_forward(tmp_path, _LOOP, head=head) is None


@pytest.mark.parametrize(
    "line",
    [
        "from torch.distributed.fsdp import fully_shard",
        "torch.jit.script(Model(1, 2)).save('x')",
        "from torch.func import jvp",
        "step = torch.cuda.make_graphed_callables(train, ())",
        "Model.register_forward_hook(print)",
    ],
)
def test_trainings_that_cannot_recompute(tmp_path, line):
    assert with_forward(tmp_path, _LOOP, train=f"{_TRAIN}\n\n{line}\n") is None


def test_no_option_where_the_constructor_is_not_its_own(tmp_path):
    init = _INIT.replace("    def __init__", "    @torch.no_grad()\n    def __init__")
    after = with_forward(tmp_path, _LOOP, init=init)
    assert after is not None
    assert "            if self.training:\n                x = checkpoint(block, x, use_reentrant=False)\n" in after


@for_every(
    ("signature", "expected"),
    [
        ("self, width, depth, *args", "self, width, depth, *args, gradient_checkpointing=True"),
        ("self, width, depth, **kwargs", "self, width, depth, gradient_checkpointing=True, **kwargs"),
        (
            "self, width: int, *, depth: int = 12",
            "self, width: int, *, depth: int = 12, gradient_checkpointing: bool = True",
        ),
        ("self, width, depth=2 ** 3", "self, width, depth=2 ** 3, gradient_checkpointing=True"),
        (
            "\n        self,\n        width,\n        depth,  # of blocks\n    ",
            "\n        self,\n        width,\n        depth,  # of blocks\n        gradient_checkpointing=True,\n    ",
        ),
        (
            "\n        self,\n        width, depth,\n        **kwargs,\n    ",
            "\n        self,\n        width, depth,\n        gradient_checkpointing=True,\n        **kwargs,\n    ",
        ),
    ],
)
def test_parameters(tmp_path, signature, expected):
    after = with_forward(tmp_path, _LOOP, init=_INIT.replace("self, width, depth", signature))
    assert after is not None and f"def __init__({expected}):" in after


@pytest.mark.parametrize(
    ("reads", "expected"),
    [
        ("config.model.depth", 'self.gradient_checkpointing = getattr(config.model, "gradient_checkpointing", True)'),
        ("config.get('depth', 12)", 'self.gradient_checkpointing = config.get("gradient_checkpointing", True)'),
        ("config['depth']", "self.gradient_checkpointing = gradient_checkpointing"),
    ],
)
def test_configurations_of_unknown_class(tmp_path, reads, expected):
    init = _INIT.replace("self, width, depth", "self, config").replace("depth)", f"{reads})").replace("width", "64")
    after = with_forward(tmp_path, _LOOP, init=init)
    assert after is not None and expected in after


_CONFIG = """from dataclasses import dataclass


@dataclass
class Config:
    width: int
    depth: int = 12
    '''How many.'''

    def total(self):
        return self.width * self.depth
"""
_CONFIGURED = (
    _INIT.replace("self, width, depth", "self, config: Config")
    .replace("(width)", "(config.width)")
    .replace("(depth)", "(config.depth)")
)
_IMPORTS = _HEAD.replace("import torch\n", "import torch\nfrom config import Config\n", 1)


def test_a_dataclass_of_another_file(tmp_path):
    text = _IMPORTS + _CONFIGURED + _LOOP + _TRAIN
    after = fixed(tmp_path, {"model.py": text, "config.py": _CONFIG})
    assert "    '''How many.'''\n    gradient_checkpointing: bool = True\n\n" in after["config.py"]
    assert "        self.gradient_checkpointing = config.gradient_checkpointing\n" in after["model.py"]


@pytest.mark.parametrize("extra", ["\n\nclass Large(Config):\n    layers: int\n", "slots"])
def test_a_dataclass_that_may_not_grow(tmp_path, extra):
    config = _CONFIG.replace("@dataclass", "@dataclass(slots=True)") if extra == "slots" else _CONFIG + extra
    after = fixed(tmp_path, {"model.py": _IMPORTS + _CONFIGURED + _LOOP + _TRAIN, "config.py": config})
    assert after["config.py"] == config
    assert 'getattr(config, "gradient_checkpointing", True)' in after["model.py"]


@pytest.mark.parametrize("newline", ["\r\n", "\r"])
def test_line_endings_and_tabs(tmp_path, newline):
    text = (_HEAD + _INIT + _LOOP + _TRAIN).replace("    ", "\t").replace("\n", newline)
    after = fixed(tmp_path, {"model.py": text})["model.py"]
    assert after != text
    assert after.count(newline) == len(after.splitlines())
    assert (
        f"\t\t\t{_GUARD}{newline}\t\t\t\tx = checkpoint(block, x, use_reentrant=False){newline}\t\t\telse:{newline}\t\t\t\tx = block(x){newline}"
        in after
    )


def test_a_default_for_objects_that_the_constructor_does_not_make(tmp_path):
    for extra in (
        "\n\ntorch.save(model, 'model.pt')\n",
        "\n\nclass Derived(Model):\n    def __init__(self):\n        nn.Module.__init__(self)\n",
    ):
        after = with_forward(tmp_path, _LOOP, train=_TRAIN + extra)
        assert after is not None and "class Model(nn.Module):\n    gradient_checkpointing = True  #" in after


_HUB = """import torch
from transformers import AutoModelForCausalLM


def train(loader, name):
    model = AutoModelForCausalLM.from_pretrained(name%s)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x in loader:
        model(**x).loss.backward()
        optimizer.step()
"""
_ENABLED = '    model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})\n'


def test_models_of_transformers(tmp_path):
    after = fixed(tmp_path, {"train.py": _HUB % ""})["train.py"]
    assert f"from_pretrained(name)\n{_ENABLED}" in after


@pytest.mark.parametrize(
    ("files", "given"),
    [
        pytest.param({}, ", trust_remote_code=True", id="code of its own"),
        pytest.param({}, ", **options", id="unknown options"),
        pytest.param({"requirements.txt": "transformers==4.30.2\n"}, "", id="no such argument yet"),
    ],
)
def test_models_of_transformers_that_are_left_alone(tmp_path, files, given):
    text = _HUB % given
    assert fixed(tmp_path, {"train.py": text, **files})["train.py"] == text
