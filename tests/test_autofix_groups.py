"""Findings of one group carry one fix, and never a dangerous part of it."""

from __future__ import annotations

from ldlm_lint.autofix.groups import merge_groups
from ldlm_lint.model import Applicability, Edit, Finding, Fix, Span


def finding(
    code: str,
    *edits: tuple[int, int, str],
    group: str = "g",
    whole: bool = False,
    title: str = "",
    reason: str = "",
    at: int = 0,
    isolation: str = "",
) -> Finding:
    level = Applicability.UNSAFE if reason else Applicability.SAFE
    fix = Fix(
        title or f"Delete {code}",
        tuple(Edit(Span("/run.sh", start, end), text) for start, end, text in edits),
        level,
        reason,
        group,
        whole,
        isolation,
    )
    return Finding(f"rule-{code}", code, Span("/run.sh", at, at + 1), args=(("values", [1]),), fix=fix)


def test_members_share_one_fix_with_the_union_of_edits() -> None:
    first = finding("W7202", (10, 20, ""), (0, 0, "b"), title="Delete the flag", reason="changes a timeout")
    second = finding("W7201", (30, 40, "1800"), (10, 20, ""), (0, 0, "a"), title="Set 1800", at=30)
    third = finding("W7203", (50, 60, ""), title="Delete the flag", reason="changes a timeout")
    merged = merge_groups([first, second, third], [])
    assert [each.code for each in merged] == ["W7202", "W7201", "W7203"]
    fix = merged[0].fix
    assert fix is not None
    assert [each.fix for each in merged] == [fix] * 3
    assert [(e.span.start, e.span.end, e.text) for e in fix.edits] == [
        (0, 0, "ab"),
        (10, 20, ""),
        (30, 40, "1800"),
        (50, 60, ""),
    ]
    assert fix.title == "Set 1800; delete the flag"
    assert fix.applicability is Applicability.UNSAFE
    assert fix.reason == "changes a timeout"
    assert merge_groups(merged, []) == merged


def test_a_name_keeps_its_case_in_a_joined_title() -> None:
    merged = merge_groups([finding("W1", (0, 1, ""), title="One"), finding("W2", (2, 3, ""), title="NCCL_X goes")], [])
    assert merged[0].fix is not None
    assert merged[0].fix.title == "One; NCCL_X goes"


def test_groups_do_not_mix_and_ungrouped_findings_stay() -> None:
    several = [finding("W1", (0, 1, "")), finding("W2", (2, 3, ""), group="h"), finding("W3", (4, 5, ""), group="")]
    bare = Finding("rule", "W4", Span("/run.sh", 9, 9))
    assert merge_groups([*several, bare], []) == [*several, bare]


def test_the_order_of_findings_does_not_change_the_fix() -> None:
    several = [finding(f"W{n}", (n, n + 1, ""), (0, 0, str(n))) for n in (3, 1, 2)]
    fixes = {merge_groups(order, [])[0].fix for order in (several, several[::-1], several[1:] + several[:1])}
    assert len(fixes) == 1


def test_a_withdrawn_member_takes_a_whole_group_down() -> None:
    kept, gone = finding("W1", (0, 1, ""), whole=True), finding("W2", (2, 3, ""), whole=True)
    for listed in ([kept, gone], [kept]):
        (left,) = merge_groups(listed, [gone])
        assert (left.code, left.fix) == ("W1", None)


def test_a_withdrawn_member_of_a_loose_group_takes_its_edits_along() -> None:
    kept, other, gone = finding("W1", (0, 1, "")), finding("W2", (2, 3, "")), finding("W3", (4, 5, ""))
    merged = merge_groups([kept, gone, other], {gone.span: gone}.values())
    assert [each.code for each in merged] == ["W1", "W2"]
    assert merged[1].fix is not None
    assert [edit.span.start for edit in merged[1].fix.edits] == [0, 2]


def test_an_overlapping_member_keeps_its_own_fix() -> None:
    first, second, late = finding("W1", (0, 10, "")), finding("W2", (20, 30, "")), finding("W3", (5, 12, ""))
    merged = merge_groups([late, first, second], [])
    assert merged[0] == late
    assert merged[1].fix == merged[2].fix != late.fix
    assert merged[1].fix is not None
    assert len(merged[1].fix.edits) == 2


def test_a_whole_group_that_cannot_be_one_fix_has_none() -> None:
    merged = merge_groups([finding("W1", (0, 10, ""), whole=True), finding("W2", (5, 12, ""), whole=True)], [])
    assert [each.fix for each in merged] == [None, None]


def test_a_joined_fix_is_isolated_as_its_members_are() -> None:
    free, first, other = (
        finding("W1", (0, 1, "")),
        finding("W2", (4, 5, ""), isolation="f"),
        finding("W3", (7, 8, ""), isolation="g"),
    )
    joined = merge_groups([free, first, other], [])
    assert joined[0].fix == joined[1].fix
    assert [each.fix and (each.fix.isolation, len(each.fix.edits)) for each in joined] == [("f", 2), ("f", 2), ("g", 1)]
