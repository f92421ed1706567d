"""Adding a keyword to a call: the layouts one by one, then any generated call by its syntax tree."""

from __future__ import annotations

import ast
import io
import sys
import tokenize

import pytest
from collected import for_every
from hypothesis import given, settings
from hypothesis import strategies as st

from ldlm_lint.edits.keywords import add_keyword
from ldlm_lint.files.edited import apply_edits
from ldlm_lint.model import Edit, Span
from ldlm_lint.source import Kind, Source


def calls(tree: ast.AST) -> list[ast.Call]:
    return [node for node in ast.walk(tree) if isinstance(node, ast.Call)]


def span_of(source: Source, call: ast.Call) -> Span:
    return source.span_of(call.lineno, call.col_offset, call.end_lineno, call.end_col_offset)


def add(code: str | bytes, name: str = "fused", value: str = "True") -> str:
    """The code after the keyword was added to its first call."""
    data = code if isinstance(code, bytes) else code.encode()
    source = Source.from_bytes("/t.py", data, Kind.PYTHON)
    edit = add_keyword(source, span_of(source, calls(ast.parse(source.text))[0]), name, value)
    assert edit is not None
    return apply_edits(data, [edit], source.encoding).decode(source.encoding)


@for_every(
    ("before", "after"),
    [
        ("f()", "f(fused=True)"),
        ("f( )", "f(fused=True )"),
        ("f(\n)", "f(fused=True\n)"),
        ("f(  # why\n)", "f(  # why\n    fused=True,\n)"),
        ("x = f(\n    # why\n    )", "x = f(\n    # why\n        fused=True,\n    )"),
        ("f(a)", "f(a, fused=True)"),
        ("f(a,)", "f(a, fused=True,)"),
        ("f(a, **kw)", "f(a, **kw, fused=True)"),
        ("f(*a)", "f(*a, fused=True)"),
        ("f(a)(b)", "f(a)(b, fused=True)"),
        ("f('),(', \"#\")", "f('),(', \"#\", fused=True)"),
        ("f(')')", "f(')', fused=True)"),
        ("f(a[1, 2], {3: (4)})", "f(a[1, 2], {3: (4)}, fused=True)"),
        ("f(p for p in q)", "f((p for p in q), fused=True)"),
        ("f(p for p in q if g(x for x in p))", "f((p for p in q if g(x for x in p)), fused=True)"),
        ("f([p for p in q])", "f([p for p in q], fused=True)"),
        ('f("""a\n  b""")', 'f("""a\n  b""", fused=True)'),
        ("f(a\n  )", "f(a, fused=True\n  )"),
        ("f(\n    a\n)", "f(\n    a,\n    fused=True\n)"),
        ("f(\n    a,\n)", "f(\n    a,\n    fused=True,\n)"),
        ("f(\n    a)", "f(\n    a,\n    fused=True)"),
        ("f(a,\n  b)", "f(a,\n  b,\n  fused=True)"),
        ("f(\n    a, b\n)", "f(\n    a, b, fused=True\n)"),
        ("f(\n\ta,\n)", "f(\n\ta,\n\tfused=True,\n)"),
        ("f(\n    a,  # one\n    b,  # two\n)", "f(\n    a,  # one\n    b,  # two\n    fused=True,\n)"),
        ("f(\n    a,  # one\n    b  # two\n)", "f(\n    a,  # one\n    b,  # two\n    fused=True\n)"),
        ("f(\n    a,\n    # b,\n)", "f(\n    a,\n    fused=True,\n    # b,\n)"),
        ("f(\n    a\n    # b\n)", "f(\n    a,\n    fused=True\n    # b\n)"),
        ("f(\n    a\n    ,  # odd\n)", "f(\n    a\n    ,  # odd\n    fused=True,\n)"),
        ("f(a, b  # why\n  )", "f(a, b, fused=True  # why\n  )"),
        ("f(\n    a=g(\n        1,\n    ),\n)", "f(\n    a=g(\n        1,\n    ),\n    fused=True,\n)"),
        ("f(a, g(\n    1,\n))", "f(a, g(\n    1,\n), fused=True)"),
        ("(f\n  .g\n .h(a))", "(f\n  .g\n .h(a, fused=True))"),
        ("f(\r\n    a,\r\n)\r\n", "f(\r\n    a,\r\n    fused=True,\r\n)\r\n"),
        ("x = 'ä', f('ü', b)", "x = 'ä', f('ü', b, fused=True)"),
        ("f(lambda fused: 1)", "f(lambda fused: 1, fused=True)"),
        ("f(a if b else c, not d)", "f(a if b else c, not d, fused=True)"),
    ],
)
def test_layouts(before: str, after: str) -> None:
    assert add(before) == after


def test_a_long_line_is_continued_where_the_arguments_begin() -> None:
    long = ", ".join(f"argument_{number}=1" for number in range(7))
    assert add(f"f(\n    {long}\n)") == f"f(\n    {long},\n    fused=True\n)"
    assert add(f"f({long})") == f"f({long},\n  fused=True)"
    assert add(f"f({long[:80]}=1)") == f"f({long[:80]}=1, fused=True)"
    far = f"name_{'x' * 60} = f({long})"
    assert add(f"name_{'x' * 90} = f({long})").endswith(", fused=True)")
    assert add(far).endswith(f",\n{' ' * (far.index('(') + 1)}fused=True)")


def test_bom_and_other_encodings_keep_their_bytes() -> None:
    assert add(b"\xef\xbb\xbff('\xc3\xa4')") == "\ufefff('ä', fused=True)"
    assert add(b"# coding: latin-1\nf('\xe4\xe4', b)") == "# coding: latin-1\nf('ää', b, fused=True)"


def test_a_keyword_that_is_there_or_a_span_that_is_no_call_gives_nothing() -> None:
    data = b"f(a, fused = g()); h(b); g(fused)"
    source = Source.from_bytes("/t.py", data, Kind.PYTHON)
    assert add_keyword(source, source.span(0, 17), "fused", "True") is None
    assert add_keyword(source, source.span(0, 15), "fused", "True") is None
    assert add_keyword(source, source.span(0, 1), "fused", "True") is None
    assert add_keyword(source, source.span(26, 34), "fused", "True") is None
    assert add_keyword(source, source.span(25, 33), "fused", "True") == Edit(source.span(32, 32), ", fused=True")


@pytest.mark.skipif(sys.version_info < (3, 12), reason="PEP 701 nests quotes in f-strings from 3.12 on")
def test_nested_quotes_in_f_strings() -> None:
    assert add('f(f"{a["),"]} for, (", b)') == 'f(f"{a["),"]} for, (", b, fused=True)'


values = st.sampled_from(
    [
        "a",
        "1",
        "'),('",
        '"# x"',
        "f'{a:>{b}} for ({c})'",
        "g(1, k=2)",
        "[x for x in y]",
        "{1: (2,)}",
        "'''t\n q'''",
        "lambda: 0",
        "lambda a, b=1: (a, b)",
        "a if b else c",
        "x[1:2, ...]",
        "'ä€'",
        "not a",
        "g(\n  h()\n)",
        "`w`",
    ]
)
gaps = st.sampled_from(["", " ", "\n", "\n        ", "\n\n  ", "  # it's (, odd\n    ", "\n    # for x in )\n    "])


@st.composite
def arguments(draw: st.DrawFn) -> str:
    """What stands between the parentheses of a call, in any layout."""
    if draw(st.integers(0, 9)) == 0:
        return draw(gaps) + "x for x in y" + draw(st.sampled_from(["", " if x", " for z in (x,)"])) + draw(gaps)
    items = [draw(values).replace("`w`", "(w := 1)") for _ in range(draw(st.integers(0, 3)))]
    items += [draw(st.sampled_from(["*a", "*[1, 2]"]))] if draw(st.booleans()) else []
    items += [f"{name}={draw(values).replace('`w`', '2')}" for name in "kl"[: draw(st.integers(0, 2))]]
    items += ["**kw"] if draw(st.booleans()) else []
    pieces = [draw(gaps) + item + draw(gaps) for item in items]
    text = ",".join(pieces) if pieces else draw(gaps)
    return text + draw(st.sampled_from(["", "", ",", " ,  # last\n  ", ",\n"]) if items else st.just(""))


contexts = st.sampled_from(
    ["{}", "x = {}\n", "# ä\nif a:\n    x = [1, {}]  # €\n", "y = ('ü', {}, 2)", "(a\n    .b({}))\n", "({}\n .b)"]
)
callees = st.sampled_from(["f", "torch.optim.AdamW", "f(1)", "(a\n  .b)", "'('.join", "d[')']"])


def comments(code: str) -> list[str]:
    tokens = tokenize.generate_tokens(io.StringIO(code).readline)
    return [token.string for token in tokens if token.type == tokenize.COMMENT]


@settings(max_examples=300, deadline=None)
@given(contexts, callees, arguments(), st.sampled_from(["\n", "\r\n"]))
def test_only_the_keyword_is_added(context: str, callee: str, inside: str, newline: str) -> None:
    code = context.replace("{}", f"{callee}({inside})")
    old = ast.parse(code)
    target = next(c for c in calls(old) if ast.get_source_segment(code, c) == f"{callee}({inside})")
    data = code.replace("\n", newline).encode()
    source = Source.from_bytes("/t.py", data, Kind.PYTHON)
    edit = add_keyword(source, span_of(source, target), "new", "g(0)")
    assert edit is not None
    new = apply_edits(data, [edit]).decode()
    target.keywords.append(ast.keyword("new", ast.parse("g(0)", mode="eval").body))
    assert ast.dump(ast.parse(new)) == ast.dump(old)
    assert new.count("\r\n") == (new.count("\n") if newline == "\r\n" else 0)
    assert comments(new.replace("\r\n", "\n")) == comments(code)
    again = Source.from_bytes("/t.py", new.encode(), Kind.PYTHON)
    found = next(c for c in calls(ast.parse(again.text)) if ast.dump(c) == ast.dump(target))
    assert add_keyword(again, span_of(again, found), "new", "1") is None
