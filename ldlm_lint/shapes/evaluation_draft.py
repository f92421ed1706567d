"""Conditions of an evaluation that records gradients on the text of a file: a superset of
`ldlm_lint.shapes.evaluation`.

Without a switch to evaluation mode, a function is an evaluation by its name and a loop, or if it calls a model
parameter in a loop: a name before a parenthesis, in a chain that begins with a parameter and ends like a model.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial

from ldlm_lint.patterns import lazily
from ldlm_lint.shapes.draft import NAMELESS, WORD, Draft
from ldlm_lint.shapes.evaluation import BROKEN_CALL, PASSED_ON, model_calls
from ldlm_lint.shapes.outline import GAP
from ldlm_lint.vocabulary.models import RUNS, SPEAKS_OF_GRADIENTS, looks_like_model, names_evaluation

# ``model.eval()``, and ``model.train(…)`` with any argument.
_SWITCHES = (
    lazily(rb"eval(?<=[.\s\\]eval)" + GAP + rb"\(" + GAP + rb"\)"),
    lazily(rb"train(?<=[.\s\\]train)(?<!def train)" + GAP + rb"\(" + GAP + rb"[^) \t\r\n\f\\#]"),
)
_ASCII = frozenset(bytes((one,)) for one in WORD if one < 0x80)
# With an argument between the parentheses.
_CALLS = lazily(rb"[ \t\r\n\f\\]*\([ \t]*(?!\))")
_NAME = lazily(rb"[\w\x80-\xff]+")
_LAST = lazily(rb"[\w\x80-\xff]+(?=[ \t\\]*\Z)")


def may_evaluate(draft: Draft) -> bool:
    """Whether a function of a text may run a model only for its results, with gradients on."""
    data = draft.data
    if any(one.search(data) for one in _SWITCHES) or any(map(partial(_is_broken, data), BROKEN_CALL.finditer(data))):
        return True
    if b"for" not in data and b"while" not in data:
        return False
    if any(not one.is_class and names_evaluation(one.name) and _may_run(draft, number) for number, one in enumerate(draft.headers)):
        return True
    return any(root is None or _may_be_given(draft, at, root) for at, root in _called(draft))


def _is_broken(data: bytes, comment: re.Match[bytes]) -> bool:
    """Whether a possible model name is followed by a comment and a parenthesis."""
    end = data.find(b"\n", comment.start()) + 1
    while end:
        start = data.rfind(b"\n", 0, end - 1) + 1
        line = data[start:end].strip()
        if line and not line.startswith(b"#"):
            names = (_LAST.search(one) for one in line.split(b"#"))
            return any(one is not None and _is_model(one[0].decode(errors="replace")) for one in names)
        end = start
    return False


def _is_model(name: str) -> bool:
    return looks_like_model(name) or name in PASSED_ON


def _may_run(draft: Draft, number: int) -> bool:
    """Whether a function may run a model in a loop, and record gradients."""
    if _is_held(draft, number) or draft.is_model(number):
        return False
    if b"for" in draft.decoration(number):
        return True
    if not draft.body(number).loops:
        return False
    names = set(_NAME.findall(draft.data, draft.headers[number].start, draft.body(number).end))
    return any(_is_model(name) or RUNS.search(name) for name in (one.decode(errors="replace") for one in names))


def _may_be_given(draft: Draft, at: int, root: bytes) -> bool:
    """Whether a place may be in a loop of a function with a parameter, and may record gradients."""
    return any(
        not draft.headers[number].is_class
        and root in draft.taken(number)
        and not _is_held(draft, number)
        and (RUNS.search(draft.headers[number].name) is not None or not draft.is_model(number))
        and (at < draft.headers[number].start or draft.body(number).repeats(at))
        for number in draft.around(at)
    )


def _is_held(draft: Draft, number: int) -> bool:
    return any(map(SPEAKS_OF_GRADIENTS.search, draft.decorators(number)))


def _called(draft: Draft) -> Iterator[tuple[int, bytes | None]]:
    """The calls of model-like names, and the roots of the names; None if unknown."""
    data = draft.data
    for begins in model_calls(data):
        word = begins.encode()
        name = word.removesuffix(b"(")
        at = data.find(word)
        while at >= 0:
            end = at + len(name)
            # Non-ASCII characters also belong to the name.
            if data[at - 1 : at] not in _ASCII and _CALLS.match(data, end) and not draft.is_text(at):
                root = _root(draft, at, name)
                if root != b"":
                    yield at, root
            at = data.find(word, end)


def _root(draft: Draft, at: int, name: bytes) -> bytes | None:
    """The first part of a dotted name that ends with ``name`` and looks like a model; empty if there is none, None if
    unknown."""
    before = draft.before(at)
    if before is None or before == NAMELESS or (not before and draft.is_defined(at)):
        return None if before is None else b""
    parts = (before + name).decode(errors="replace").split(".")
    while len(parts) > 1 and parts[-1] in PASSED_ON:
        parts.pop()
    return parts[0].encode() if looks_like_model(parts[-1]) else b""
