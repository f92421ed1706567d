"""Choosing fixes and applying edits: properties over generated fixes, and the cases that decide them."""

from __future__ import annotations

import itertools

import pytest
from collected import for_every
from hypothesis import given, settings
from hypothesis import strategies as st

from ldlm_lint.autofix.resolve import choose, conflict, well_formed
from ldlm_lint.edits.lines import delete_line
from ldlm_lint.files.edited import OverlapError, apply_edits, overlap
from ldlm_lint.model import Applicability, Edit, Fix, Span
from ldlm_lint.source import Kind, Source

DATA = b"0123456789"


def edit(start: int, end: int, text: str = "", path: str = "/a") -> Edit:
    return Edit(Span(path, start, end), text)


def fix(*edits: Edit, level: Applicability = Applicability.SAFE, title: str = "t", isolation: str = "") -> Fix:
    return Fix(title, edits, level, isolation=isolation)


@st.composite
def edits(draw: st.DrawFn) -> Edit:
    start = draw(st.integers(0, len(DATA)))
    end = draw(st.integers(start, min(start + 4, len(DATA))))
    return edit(start, end, draw(st.sampled_from(["", "x", "yy"])), draw(st.sampled_from(["/a", "/a", "/b"])))


fixes = st.lists(
    st.builds(
        Fix,
        st.sampled_from(["one", "two"]),
        st.lists(edits(), max_size=3).map(tuple),
        st.sampled_from(Applicability),
        isolation=st.sampled_from(["", "", "f", "g"]),
    ),
    max_size=12,
)


def result_of(chosen: list[Fix]) -> dict[str, bytes]:
    """Both files after all chosen fixes, by replacing from the end: another way than `apply_edits`."""
    contents = {"/a": DATA, "/b": DATA}
    unique = {each for one in chosen for each in one.edits}
    for each in sorted(unique, key=lambda e: (e.span.start, e.span.end), reverse=True):
        data = contents[each.span.path]
        contents[each.span.path] = data[: each.span.start] + each.text.encode() + data[each.span.end :]
    return contents


@settings(deadline=None)
@given(fixes, st.sampled_from(Applicability))
def test_chosen_fixes_never_touch_a_common_byte(candidates: list[Fix], limit: Applicability) -> None:
    chosen = choose(candidates, limit)
    for left, right in itertools.combinations({each for one in chosen for each in one.edits}, 2):
        if left.span.path == right.span.path:
            ours = set(range(left.span.start, left.span.end))
            assert not ours & set(range(right.span.start, right.span.end))
            assert left.span != right.span
    assert all(one.applicability >= limit for one in chosen)


@settings(deadline=None)
@given(fixes)
def test_a_fix_is_left_out_only_for_one_that_is_in(candidates: list[Fix]) -> None:
    chosen = choose(candidates, Applicability.DISPLAY)
    for one in candidates:
        taken = [each for other in chosen for each in other.edits]
        same = any(set(other.edits) == set(one.edits) for other in chosen)
        blocked = any(conflict(mine, theirs) for mine in one.edits for theirs in taken)
        waits = one.isolation and any(other.isolation == one.isolation for other in chosen)
        assert same or blocked or waits or one.trade or not well_formed(one)


@settings(deadline=None)
@given(fixes)
def test_of_an_isolation_group_one_fix_is_taken(candidates: list[Fix]) -> None:
    names = [one.isolation for one in choose(candidates, Applicability.DISPLAY) if one.isolation]
    assert len(names) == len(set(names))


@settings(deadline=None)
@given(fixes, st.randoms(use_true_random=False))
def test_choice_and_result_do_not_depend_on_the_order(candidates: list[Fix], random: object) -> None:
    chosen = choose(candidates, Applicability.UNSAFE)
    shuffled = list(candidates)
    random.shuffle(shuffled)
    assert choose(shuffled, Applicability.UNSAFE) == chosen
    assert choose(chosen, Applicability.UNSAFE) == chosen
    for path, expected in result_of(chosen).items():
        mine = [each for one in chosen for each in one.edits if each.span.path == path]
        random.shuffle(mine)
        assert apply_edits(DATA, mine) == expected
        assert apply_edits(DATA, [*mine, *mine]) == expected


@settings(deadline=None)
@given(st.lists(edits().map(lambda e: edit(e.span.start, e.span.end, e.text)), max_size=5))
def test_edits_are_applied_completely_or_refused(several: list[Edit]) -> None:
    clash = any(overlap(a, b) or a.span == b.span for a, b in itertools.combinations(set(several), 2))
    if clash:
        with pytest.raises(OverlapError):
            apply_edits(DATA, several)
        return
    size = len(DATA) + sum(len(e.text) - (e.span.end - e.span.start) for e in set(several))
    assert len(apply_edits(DATA, several)) == size


def test_what_conflicts() -> None:
    assert conflict(edit(3, 3, "a"), edit(3, 3, "b"))
    assert not conflict(edit(3, 3, "a"), edit(3, 3, "a"))
    assert conflict(edit(3, 5), edit(4, 6))
    assert not conflict(edit(3, 5), edit(5, 6))
    assert conflict(edit(3, 5), edit(5, 5, "x"))
    assert not conflict(edit(3, 5), edit(6, 6, "x"))
    assert not conflict(edit(3, 5), edit(3, 5, path="/b"))


def test_conflicting_fixes_take_turns() -> None:
    insert, other, delete = fix(edit(3, 3, "a")), fix(edit(3, 3, "b")), fix(edit(1, 3))
    assert choose([other, insert], Applicability.SAFE) == [insert]
    assert choose([insert, delete], Applicability.SAFE) == [delete]
    assert choose([fix(edit(0, 1), edit(8, 9)), fix(edit(2, 3), edit(8, 10)), fix(edit(4, 5))], Applicability.SAFE) == [
        fix(edit(0, 1), edit(8, 9)),
        fix(edit(4, 5)),
    ]


def test_isolated_fixes_take_turns_in_the_order_of_their_places() -> None:
    one, other = fix(edit(1, 2), isolation="/a:f"), fix(edit(7, 8), isolation="/a:f")
    elsewhere, free = fix(edit(9, 10), isolation="/a:g"), fix(edit(3, 4))
    assert choose([free, other, elsewhere, one], Applicability.SAFE) == [one, free, elsewhere]
    assert choose([other], Applicability.SAFE) == [other]


def test_a_shared_import_is_inserted_once() -> None:
    shared = edit(0, 0, "import m\n")
    chosen = choose([fix(shared, edit(9, 9, "a")), fix(shared, edit(4, 4, "b"))], Applicability.SAFE)
    assert [one.edits[1].text for one in chosen] == ["b", "a"]
    assert apply_edits(b"0123456789", [e for one in chosen for e in one.edits]) == b"import m\n0123b45678a9"


def test_identical_fixes_are_taken_once_and_malformed_ones_never() -> None:
    assert len(choose([fix(edit(1, 2)), fix(edit(1, 2), title="other")], Applicability.SAFE)) == 1
    assert choose([fix(edit(1, 4), edit(2, 3)), fix(), fix(edit(0, 0, "a"), edit(0, 0, "b"))], Applicability.SAFE) == []


def test_edits_outside_of_the_data_and_of_the_encoding_are_refused() -> None:
    with pytest.raises(OverlapError):
        apply_edits(b"abc", [edit(2, 9)])
    with pytest.raises(OverlapError):
        apply_edits(b"abc", [edit(2, 1)])
    with pytest.raises(OverlapError):
        apply_edits(b"abc", [edit(2, 2, "x"), edit(2, 2, "y")])
    with pytest.raises(UnicodeEncodeError):
        apply_edits(b"abc", [edit(0, 0, "\N{SNOWMAN}")], "latin-1")
    assert apply_edits(b"abc", [edit(1, 2, "\xe9")], "latin-1") == b"a\xe9c"


@for_every(
    ("data", "span", "left"),
    [
        (b"a\nbcd\ne\n", (3, 4), b"a\ne\n"),
        (b"a\nbcd\ne\n", (2, 6), b"a\ne\n"),
        (b"a\nbcd\ne\n", (2, 7), b"a\n"),
        (b"a\r\nb\r\nc", (3, 3), b"a\r\nc"),
        (b"a\nb", (2, 3), b"a\n"),
        (b"a\nb\n", (4, 4), b"a\nb\n"),
        (b"\xef\xbb\xbfa\nb\n", (3, 4), b"\xef\xbb\xbfb\n"),
        (b"a\n\nb\n\nc\n", (3, 4), b"a\n\nc\n"),
        (b"a\r\n \r\nb\r\n\t\r\nc\r\n", (6, 7), b"a\r\n \r\nc\r\n"),
        (b"a\n\nb\n\n\nc\n", (3, 4), b"a\n\n\nc\n"),
        (b"a\n\n\nb\n\nc\n", (4, 5), b"a\n\n\nc\n"),
        (b"a\nb\n\nc\n", (2, 3), b"a\n\nc\n"),
        (b"a\n\nb\nc\n", (3, 4), b"a\n\nc\n"),
        (b"a\n\nb\n", (3, 4), b"a\n\n"),
        (b"a\n\nb\n\n", (3, 4), b"a\n\n"),
        ("\u00e4\n\u00f6 \u20ac\nb\n".encode(), (6, 9), "\u00e4\nb\n".encode()),
    ],
)
def test_delete_line(data: bytes, span: tuple[int, int], left: bytes) -> None:
    source = Source.from_bytes("/a", data, Kind.SHELL)
    assert apply_edits(data, [delete_line(source, source.span(*span))]) == left
