"""Rounds of fixes in memory: fixed point, validation, roll-back, several files, and order of findings."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping

import pytest
from collected import for_every
from hypothesis import given, settings
from hypothesis import strategies as st

from ldlm_lint.autofix.apply import FixResult, fix_files
from ldlm_lint.autofix.validate_python import validate_python
from ldlm_lint.autofix.validate_shell import validate_shell
from ldlm_lint.model import Applicability, Edit, Finding, Fix, Span
from ldlm_lint.source import Kind

Contents = Mapping[str, bytes]
SAFE, UNSAFE = Applicability.SAFE, Applicability.UNSAFE


def rewriter(files: Contents, *rules: tuple[str, str, str]) -> Callable[[Contents], Iterator[Finding]]:
    """A linter of regular expressions: (rule, pattern, replacement), each match one finding with a safe fix."""

    def report(overlay: Contents) -> Iterator[Finding]:
        for path, data in {**files, **overlay}.items():
            for rule, pattern, replacement in rules:
                for match in re.finditer(pattern.encode(), data):
                    new = match.expand(replacement.encode("latin-1")).decode("latin-1")
                    span = Span(path, *match.span())
                    yield Finding(rule, "W1", span, fix=Fix(f"apply {rule}", (Edit(span, new),), SAFE))

    return report


def run(files: Contents, *rules: tuple[str, str, str], limit: Applicability = SAFE) -> FixResult:
    return fix_files(rewriter(files, *rules), files, limit)


def test_nested_fixes_reach_the_fixed_point_and_stay_there() -> None:
    files = {"/a.py": b"f(f(f(1)))\n", "/b.py": b"x = 1\n"}
    rule = ("inner", r"f\(([^f()]*)\)", r"+\1")
    result = run(files, rule)
    assert result.changed == {"/a.py": b"+++1\n"}
    assert (result.applied, result.rounds, result.converged) == ({"inner": 3}, 3, True)
    assert run({**files, **result.changed}, rule) == FixResult({})


def test_only_fixes_of_the_limit_are_applied() -> None:
    files = {"/a.py": b"x = 1\n"}
    edit = Edit(Span("/a.py", 4, 5), "2")

    def report(overlay: Contents) -> list[Finding]:
        fix = Fix("t", (edit,), UNSAFE, "why")
        return [] if overlay else [Finding("r", "W1", edit.span, fix=fix), Finding("s", "W2", edit.span)]

    assert fix_files(report, files, SAFE) == FixResult({})
    assert fix_files(report, files, UNSAFE).changed == {"/a.py": b"x = 2\n"}


def test_findings_that_carry_one_fix_count_each() -> None:
    files = {"/a.py": b"x = 1\n"}
    fix = Fix("t", (Edit(Span("/a.py", 4, 5), "2"),), SAFE)

    def report(overlay: Contents) -> list[Finding]:
        spans = [Span("/a.py", 0, 1), Span("/a.py", 4, 5)]
        return [] if overlay else [Finding(rule, "W1", span, fix=fix) for rule in "rs" for span in spans]

    assert fix_files(report, files, SAFE).applied == {"r": 2, "s": 2}


def test_a_round_that_breaks_a_file_is_taken_back_and_the_rule_named() -> None:
    files = {"/a.py": b"a = 1\nb = 2\nc = 3\n", "/b.py": b"a = 4\n"}
    result = run(files, ("good", r"a = (\d)", r"A = \1"), ("bad", r"b = 2", r"b = = 2"), ("fine", "c", "C"))
    assert result.changed == {"/a.py": b"A = 1\nb = 2\nC = 3\n", "/b.py": b"A = 4\n"}
    assert result.applied == {"good": 2, "fine": 1}
    (rejection,) = result.rejected
    assert (rejection.rules, rejection.path, rejection.title) == (("bad",), "/a.py", "apply bad")
    assert "line 2" in rejection.reason
    assert result.converged


def test_a_guilty_fix_that_moves_is_not_tried_again() -> None:
    files = {"/a.py": b"f(f(1))\nb = 2\n"}
    result = run(files, ("inner", r"f\(([^f()]*)\)", r"+\1"), ("bad", r"b = 2", r"b = = 2"))
    assert result.changed == {"/a.py": b"++1\nb = 2\n"}
    assert len(result.rejected) == 1


def test_a_rejected_fix_does_not_keep_a_good_one_out() -> None:
    result = run({"/a.py": b"b = 2\n"}, ("bad", r"b = 2", r"b = = 2"), ("good", r"2", r"3"))
    assert result.changed == {"/a.py": b"b = 3\n"}
    assert [rejection.rules for rejection in result.rejected] == [("bad",)]


def test_two_fixes_that_only_together_break_a_file() -> None:
    result = run({"/a.py": b"f(p=1, q=1)\n"}, ("one", r"p(?=.*q)", r"x"), ("two", r"q", r"x"))
    assert result.changed == {"/a.py": b"f(x=1, q=1)\n"}
    assert [rejection.rules for rejection in result.rejected] == [("two",)]
    assert "repeated" in result.rejected[0].reason


def two_files(second: str) -> Callable[[Contents], list[Finding]]:
    edits = (Edit(Span("/a.py", 0, 1), "A"), Edit(Span("/b.py", 0, 1), second))
    other = Edit(Span("/b.py", 4, 5), "9")

    def report(overlay: Contents) -> list[Finding]:
        pending = [Finding("pair", "W1", edits[0].span, fix=Fix("both", edits, SAFE))]
        single = [Finding("single", "W2", other.span, fix=Fix("one", (other,), SAFE))]
        return pending * ("/a.py" not in overlay) + single * (b"9" not in overlay.get("/b.py", b""))

    return report


def test_a_fix_over_two_files_is_applied_to_both() -> None:
    files = {"/a.py": b"a = 1\n", "/b.py": b"b = 1\n"}
    assert fix_files(two_files("B"), files, SAFE).changed == {"/a.py": b"A = 1\n", "/b.py": b"B = 9\n"}


def test_a_fix_over_two_files_is_applied_to_none_if_it_breaks_one() -> None:
    files = {"/a.py": b"a = 1\n", "/b.py": b"b = 1\n"}
    result = fix_files(two_files("("), files, SAFE)
    assert result.changed == {"/b.py": b"b = 9\n"}
    assert [(rejection.rules, rejection.path) for rejection in result.rejected] == [(("pair",), "/b.py")]


@pytest.mark.parametrize(
    ("fix", "reason"),
    [
        (Fix("t", (Edit(Span("/c.py", 0, 0), "x"),), SAFE), "not among the files"),
        (Fix("t", (Edit(Span("/a.py", 0, 3), "x"), Edit(Span("/a.py", 2, 4), "y")), SAFE), "overlap"),
        (Fix("t", (Edit(Span("/a.py", 0, 99), "x"),), SAFE), "does not fit"),
        (Fix("t", (Edit(Span("/a.py", 20, 20), "\u20ac"),), SAFE), "latin-1"),
    ],
)
def test_a_fix_that_cannot_be_applied_is_named(fix: Fix, reason: str) -> None:
    files = {"/a.py": b"# coding: latin-1\nx = '\xe4'\n"}
    result = fix_files(lambda _: [Finding("r", "W1", Span("/a.py", 0, 1), fix=fix)], files, SAFE)
    assert result.changed == {}
    assert [rejection.rules for rejection in result.rejected] == [("r",)]
    assert reason in result.rejected[0].reason.replace("iso-8859-1", "latin-1")


def test_text_is_written_in_the_encoding_of_the_file() -> None:
    result = run({"/a.py": b"# coding: latin-1\nx = '\xe4'\n"}, ("r", "x", "\u00f6"))
    assert result.changed == {"/a.py": b"# coding: latin-1\n\xf6 = '\xe4'\n"}


def test_rules_that_undo_each_other_end_and_are_named() -> None:
    result = run({"/a.py": b"x = 1\n"}, ("there", "1", "2"), ("back", "2", "1"))
    assert (result.rounds, result.converged, result.unsettled) == (20, False, ("there",))
    assert result.changed == {}


def test_a_fix_that_changes_nothing_ends_the_rounds() -> None:
    assert run({"/a.py": b"x = 1\n"}, ("same", "1", "1")) == FixResult({})


def test_a_file_that_was_broken_before_can_still_be_fixed() -> None:
    assert run({"/a.py": b"def f(:\nx = 1\n"}, ("r", "1", "2")).changed == {"/a.py": b"def f(:\nx = 2\n"}


def test_a_script_is_judged_by_its_own_validator() -> None:
    files = {"/run.sh": b"if true; then\n  export A=1\nfi\nexport B=2\n"}
    result = run(files, ("empty", r"  export A=1\n", ""), ("other", r"export B=2\n", ""))
    assert result.changed == {"/run.sh": b"if true; then\n  export A=1\nfi\n"}
    assert [rejection.rules for rejection in result.rejected] == [("empty",)]
    strict = {Kind.SHELL: lambda before, after, edits: "no"}
    assert fix_files(rewriter(files, ("r", "B", "C")), files, SAFE, validators=strict).changed == {}


@settings(max_examples=60, deadline=None)
@given(st.text("ab1(,", min_size=1, max_size=12), st.randoms(use_true_random=False))
def test_the_result_does_not_depend_on_the_order_of_findings(text: str, random: object) -> None:
    files = {"/a.py": f"x = [{text!r}, a, b, b(a), 1]\n".encode(), "/b.sh": b"a b (ab)\n"}
    rules = (("r", "ab?", "1"), ("s", "b", "("), ("t", r"1", "b"), ("u", r"\(1\)", ""))
    report = rewriter(files, *rules)

    def shuffled(overlay: Contents) -> list[Finding]:
        findings = list(report(overlay))
        random.shuffle(findings)
        return findings

    assert fix_files(shuffled, files, SAFE, max_rounds=4) == fix_files(report, files, SAFE, max_rounds=4)


@for_every(
    ("before", "after", "worse"),
    [
        (b"x = 1", b"x = 2", None),
        (b"x = 1", b"x = ", "parse"),
        (b"x = (", b"x = ((", None),
        (b"f(a=1)", b"f(a=1, a=2)", "compile"),
        (b"f(a=1, a=1)", b"f(a=1, a=1, b=2)", None),
        (b"f(a=1, a=1)", b"f(a=1, a=1, b=)", "parse"),
        (b"from __future__ import annotations", b"import a\nfrom __future__ import annotations", "compile"),
        (b"x = 1", b"x = '\xff'", "parse"),
        (b"x = 1", b"x = 1\0", "parse"),
        (b"x = 1", b"x = " + b"(" * 5000 + b")" * 5000, "parse"),
        (b"\xef\xbb\xbfx = 1\r\n", b"\xef\xbb\xbfx = '\\d'\r\n", None),
    ],
)
def test_validate_python(before: bytes, after: bytes, worse: str | None) -> None:
    reason = validate_python(before, after)
    assert reason is None if worse is None else reason is not None and worse in reason


@for_every(
    ("before", "after", "worse"),
    [
        (b"a && b\n", b"a\n", False),
        (b"a && b\n", b"a && \n", True),
        (b"if a; then b; fi\n", b"if a; then # b\nfi\n", True),
        (b"f() { a; }\n", b"f() { }\n", True),
        (b"for i in a; do b; done\r\n", b"for i in a; do\r\ndone\r\n", True),
        (b"if a; then b; else c; fi\n", b"if a; then b; else\nfi\n", True),
        (b"if then fi (\n", b"if then fi (\n\n", False),
        (b"a \\\n  --b \\\r\n  --c\r\n", b"a \\\n  --b\r\n", False),
    ],
)
def test_validate_shell(before: bytes, after: bytes, worse: bool) -> None:
    assert (validate_shell(before, after) is not None) is worse
