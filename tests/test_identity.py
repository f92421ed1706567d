"""What a finding is known by: code without its layout, and the function or class that it stands in."""

from __future__ import annotations

import re

from collected import for_every

from ldlm_lint.identity import LONGEST, folded, shortened
from ldlm_lint.scopes import by_tokens, python_scopes, scopes, symbol_at
from ldlm_lint.source import Kind, Source


@for_every(
    "code, other",
    [
        ("f(a, b)", "f(\n    a,\n    b,\n)"),
        ("f(a, b)", "f(a,  # first\n  b)"),
        ("f('x', '')", 'f("x", "")'),
        ("x = a if b else c", "x  =  a if b \\\n  else c"),
        ("not x", "not  x"),
        ("f'''a'''", 'f"""a"""'),
        ("x[1 :]", "x[1:]"),
    ],
)
def test_layout_does_not_count_in_python(code: str, other: str) -> None:
    assert folded(code, Kind.PYTHON) == folded(other, Kind.PYTHON)


@for_every(
    "code, other",
    [
        ("f('a b')", "f('a  b')"),
        ("f('# a')", "f('# b')"),
        ("notx", "not x"),
        ("f('\"')", "f('')"),
        ("'''\n# a'''", "'''\n# b'''"),
        (r"'\'# a'", r"'\'# b'"),
        ("f(a, b)", "f(a, c)"),
    ],
)
def test_code_counts_in_python(code: str, other: str) -> None:
    assert folded(code, Kind.PYTHON) != folded(other, Kind.PYTHON)


def test_layout_in_shell() -> None:
    assert folded("torchrun \\\n  --x 1   train.py # go", Kind.SHELL) == "torchrun --x 1 train.py"
    assert folded("a\r\n", Kind.SHELL) == "a"
    for kept in ("echo 'a  b'", 'echo "a  # b"', "echo ${#a} $# a#b", "echo \\# a", "echo it\\'s '  '"):
        assert folded(kept, Kind.SHELL) == kept


def test_long_code_is_a_beginning_and_a_hash() -> None:
    code = "x" * LONGEST
    assert shortened(code) == code
    assert shortened(code + "y") != shortened(code + "z")
    assert shortened(code + "y").startswith(code + "... sha256:")


SCOPES = '''\
"""doc"""
a = 1

@wrap(
    b=2,
)
class A:
    c = 3

    async def f(self):
        def g(): return 4
        d = """
e
"""
        if d:
            class B: h = 5
    i = 6

def j(): pass
k = 7
if k:
    def m():
        n = 8
# o
p = 9
'''


def test_symbols_of_python() -> None:
    source = Source("/p/x.py", SCOPES.encode(), Kind.PYTHON)
    found = scopes(source)
    at = {word: symbol_at(found, SCOPES.index(word)) for word in ("a =", "b=", "c =", "4", "d:", "h =", "i =", "p =")}
    assert at == {
        **{"a =": "", "b=": "A", "c =": "A", "4": "A.f.g"},
        **{"d:": "A.f", "h =": "A.f.B", "i =": "A", "p =": ""},
    }
    assert symbol_at(found, SCOPES.index("\ne\n") + 1) == "A.f"
    assert [symbol_at(found, SCOPES.index(word)) for word in ("j()", "k =", "m()", "n =")] == ["j", "", "m", "m"]


def test_symbols_of_a_file_that_breaks_off() -> None:
    text = "class A:\n    def f(self):\n        x = 1\n        y = (\n"
    found = scopes(Source("/p/x.py", text.encode(), Kind.PYTHON))
    assert symbol_at(found, text.index("x =")) == "A.f"
    assert symbol_at(found, len(text)) == "A.f"


def test_symbols_of_shell() -> None:
    text = "\ufeffa=1\r\nf() {\r\n  b=2\r\n  g() { c=3; }\r\n}\r\nfunction h { d=4; }\r\ne=5\r\n"
    data = text.encode()
    found = scopes(Source("/p/x.sh", data, Kind.SHELL))
    assert [symbol_at(found, data.index(word)) for word in (b"a=", b"b=", b"c=", b"d=", b"e=")] == ["", "f", "f.g", "h", ""]


@for_every(
    "text",
    [
        "",
        "x = 1\n",
        "class A:\n    @property\n    # a comment\n    def f(self):\n        pass\n\n    # trailing\n\n\ny = 2\n",
        "def f():\n    def g(): pass\n    return g\n# the end\n",
        "if x:\n    async def f():\n        pass\nelse:\n    class B: y = '''\n    '''\n",
        "try:\n    pass\nexcept E:\n    def f(): pass\nfinally:\n    def g(): pass\nmatch x:\n    case 1:\n        def h(): pass\n",
        "def f():\r\n    pass\r\n\r\ndef g():\r    pass\r",
        "\ufeffdef ü():\n\tpass\n",
    ],
)
def test_scopes_are_the_same_by_tree_and_by_tokens(text: str) -> None:
    source = Source("/p/x.py", text.encode(), Kind.PYTHON)
    by_tree = sorted(python_scopes(source), key=repr)
    assert by_tree == sorted(by_tokens(source), key=repr)
    assert len(by_tree) == len(re.findall(r"\b(?:def|class) ", text))
