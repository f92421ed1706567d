"""Cutting the text of a call out of a file."""

from __future__ import annotations

import pytest

from ldlm_lint.project.text import call_text


@pytest.mark.parametrize(
    "data, position, text",
    [
        pytest.param(b"x = f(1)\n", "1:4", b"f(1)", id="one-line"),
        pytest.param(b"a\n  f(g(1),\n    [2])\nb()", "2:2", b"f(g(1),\n    [2])", id="many-lines"),
        pytest.param(b"f(1).g(2)\n", "1:0", b"f(1).g(2)", id="the-last-of-a-chain"),
        pytest.param(b"f(1", "1:0", b"f(1", id="never-closed"),
    ],
)
def test_call_text(data: bytes, position: str, text: bytes) -> None:
    assert call_text(data, position) == text
