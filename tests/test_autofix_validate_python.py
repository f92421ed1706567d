"""What a fix of a Python file may do to the tree around its edits: nothing; each case is edits by their texts."""

from __future__ import annotations

from collected import for_every

from ldlm_lint.autofix.validate_python import validate_python
from ldlm_lint.files.edited import apply_edits
from ldlm_lint.model import Edit, Span
from ldlm_lint.source import Kind, Source

Change = tuple[str, str]
LOOP = "for a in b:\n    f(a)\n    g(a)\nh()\n"


def judge(code: str, *changes: Change) -> str | None:
    """The verdict on replacing texts, each the only one of its kind in ``code``; ``|`` marks where text is inserted."""
    data = code.replace("|", "").encode()
    edits = []
    for old, new in changes:
        place = code.index(old)
        start = len(code[:place].replace("|", "").encode())
        edits.append(Edit(Span("/a.py", start, start + len(old.replace("|", "").encode())), new))
    encoding = Source.from_bytes("/a.py", data, Kind.PYTHON).encoding
    return validate_python(data, apply_edits(data, edits, encoding), edits)


@for_every(
    ("code", "changes"),
    [
        # Arguments, values, names.
        ("f(a, b|)\n", [("|", ", c=1")]),
        ("f(a, b=1)\n", [(", b=1", "")]),
        ("f(b=1)\n", [("b=1", "")]),
        ("f(|)\n", [("|", "c=1")]),
        ("f(x for x in y)\n", [("x for x in y", "(x for x in y), c=1")]),
        ("f(a, b=1)\n", [("1", "1 if a else None")]),
        ("a.b(c)\n", [("a.b", "a.d")]),
        ("a.b(c)\n", [("a.b(", "a.d(a, ")]),
        ("a.b(|c)\n", [("|", "a("), (")", "))")]),
        ("x = [a|]\n", [("|", ", a")]),
        ("x = 8|\n", [("|", "0")]),
        ("x = f(a)|\n", [("|", ".float()")]),
        ("x = a + b\n", [("a + b", "a - b")]),
        ("c = |a + b\n", [("|", "("), ("\n", ") / c\n")]),
        ("if a and b|:\n    f()\n", [("|", " and a")]),
        ("@f\ndef g(): ...\n", [("f", "f.k")]),
        ("def g():\n    return a\n", [("a\n", "a.b\n")]),
        # Statements and blocks.
        (LOOP, [("    g(a)\n", "")]),
        (LOOP, [("    g(a)\n", "    if a:\n        g(a)\n")]),
        (LOOP, [("for a in b:\n    f(a)\n    g(a)\n", "for a in b:\n    with a:\n        f(a)\n    g(a)\n")]),
        ("if a:\n|    f('x')\n|    g()\n", [("|    f", "    with a:\n        f"), ("|    g", "        g")]),
        ("with a:\n    f(a)\n    g(a)\n", [("with a:\n", ""), ("    f", "f"), ("    g", "g")]),
        ("with a:\n    f(a)\n", [("with a:\n    f(a)\n", "f(a)\n")]),
        ("for a in b:\n    f()\n", [("b:", "list(b):")]),
        ("x = 1\n|def f(): ...\n", [("|", "@staticmethod\n")]),
        ("class A:\n    def f(self): ...\n", [("    def", "    @property\n    def")]),
        ("try:\n    f()\nexcept E:\n    g()\n", [("g()", "raise")]),
        ("match a:\n    case 1:\n        f()\n    case _:\n        g()\n", [("f()", "g()")]),
        ("async def f():\n    await g()\n", [("g()", "g(f)")]),
        # Strings change where an edit says so, not where lines are indented.
        ("x = 'a b'\n", [("a b", "c")]),
        ("if a:\n    f('''x\ny''')\n", [("    f", "    with a:\n        f")]),
        ("x = f'{a}' 'b'\n", [("'b'", "'c'")]),
        # Imports.
        ("import a\nx = 1\n", [("import a\n", "import a\nfrom a import b\n")]),
        ("from a import b\nb()\n", [("from a import b", "from c import b")]),
        ("from a import b\nfrom a import c\n", [("a import c", "b import c")]),
        ("from a import *\nx = 1\n", [("1", "unknown")]),
        ("import os\nx = 1\n", [("1", "os.getpid()")]),
        # Line endings, encodings, tabs.
        ("\ufeffx = 1\r\ny = f(a)\r\n", [("f(a)", "f(a, b=x)")]),
        ("# coding: latin-1\nx = 3\n", [("3", "2")]),
        ("if a:\n\tf()\n\tg()\n", [("\tg", "\tif a:\n\t\tg")]),
        ("x = 1; y = 2\n", [("2", "3")]),
        ("'\u00e4'; f(a)\n", [("a)", "a, b=1)")]),
    ],
)
def test_what_is_meant_is_accepted(code: str, changes: list[Change]) -> None:
    assert judge(code, *changes) is None


@for_every(
    ("code", "changes", "words"),
    [
        # An operand is taken from its operator.
        ("x = |a * b\n", [("|a", "c + a")], "parsed differently"),
        ("x = a * b\n", [("a", "a + c")], "parsed differently"),
        ("x = a + b|\n", [("|", " * c")], "would change"),
        ("x = not a\n", [("a", "a or c")], "parsed differently"),
        ("x = a < b\n", [("a", "a < c")], "parsed differently"),
        ("x = a.b\n", [("a", "a + c")], "parsed differently"),
        ("x = a[0]\n", [("a", "-a")], "parsed differently"),
        ("x = a if b else c\n", [("c", "c, d")], "parsed differently"),
        ("x = -a ** 2\n", [("a", "a * a")], "parsed differently"),
        ("async def f():\n    return await g()\n", [("g()", "g() or f")], "parsed differently"),
        # Code disappears, or becomes a string or a comment.
        ("x = 1; y = 2\n", [("1", "1  #")], "parsed differently"),
        ("f(a); g(b)\n", [(";", ";  #")], "g(b)"),
        ("f(a)\\\n.b(c)\nx = 1\n", [("a)", "a)\n#")], ""),
        # Statements change blocks.
        (LOOP, [("    g", "g")], "leave its block"),
        ("for a in b:\n    f(a)\n|h()\n", [("|", "    ")], "another block"),
        ("if a:\n    f()\nelse:\n    g()\nh()\n", [("else:\n    g()\nh", "    h")], "another block"),
        ("if a:\n    f()\n|    h()\n", [("|", "else:\n")], "another branch"),
        ("try:\n    f()\nfinally:\n    g()\n    h()\n", [("    g", "    pass\nelse:\n    g")], ""),
        ("for a in b:\n    if a:\n        f()\n|    g()\n", [("|", "    ")], "another block"),
        ("def f():\n    a()\n    b()\n", [("    a()\n", "    a()\nif a:\n")], "leave its block"),
        # A string of several lines is indented along.
        (
            "if a:\n    f('''x\n    y''')\n",
            [("    f", "        f"), ("    y", "        y"), ("if a:\n", "if a:\n    if a:\n")],
            "f('''x",
        ),
        ("f('''x\n|y''')\n", [("|", "  ")], "f('''x"),
        ("if a:\n    f('''x\ny''')\n", [("    f('''x\ny''')\n", "    with a:\n        f('''x\n    y''')\n")], "f('''x"),
        # Names.
        ("|b = 1\n", [("|", "from a import b\n")], "hide another `b`"),
        ("import b\n|x = 1\n", [("|", "from a import b\n")], "hide another `b`"),
        ("import b.c\n|x = 1\n", [("|", "import a as b\n")], "hide another `b`"),
        ("def f(): ...\n|x = 1\n", [("|", "def f(): return 2\n")], "hide another `f`"),
        ("x = 1\n", [("1", "torch.rand(2)")], "defines `torch`"),
        ("def f(a):\n    return a\n", [("return a", "return a, nullcontext()")], "defines `nullcontext`"),
        # Encodings.
        ("# coding: latin-1\nx = 1\n", [("latin-1", "utf-8")], "encoding"),
    ],
)
def test_what_nobody_means_is_refused(code: str, changes: list[Change], words: str) -> None:
    reason = judge(code, *changes)
    assert reason is not None
    assert words in reason


def test_without_the_edits_only_the_file_is_judged() -> None:
    assert validate_python(b"x = 1\n", b"y = x\n") is None
    assert validate_python(b"def f(:\n", b"def g(:\n", [Edit(Span("/a.py", 4, 5), "g")]) is None


def test_an_expression_that_is_nested_too_deeply_is_left_alone() -> None:
    code = "x = " + "+".join(["a"] * 900) + "\ny = 1\n"
    assert judge(code, ("y", "z")) in (None, "its expressions are nested too deeply to be compared")
