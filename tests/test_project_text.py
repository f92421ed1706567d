"""Cutting the text of a call or a class out of a file."""

from __future__ import annotations

import pytest

from ldlm_lint.project.text import call_text, class_text


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


@pytest.mark.parametrize(
    "data, text",
    [
        pytest.param(b"class A(B):\n    x = 1\n\n    y = 2\nz = 3\n", b"class A(B):\n    x = 1\n\n    y = 2\n", id="followed"),
        pytest.param(b"class A(\n    B,\n):\n    x = 1\n", b"class A(\n    B,\n):\n    x = 1\n", id="last-of-its-file"),
        pytest.param(b"class AB:\n    x = 1\n", b"", id="another-name"),
        pytest.param(b"def A():\n    x = 1\n", b"", id="no-class"),
    ],
)
def test_class_text(data: bytes, text: bytes) -> None:
    assert class_text(data, "A") == text
