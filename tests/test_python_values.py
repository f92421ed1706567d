"""Constants over all bindings of a name: known values, and the many ways in which a value stays unknown."""

from __future__ import annotations

import math

import pytest
from collected import for_every
from snippets import argument

from ldlm_lint.python.values import constant, evaluate, only_binding, seconds, timedelta_call


@for_every(
    "code",
    [
        pytest.param("target(n)", id="nowhere-bound"),
        pytest.param("def f(n=3): target(n)", id="parameter-default"),
        pytest.param("def f(*n): target(n)", id="arguments"),
        pytest.param("for n in range(3): target(n)", id="loop-variable"),
        pytest.param("n = 1\nfor n in x: ...\ntarget(n)", id="loop-variable-too"),
        pytest.param("n = 1\nn += 1\ntarget(n)", id="augmented"),
        pytest.param("n = 1\nn: int\ntarget(n)", id="annotation-alone"),
        pytest.param("n, m = 1, 2\ntarget(n)", id="unpacked"),
        pytest.param("with f() as n: target(n)", id="with"),
        pytest.param("if (n := 3): target(n)", id="walrus"),
        pytest.param("n = 3\ndel n\ntarget(n)", id="deleted"),
        pytest.param("import n\ntarget(n)", id="import"),
        pytest.param("n = 1\nmatch x:\n    case n: ...\ntarget(n)", id="captured"),
        pytest.param("n = 1\ntry: ...\nexcept E as n: ...\ntarget(n)", id="exception"),
        pytest.param("n = n\ntarget(n)", id="itself"),
        pytest.param("n = 3\ndef f():\n    global n\n    n = read()\ntarget(n)", id="global"),
        pytest.param(
            "def f():\n    n = 1\n    def g():\n        nonlocal n\n        n = 2\n    target(n)", id="nonlocal"
        ),
        pytest.param(
            "def f():\n    n = 1\n    def g():\n        nonlocal n\n        n = 2\n        target(n)", id="inner"
        ),
        pytest.param("C = {'n': 1}\nC['n'] = 8\ntarget(C['n'])", id="item"),
        pytest.param("class C:\n    n = 1\ntarget(C.n)", id="attribute"),
        pytest.param("n = 1 if x else y\ntarget(n)", id="one-arm-unknown"),
        pytest.param("n = 1 if x else 2\ntarget(n + 1)", id="arithmetic-over-two-values"),
        pytest.param("target(x or 3)", id="or"),
        pytest.param("target(max(1, 2))", id="max"),
        pytest.param("target(f'{1:>9}')", id="formatted-with-width"),
        pytest.param("target(f'{1.5}')", id="formatted-fraction"),
        pytest.param("target('a' + b)", id="text-and-unknown"),
        pytest.param("n = 'a'\nif x:\n    n += 'b'\ntarget(n)", id="text-that-may-grow"),
        pytest.param("n = 'a'\nfor m in x:\n    n += 'b'\ntarget(n)", id="text-that-grows-in-a-loop"),
        pytest.param("n = ['a']\nn.append(x)\ntarget(','.join(n))", id="joined-unknown"),
        pytest.param("n = ['a']\nn.sort()\ntarget(','.join(n))", id="joined-that-changes"),
        pytest.param("target('{0:>900000}'.format(1))", id="format-with-width"),
        pytest.param("target('{}'.format())", id="format-of-nothing"),
        pytest.param("target('%s %s' % 1)", id="percent-of-too-few"),
        pytest.param("target('%(n)s' % {'n': 1})", id="percent-by-name"),
        pytest.param("target('a' * 10**9)", id="long-text"),
        pytest.param("target(10**10**10)", id="power"),
        pytest.param("target(1 / 0)", id="division-by-zero"),
        pytest.param("target(1 // 0)", id="floor-division-by-zero"),
        pytest.param("target(0xF" + "F" * 2000 + " / 3)", id="too-large-for-a-float"),
        pytest.param("target(int('x'))", id="no-number"),
        pytest.param("target(int(float('inf')))", id="infinite-int"),
        pytest.param("target(-'a')", id="negated-text"),
        pytest.param("target(~1)", id="inverted"),
        pytest.param("def int(x): return 5\ntarget(int('7'))", id="own-int"),
        pytest.param("from x import int\ntarget(int('7'))", id="imported-int"),
        pytest.param("target(int('7', 8))", id="int-with-base"),
        pytest.param("target(" + "+".join(["1"] * 50) + ")", id="too-deep"),
    ],
)
def test_unknown(code: str) -> None:
    assert evaluate(argument(code)) is None
    assert constant(argument(code)) is None


@for_every(
    "code, expected",
    [
        pytest.param("target(3)", (3,), id="literal"),
        pytest.param("target(-3)", (-3,), id="negative"),
        pytest.param("target(not 0)", (True,), id="not"),
        pytest.param("target(None)", (None,), id="none"),
        pytest.param("target(2 * 3 + 1)", (7,), id="arithmetic"),
        pytest.param("target(7 // 2 - 1.5)", (1.5,), id="float"),
        pytest.param("target(1 if x else 2)", (1, 2), id="conditional"),
        pytest.param("n = 1\ntarget(n)", (1,), id="name"),
        pytest.param("n: int = 1\ntarget(n)", (1,), id="annotated"),
        pytest.param("n = m = 2\ntarget(n)", (2,), id="chained"),
        pytest.param("n = 1\nif x: n = 2\ntarget(n)", (1, 2), id="two-bindings"),
        pytest.param("target(n)\nn = 1", (1,), id="bound-below"),
        pytest.param("n = 3\ndef f():\n    global n\n    n = 4\ntarget(n)", (3, 4), id="global"),
        pytest.param("n = 9\ndef f(a):\n    if a: n = 1\n    target(n)", (1,), id="local"),
        pytest.param("n = 0\nclass C:\n    n = 5\n    def f(self): target(n)", (0,), id="class-is-no-scope"),
        pytest.param("n = 3\n[n for n in x]\ntarget(n)", (3,), id="comprehension-is-a-scope"),
        pytest.param("n = 1\nfrom x import *\ntarget(n)", (1,), id="beside-a-star"),
        pytest.param("target(int('7'))", (7,), id="int"),
        pytest.param("target(bool(0))", (False,), id="bool"),
        pytest.param("target(2 * 10000000000000000000000)", (2 * 10**22,), id="huge"),
    ],
)
def test_known(code: str, expected: tuple[object, ...]) -> None:
    values = evaluate(argument(code))
    assert values == expected
    assert [type(value) for value in values] == [type(value) for value in expected]


@pytest.mark.parametrize(
    "code, expected",
    [
        pytest.param("target(1 if x else 1)", 1, id="twice-the-same"),
        pytest.param("target(1 if x else 2)", None, id="two"),
        pytest.param("target(1 if x else True)", None, id="equal-but-not-the-same"),
        pytest.param("target(0x" + "f" * 9000 + ")", None, id="more-digits-than-python-prints"),
    ],
)
def test_the_one_constant(code: str, expected: object) -> None:
    assert constant(argument(code)) == expected
    assert type(constant(argument(code))) is type(expected)


TIMEDELTA = "from datetime import timedelta\n"


@for_every(
    "code, expected",
    [
        pytest.param(f"{TIMEDELTA}target(timedelta(1))", 86400, id="days"),
        pytest.param(f"{TIMEDELTA}target(timedelta(0, 3600))", 3600, id="positional"),
        pytest.param(f"{TIMEDELTA}target(timedelta(0, 1, 2, 3, 4))", 241.003002, id="all-positional"),
        pytest.param(f"{TIMEDELTA}target(timedelta(hours=3, minutes=1))", 10860, id="keywords"),
        pytest.param(f"{TIMEDELTA}target(timedelta(weeks=1))", 604800, id="weeks"),
        pytest.param(f"{TIMEDELTA}target(timedelta())", 0, id="empty"),
        pytest.param(f"{TIMEDELTA}n = 60 * 60\ntarget(timedelta(seconds=n * 2))", 7200, id="arithmetic"),
        pytest.param(f"{TIMEDELTA}t = timedelta(hours=3)\ntarget(t)", 10800, id="name"),
        pytest.param("import datetime as dt\ntarget(dt.timedelta(hours=3))", 10800, id="module-alias"),
        pytest.param("from datetime import timedelta as td\ntarget(td(hours=3))", 10800, id="alias"),
    ],
)
def test_length_of_a_timedelta(code: str, expected: float) -> None:
    (length,) = seconds(argument(code))
    assert math.isclose(length, expected)


@for_every(
    "code",
    [
        pytest.param("target(timedelta(hours=3))", id="nowhere-bound"),
        pytest.param("from mine import timedelta\ntarget(timedelta(hours=3))", id="another-package"),
        pytest.param("from datetime import *\ntarget(timedelta(hours=3))", id="star"),
        pytest.param(f"{TIMEDELTA}target(timedelta(hours=n))", id="unknown-amount"),
        pytest.param(f"{TIMEDELTA}target(timedelta(hours=2 if x else 3))", id="two-amounts"),
        pytest.param(f"{TIMEDELTA}target(timedelta(**units))", id="double-star"),
        pytest.param(f"{TIMEDELTA}target(timedelta(*units))", id="star-arguments"),
        pytest.param(f"{TIMEDELTA}target(timedelta(hours='3'))", id="text"),
        pytest.param(f"{TIMEDELTA}target(timedelta(True))", id="bool"),
        pytest.param(f"{TIMEDELTA}target(timedelta(years=3))", id="no-such-unit"),
        pytest.param(f"{TIMEDELTA}target(timedelta(hours=1) * 3)", id="multiplied"),
        pytest.param(f"{TIMEDELTA}target(timedelta(hours=1e308 * 10))", id="infinite"),
        pytest.param(f"{TIMEDELTA}target(timedelta(hours=1e308 * 10 * 0))", id="not-a-number"),
        pytest.param(f"{TIMEDELTA}target(timedelta(days=1{'0' * 400}))", id="too-large-for-a-float"),
        pytest.param(f"{TIMEDELTA}t = timedelta(1)\nt = timedelta(2)\ntarget(t)", id="two-bindings"),
        pytest.param(f"{TIMEDELTA}def f(t=timedelta(1)): target(t)", id="parameter-default"),
        pytest.param(f"{TIMEDELTA}t = timedelta(t)\ntarget(t)", id="circle"),
        pytest.param("t = u\nu = t\ntarget(t)", id="two-names-in-a-circle"),
        pytest.param("target(7200)", id="number"),
    ],
)
def test_length_that_is_not_known(code: str) -> None:
    assert seconds(argument(code)) is None


def test_place_of_a_timedelta_is_its_call() -> None:
    found = timedelta_call(argument(f"{TIMEDELTA}t = timedelta(hours=3)\ntarget(t)"))
    assert found is not None
    assert found.lineno == 2
    assert timedelta_call(argument("target(t)")) is None


def test_only_binding() -> None:
    bound = only_binding(argument("n = f()\ntarget(n)"))
    assert bound is not None
    assert bound.as_string() == "f()"
    assert only_binding(argument("n = f()\nn = g()\ntarget(n)")) is None
    assert only_binding(argument("target(n)")) is None


@pytest.mark.parametrize("indent", ["", "    "])
def test_a_variable_that_is_deleted_for_its_memory_is_still_what_it_was(indent: str) -> None:
    head = "def run():\n" if indent else ""
    bound = only_binding(argument(f"{head}{indent}n = f()\n{indent}target(n)\n{indent}del n"))
    assert bound is not None and bound.as_string() == "f()"


@for_every(
    ("code", "texts"),
    [
        pytest.param("target('a' + 'b')", {"ab"}, id="added"),
        pytest.param("n = 3\ntarget(f'a{n}')", {"a3"}, id="formatted"),
        pytest.param("n = 'a' if x else 'b'\ntarget(f'{n},c')", {"a,c", "b,c"}, id="one-of-two"),
        pytest.param("n = ['a', 'b']\ntarget(','.join(n))", {"a,b"}, id="joined"),
        pytest.param("n = ['a']\nn.append('b')\nn.extend(['c'])\ntarget(','.join(n))", {"a,b,c"}, id="collected"),
        pytest.param("target('{},{n}'.format('a', n='b'))", {"a,b"}, id="format"),
        pytest.param("target('{1}{0}'.format('a', 'b'))", {"ba"}, id="format-by-number"),
        pytest.param("target('100%% %s' % 'a')", {"100% a"}, id="percent"),
        pytest.param("n = 'a'\nn += ','\nn += 'b'\ntarget(n)", {"a,b"}, id="in-steps"),
    ],
)
def test_texts_that_are_put_together(code: str, texts: set[str]) -> None:
    assert set(evaluate(argument(code)) or ()) == texts
