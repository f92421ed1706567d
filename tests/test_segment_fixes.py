"""Which reentrant checkpoints the fix of another rule changes."""

from __future__ import annotations

import pytest
from astroid import nodes

from ldlm_lint.project.reentrant import as_non_reentrant
from ldlm_lint.python.tree import parse
from ldlm_lint.python.walks import nodes_of
from ldlm_lint.source import Kind, Source


@pytest.mark.parametrize(
    "arguments, changes", [("f, x", True), ("f, x, preserve_rng_state=False", True), ("f, x, mode=1", False), ("f, x, use_reentrant=True, mode=1", False)]
)
def test_a_call_that_raises_for_its_keywords_is_left_to_its_own_rule(arguments: str, changes: bool) -> None:
    text = f"from torch.utils.checkpoint import checkpoint\ncheckpoint({arguments})\n"
    source = Source.from_bytes("/p/a.py", text.encode(), Kind.PYTHON)
    module = parse(source, "a").module
    assert module is not None
    (call,) = nodes_of(module, nodes.Call)
    assert (as_non_reentrant(source, call) is not None) == changes
