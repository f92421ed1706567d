"""Which containers of blocks a model runs side by side."""

from __future__ import annotations

import astroid
from astroid import nodes
from collected import for_every

from ldlm_lint.python.parallel_blocks import run_side_by_side

MODEL = """
class Model(Module):
    def __init__(self, count):
        self.blocks = ModuleList([Block() for _ in range(count)])

    def forward(self, x, inputs):
        {}
"""


@for_every(
    ("body", "expected"),
    [
        ("return cat([block(x) for block in self.blocks])", True),
        ("return sum(block(x) for block in self.blocks)", True),
        ("return {kind: self.blocks[kind](x) for kind, x in inputs.items()}", True),
        ("return {kind: block(x) for kind, block in self.blocks.items()}", True),
        ("found = []\n        for block, part in zip(self.blocks, inputs):\n            found.append(block(part))", True),
        ("return [x := block(x) for block in self.blocks]", False),
        ("for block in self.blocks:\n            x = block(x)", False),
        ("for block in self.blocks:\n            x = block(x)\n        return [block(x) for block in self.blocks]", False),
        ("for block in self.blocks:\n            inputs.append(block(x))\n            x = inputs[-1]", False),
        ("for number in range(len(self.blocks)):\n            x = self.blocks[number](x)", False),
        ("return run(self.blocks, x)", False),
        ("for block in self.blocks:\n            block.reset()", False),
        ("return [block.width for block in self.blocks]", False),
        ("return x", False),
    ],
)
def test_calls_of_blocks(body: str, expected: bool) -> None:
    module = astroid.parse(MODEL.format(body))
    model = module.body[0]
    container = next(one for one in module.nodes_of_class(nodes.Call) if one.func.as_string() == "ModuleList")
    assert run_side_by_side(model, container) is expected


def test_a_container_that_no_attribute_holds() -> None:
    module = astroid.parse("class Model(Module):\n    def build(self):\n        return ModuleList([Block() for _ in x])\n")
    container = next(one for one in module.nodes_of_class(nodes.Call) if one.func.as_string() == "ModuleList")
    assert run_side_by_side(module.body[0], container) is False
