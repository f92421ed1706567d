"""Whether functions take what a call passes on to them, on small programs."""

from __future__ import annotations

from collected import for_every
from linking import Alone, program_of

from ldlm_lint.program.handles import Call


def called(text: str, **files: str) -> Call:
    """The call ``run(f, …)`` of a program."""
    code = Alone(program_of({"a.py": f"{text}\n", **{f"{name}.py": one for name, one in files.items()}}))
    (call,) = code.calls_named("run")
    return call


def takes(call: Call, keywords: set[str]) -> bool | None:
    found = {one.takes(call.positional[1:], keywords) for one in call.positional[0].signatures}
    return found.pop() if len(found) == 1 else None


@for_every(
    "function, given, keywords, expected",
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
        ("def f(x): ...", 2, set(), False),
        ("f = lambda x, mode: x", 1, {"mode"}, True),
        ("def g():\n    def inner(*inputs): ...\n    return inner\nf = g()", 1, {"mode"}, False),
        ("class C:\n    def m(self, x, mode): ...\nf = C().m", 1, {"mode"}, True),
        ("class C:\n    @staticmethod\n    def m(x, mode): ...\nf = C.m", 1, {"mode"}, True),
        ("import anything\n@anything.wrapped\ndef f(x): ...", 1, {"mode"}, None),
        ("def override(g): return lambda *a: g(*a)\n@override\ndef f(x, mode): ...", 1, {"mode"}, None),
        ("from typing_extensions import override\n@override\ndef f(x, mode): ...", 1, {"mode"}, True),
        ("from somewhere import f", 1, {"mode"}, None),
    ],
)
def test_a_signature_says_whether_a_call_binds(function: str, given: int, keywords: set[str], expected: bool | None) -> None:
    assert takes(called(f"{function}\nrun(f{', 0' * given})"), keywords) is expected


@for_every(
    "parameters, given, keywords, expected",
    [
        ("x, *, mode", 1, set(), ["mode"]),
        ("x, *, mode", 1, {"mode"}, []),
        ("x, *, mode", 1, None, []),
        ("*, x, mode=0", 2, None, ["x", "mode"]),
        ("*inputs, mode=0", 2, set(), []),
        ("x, mode", 3, set(), []),
    ],
)
def test_keyword_only_parameters_that_a_call_leaves_out_or_fills_by_position(parameters: str, given: int, keywords: set[str] | None, expected: list[str]) -> None:
    call = called(f"def f({parameters}): ...\nrun(f{', 0' * given})")
    (signature,) = call.positional[0].signatures
    assert signature.refuses(call.positional[1:], keywords) == expected


def test_a_function_of_another_file_or_one_of_several_is_known() -> None:
    assert takes(called("from b import f\nrun(f, 0)", b="def f(x, mode): ..."), {"mode"}) is True
    either = "def f(x): ...\ndef g(x, mode): ...\ndef h(x, mode, *, other): ...\n"
    assert takes(called(f"{either}run(f if flag else g, 0)"), set()) is None
    assert takes(called(f"{either}run(g if flag else h, 0)"), set()) is False
