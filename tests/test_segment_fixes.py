"""Whether a checkpointed function takes what the other implementation would hand to it."""

from __future__ import annotations

import pytest
from astroid import nodes
from collected import for_every

from ldlm_lint.project.reentrant import as_non_reentrant
from ldlm_lint.python.signatures import accepts, target_of
from ldlm_lint.python.tree import parse
from ldlm_lint.python.walks import nodes_of
from ldlm_lint.source import Kind, Source


def last_call(text: str) -> tuple[Source, nodes.Call]:
    """The call in the last line of a program."""
    source = Source.from_bytes("/p/a.py", text.encode(), Kind.PYTHON)
    module = parse(source, "a").module
    assert module is not None
    return source, max(nodes_of(module, nodes.Call), key=lambda one: (one.lineno, -one.col_offset))


@for_every(
    "function, positional, keywords, expected",
    [
        ("def f(x, mode): ...", 1, {"mode"}, True),
        ("def f(x, mode=None): ...", 1, set(), True),
        ("def f(*inputs): ...", 1, {"mode"}, False),
        ("def f(*inputs, **options): ...", 1, {"mode"}, True),
        ("def f(x, *, mode): ...", 1, {"mode"}, True),
        ("def f(x, *, mode): ...", 1, set(), False),
        ("def f(x, *, mode=None): ...", 1, set(), True),
        ("def f(x, mode): ...", 2, {"mode"}, False),
        ("def f(x, mode): ...", 1, set(), False),
        ("def f(x, mode, /): ...", 1, {"mode"}, False),
        ("def f(x): ...", 2, set(), False),
        ("f = lambda x, mode: x", 1, {"mode"}, True),
        ("def g():\n    def inner(*inputs): ...\n    return inner\nf = g()", 1, {"mode"}, None),
        ("import anything\n@anything.wrapped\ndef f(x): ...", 1, {"mode"}, None),
        ("def override(g): return lambda *a: g(*a)\n@override\ndef f(x, mode): ...", 1, {"mode"}, None),
        ("from typing_extensions import override\n@override\ndef f(x, mode): ...", 1, {"mode"}, True),
        ("from somewhere import f", 1, {"mode"}, None),
    ],
)
def test_a_signature_says_whether_a_call_binds(function: str, positional: int, keywords: set[str], expected: bool | None) -> None:
    _, call = last_call(f"{function}\nf()\n")
    assert accepts(target_of(call.func), positional, keywords) is expected


def test_what_a_maker_returns_is_known_where_it_is_called_in_place() -> None:
    _, call = last_call("def g(layer):\n    def inner(*inputs): ...\n    return inner\n\ng(1)(2)\n")
    assert accepts(target_of(call.func), 1, {"mode"}) is False


def test_keywords_that_a_call_does_not_name_leave_it_unknown() -> None:
    _, call = last_call("def f(x): ...\nf()\n")
    assert accepts(target_of(call.func), 1, None) is None


@pytest.mark.parametrize(
    "arguments, changes", [("f, x", True), ("f, x, preserve_rng_state=False", True), ("f, x, mode=1", False), ("f, x, use_reentrant=True, mode=1", False)]
)
def test_a_call_that_raises_for_its_keywords_is_left_to_its_own_rule(arguments: str, changes: bool) -> None:
    source, call = last_call(f"from torch.utils.checkpoint import checkpoint\ncheckpoint({arguments})\n")
    assert (as_non_reentrant(source, call) is not None) == changes
