"""Texts that are put together, followed through a program: to the last character, or not at all."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from collected import for_every
from linking import Alone, program_of

from ldlm_lint.budget import deep
from ldlm_lint.concepts.texts import Texts
from ldlm_lint.program import Program
from ldlm_lint.program.handles import expression

TRAINS = "\n\ndef train(loss):\n    loss.backward()\n"

CASES: dict[str, tuple[Mapping[str, str], tuple[str, ...]]] = {
    "a constant": ({"a.py": 'text = "x:1"'}, ("x:1",)),
    "a long constant": ({"a.py": f'text = "{"x" * 200}"'}, ("x" * 200,)),
    "a formatted string": ({"a.py": 'N = 256\ntext = f"a:{N},b:{True}"'}, ("a:256,b:True",)),
    "a sum": ({"a.py": 'N = "b"\ntext = "a:" + N + ",c"'}, ("a:b,c",)),
    "percent": ({"a.py": 'text = "a:%d,%s" % (4, "b")'}, ("a:4,b",)),
    "format": ({"a.py": 'text = "a:{},{}".format(4, "b")'}, ("a:4,b",)),
    "a joined list": ({"a.py": 'parts = ["a:1"]\nparts += ["b:2"]\ntext = ",".join(parts)'}, ("a:1,b:2",)),
    "an appended list of a function": (
        {"a.py": 'N = 3\ndef parts():\n    found = ["a"]\n    found.append(f"b:{N}")\n    return ",".join(found)\ntext = parts()'},
        ("a,b:3",),
    ),
    "a mapping with a later item": ({"a.py": 'D = {"a": 1}\nD["b"] = 2\ntext = ",".join(f"{k}:{v}" for k, v in D.items())'}, ("a:1,b:2",)),
    "a mapping": ({"a.py": 'D = {"a": 1, "b": True}\ntext = ",".join(f"{k}:{v}" for k, v in D.items())'}, ("a:1,b:True",)),
    "a mapping of another file": (
        {"a.py": 'from b import D\ntext = ",".join([f"{k}:{v}" for k, v in D.items()])', "b.py": 'D = {"a": 1, "b": None}'},
        ("a:1,b:None",),
    ),
    "a parameter": ({"a.py": 'def f(n, unit="s"):\n    return f"{n}{unit}"\ntext = f(3)'}, ("3s",)),
    "a function of another file": ({"a.py": 'from b import f\ntext = "x:" + f("a", n=2)', "b.py": 'def f(s, *, n):\n    return f"{s}{n}"'}, ("x:a2",)),
    "two ways": ({"a.py": 'import sys\ntext = "a" if sys.argv else "b"'}, ("a", "b")),
}
UNKNOWN: dict[str, Mapping[str, str]] = {
    "a format of its own": {"a.py": 'N = 3\ntext = f"a:{N:03d}"'},
    "something of the environment": {"a.py": 'import os\ntext = "a" + os.environ["B"]'},
    "a list that grows under a condition": {"a.py": 'import sys\nparts = ["a"]\nif sys.argv:\n    parts.append("b")\ntext = ",".join(parts)'},
    "a list that another function changes": {"a.py": 'parts = ["a"]\ndef more():\n    parts.append("b")\nmore()\ntext = ",".join(parts)'},
    "a list that is handed on": {"a.py": 'import other\nparts = ["a"]\nother.fill(parts)\ntext = ",".join(parts)'},
    "a mapping that is filled elsewhere": {"a.py": 'from b import D\nD.update(x=1)\ntext = ",".join(D)', "b.py": 'D = {"a": 1}'},
    "an item that another file puts in": {"a.py": 'from b import D\ntext = ",".join(D)', "b.py": 'D = {"a": 1}\nD["b"] = 2'},
    "a comprehension with a condition": {"a.py": 'D = {"a": 1}\ntext = ",".join(k for k in D if k != "a")'},
    "a parameter of two callers": {"a.py": "def f(n):\n    global text\n    text = n\nf('a')\nf('b')\n"},
    "a function with two results": {"a.py": 'def f(n):\n    if n:\n        return "a"\n    return "b"\ntext = f(1)'},
    "a function that calls itself": {"a.py": 'def f(n):\n    return "a" + f(n)\ntext = f(1)'},
    "two choices that may go together": {"a.py": 'def f(n):\n    global text\n    a = "x" if n else "y"\n    text = f"{a}:{1 if n else 2}"\n'},
    "a list in itself": {"a.py": 'def f(n):\n    return [f(n)]\ntext = ",".join(f(1))'},
}


def texts_of(files: Mapping[str, str]) -> tuple[str, ...]:
    """What the name ``text`` of ``a.py`` may be."""
    program: Program = program_of({name: f"{code}{TRAINS}" for name, code in files.items()})
    module = program.modules.by_path["a.py"]
    numbers = [one for scope in module.scopes for one in scope.bindings.get("text", ())]
    code = Alone(program)
    return code[Texts].known(expression(code, module.base | numbers[-1]))


@for_every(("files", "texts"), CASES.values(), ids=CASES)
def test_a_text_is_read_as_a_whole(files: Mapping[str, str], texts: tuple[str, ...]) -> None:
    assert texts_of(files) == texts


@for_every("files", UNKNOWN.values(), ids=UNKNOWN)
def test_a_text_with_an_unknown_part_is_none(files: Mapping[str, str]) -> None:
    assert texts_of(files) == ()


@pytest.mark.parametrize("code", ["text = " + " + ".join(['"a"'] * 300), 'text = ",".join(' + " + ".join(['["a"]'] * 300) + ")"], ids=["sum", "lists"])
def test_a_text_of_hundreds_of_parts_is_given_up(code: str) -> None:
    with deep():
        assert texts_of({"a.py": code}) == ()
