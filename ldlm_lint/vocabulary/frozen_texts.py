"""Models that a file freezes, from its text: nothing is recorded for them, and they are not trained."""

from __future__ import annotations

import functools
from collections.abc import Iterator

from ldlm_lint.patterns import lazily

# Code that freezes a model: ``for p in model.parameters(): p.requires_grad = False`` and the like, by the last part of
# its name.
_SWITCHED = ".requires_grad_(False)"
_LOOP = lazily(
    r"in (?:\w+\.)*?(\w+)(?=(?:\.module)?\.(?:named_)?parameters\(\)\s*:\s*(?:#[^\n]*\s*)?"
    r"[^\n]*requires_grad(?:_\(|\s*=\s*)False)"
)
_METHOD = lazily(r"(\w+)(?=(?:\.module)?(?:(?:\.eval\(\))?\.requires_grad_\(False\)|\.freeze\(\)))")
_FUNCTION = lazily(r"freeze\w*\(\s*(\w+)(?:\.module)?\s*\)")
_TARGET = lazily(r"([\w.]+)\s*=(?=.*\.requires_grad_\(False\))")
_OPENED = lazily(r"([ \t]*)([\w.]+)[ \t]*=[ \t]*[^=\n].*\([ \t]*$")
_CLOSED = lazily(r"([ \t]*)\).*\.requires_grad_\(False\)")
# A copy of a frozen model is frozen as well.
_COPY = lazily(r"([\w.]+)\s*=\s*(?:copy\.)?deepcopy\(\s*([\w.]+?)(?:\.module)?\s*\)")
_FOR_INFERENCE = ("optimize_for_inference", "init_inference", "jit.freeze", "onnxruntime", "optimum.")


def is_frozen(root: str, text: str) -> bool:
    """Whether a file's text freezes all parameters of a model of this name, or optimizes them for inference."""
    if any(word in text for word in _FOR_INFERENCE):
        return True
    names, targets = _frozen(text)
    return root in targets or root.rpartition(".")[2] in names


@functools.lru_cache(4)
def _frozen(text: str) -> tuple[frozenset[str], frozenset[str]]:
    """The frozen models of a text, all together: by their last names, and by the targets of frozen ones."""
    names: list[str] = _LOOP.findall(text) if "requires_grad" in text else []
    names += _FUNCTION.findall(text) if "freeze" in text else []
    targets: list[str] = []
    openings: dict[str, str] = {}
    for line in text.split("\n") if _SWITCHED in text or ".freeze()" in text else ():
        _note_opening(line, openings)
        if _SWITCHED in line or ".freeze()" in line:
            names += _METHOD.findall(line)
            targets += _TARGET.findall(line)
            # The end of a multi-line statement that creates the model.
            closed = _CLOSED.match(line)
            targets += [openings[closed[1]]] if closed is not None and closed[1] in openings else []
        elif "deepcopy(" in line:
            # Only models frozen before: a later line does not freeze a copy.
            copies = _COPY.findall(line)
            targets += [copy for copy, of in copies if of in targets or of.rpartition(".")[2] in names]
    return frozenset(names), frozenset(ending for one in targets for ending in _endings(one))


def _note_opening(line: str, openings: dict[str, str]) -> None:
    """Record the target of a multi-line assignment, by the indentation at which it ends."""
    rest = line.lstrip(" \t")
    if rest and not rest.startswith(")"):
        openings.pop(line[: len(line) - len(rest)], None)
    if rest.rstrip().endswith("(") and (opened := _OPENED.match(line)) is not None:
        openings[opened[1]] = opened[2]


def _endings(dotted_name: str) -> Iterator[str]:
    """``a.b.c``, ``b.c`` and ``c``."""
    while dotted_name:
        yield dotted_name
        dotted_name = dotted_name.partition(".")[2]
