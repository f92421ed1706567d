"""What an evaluation that records gradients needs, by the text of a file: `ldlm_lint.shapes.evaluation`, read generously.

Where nothing is put into evaluation mode, a function shows an evaluation by its name and a loop, or calls a model that it is
given in one: a name with a parenthesis behind it, in a chain that begins with a parameter and ends like a model.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial
from keyword import iskeyword

from ldlm_lint.patterns import lazily
from ldlm_lint.python.model_names import RUNS, SPEAKS_OF_GRADIENTS, looks_like_model, names_evaluation
from ldlm_lint.shapes.draft import WORD, Draft
from ldlm_lint.shapes.evaluation import BROKEN_CALL, PASSED_ON, model_calls
from ldlm_lint.shapes.outline import GAP

# ``model.eval()``, and ``model.train(…)`` with anything in it.
_SWITCHES = (
    lazily(rb"eval(?<=[.\s\\]eval)" + GAP + rb"\(" + GAP + rb"\)"),
    lazily(rb"train(?<=[.\s\\]train)(?<!def train)" + GAP + rb"\(" + GAP + rb"[^) \t\r\n\f\\#]"),
)
_CHAINED = bytes((*WORD, *b"."))
_ASCII = frozenset(bytes((one,)) for one in WORD if one < 0x80)
_LETTERS = frozenset(bytes((one,)) for one in WORD)
# With something between the parentheses.
_CALLS = lazily(rb"[ \t\r\n\f\\]*\([ \t]*(?!\))")
_NAME = lazily(rb"[\w\x80-\xff]+")
_LAST = lazily(rb"[\w\x80-\xff]+(?=[ \t\\]*\Z)")
_BLANK = b" \t\\"


def may_evaluate(draft: Draft) -> bool:
    """Whether a function of a text may run a model for its results alone, with gradients on."""
    data = draft.data
    if any(one.search(data) for one in _SWITCHES) or any(map(partial(_is_broken, data), BROKEN_CALL.finditer(data))):
        return True
    if b"for" not in data and b"while" not in data:
        return False
    if any(not one.is_class and names_evaluation(one.name) and _may_run(draft, number) for number, one in enumerate(draft.headers)):
        return True
    return any(root is None or _may_be_given(draft, at, root) for at, root in _called(draft))


def _is_broken(data: bytes, comment: re.Match[bytes]) -> bool:
    """Whether something that may be called like a model stands before a comment and a parenthesis."""
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
    """Whether a place may stand in a loop of a function that takes a parameter, and may record gradients."""
    return any(
        not draft.headers[number].is_class
        and draft.may_take(number, root)
        and not _is_held(draft, number)
        and (RUNS.search(draft.headers[number].name) is not None or not draft.is_model(number))
        and (at < draft.headers[number].start or draft.body(number).repeats(at))
        for number in draft.around(at)
    )


def _is_held(draft: Draft, number: int) -> bool:
    return any(map(SPEAKS_OF_GRADIENTS.search, draft.decorators(number)))


def _called(draft: Draft) -> Iterator[tuple[int, bytes | None]]:
    """Where something called like a model is called by its name, and what the name begins with; None where that is open."""
    data = draft.data
    for begins in model_calls(data):
        word = begins.encode()
        name = word.removesuffix(b"(")
        at = data.find(word)
        while at >= 0:
            end = at + len(name)
            # What is not in ASCII is a part of the name all the same.
            if data[at - 1 : at] not in _ASCII and _CALLS.match(data, end) and not draft.is_text(at):
                root = _root(data, at, name)
                if root != b"":
                    yield at, root
            at = data.find(word, end)


def _root(data: bytes, at: int, name: bytes) -> bytes | None:
    """The first part of a dotted name that ends with ``name`` and is called like a model; empty for none, None if that is open."""
    begin = data.rfind(b"\n", 0, at) + 1
    before = data[begin:at].rstrip(_CHAINED)
    chain = data[begin + len(before) : at] + name
    blank = before.rstrip(_BLANK)
    if chain.startswith(b".") or blank.endswith(b".") or (not blank and _goes_on(data, begin)):
        return b"" if _is_nameless(blank.removesuffix(b".").rstrip(_BLANK)) else None
    if blank.endswith((b"def", b"class")) and blank != before:
        return b""
    parts = chain.decode(errors="replace").split(".")
    while len(parts) > 1 and parts[-1] in PASSED_ON:
        parts.pop()
    return parts[0].encode() if looks_like_model(parts[-1]) else b""


def _is_nameless(before: bytes) -> bool:
    """Whether something is an attribute of an element, a text or the result of a call, and not of a name in parentheses."""
    if not before.endswith(b")"):
        return before.endswith((b"]", b"}", b'"', b"'"))
    function = before[: before.rfind(b"(")] if b"(" in before else b""
    caller = _LAST.search(function)
    return function[-1:] in _LETTERS and caller is not None and not iskeyword(caller[0].decode(errors="replace"))


def _goes_on(data: bytes, begin: int) -> bool:
    """Whether the code above a line ends with a dot."""
    while begin:
        end, begin = begin, data.rfind(b"\n", 0, begin - 1) + 1
        line = data[begin:end].strip()
        if line and not line.startswith(b"#"):
            code, *rest = line.split(b"#")
            # In a text it begins no comment.
            parts = [code, *(rest if b"'" in code or b'"' in code else rest[:-1])]
            return any(one.rstrip(_BLANK).endswith(b".") for one in parts)
    return False
