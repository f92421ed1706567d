"""The purpose of a loader or a sampler in the code: by its own name, its dataset's, or its branch."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from astroid import nodes

from ldlm_lint.patterns import lazily
from ldlm_lint.python.memo import remembered
from ldlm_lint.python.places import function_of
from ldlm_lint.python.values import constant

_SPLIT = r"val|valid|validation|test|testing|eval|evaluation|dev|zero_?shot"
_EVALUATES = lazily(rf"(?i)(?:^|_)(?:{_SPLIT})(?:_|\d|$|set|loader|data|dl)")
_EVALUATED = lazily(rf"(?i)(?:{_SPLIT})$")
_TESTED = lazily(r"(?i)test(?:ing)?$")
_MAKES = lazily(r"(?i)^_*(?:get|make|build|create|load|prepare|setup|set_up|init|construct)_")
_WANTS_NONE = lazily(
    r"(?i)parallelism|\b(?:its|their) own\b|dead-?lock|\bhangs?\b|pickl|\bfork|important|\bmust\b|required|necessary|\bneeds? to be (?:0|zero)\b"
    r"|(?:can ?not|can't|does(?:n't| not)|not) (?:work|support|use|compatible)"
)
_TRAINS = lazily(r"(?i)train|loaders$|splits$|datasets$")


def is_for_evaluation(call: nodes.Call, dataset: nodes.NodeNG | None) -> bool:
    """Whether the result of a call is named as one for evaluation, although a loop that can also train uses it."""
    names = [target.as_string().rpartition(".")[2] for target in _targets(call)]
    if isinstance(dataset, (nodes.Name, nodes.Attribute)):
        names += dataset.as_string().split(".")
    maker = function_of(call)
    return says_evaluation(names, maker.name if isinstance(maker, nodes.FunctionDef) else "", _splits(call))


def says_evaluation(names: Iterable[str], maker: str, splits: Iterable[str]) -> bool:
    """Whether the names of a loader and its dataset, of the function that creates it, or its split mention
    evaluation.
    """
    told = list(names)
    # ``def build_test_loader():`` creates none for training, whatever uses it; a function that creates several may.
    if _MAKES.match(maker) and not any(map(_TRAINS.search, (maker, *told))):
        told.append(maker)
    return any(map(_EVALUATES.search, told)) or any(map(_EVALUATED.match, splits))


def says_test(splits: Iterable[str]) -> bool:
    """Whether the split is the test split."""
    return any(map(_TESTED.match, splits))


def wants_no_workers(remark: str) -> bool:
    """Whether a comment says why a loader has no workers: its data come from separate threads or processes, or cannot
    be shared."""
    return _WANTS_NONE.search(remark) is not None


def _targets(call: nodes.Call) -> list[nodes.NodeNG]:
    """The targets of an assignment, through the calls around the value: ``valid = cycle(DataLoader(…))``."""
    parent = call.parent
    while isinstance(parent, nodes.Call):
        parent = parent.parent
    return getattr(parent, "targets", [])


def _splits(call: nodes.Call) -> list[str]:
    """The words that a value is equal to where the call is: ``if split == "test":``."""
    return remembered(call, ("splits",), lambda: list(_equals(call)))


def _equals(call: nodes.Call) -> Iterator[str]:
    child: nodes.NodeNG = call
    for parent in call.node_ancestors():
        if isinstance(parent, nodes.FunctionDef):
            return
        if isinstance(parent, nodes.If) and child is not parent.test and isinstance(parent.test, nodes.Compare):
            operator, other = parent.test.ops[0]
            words = [one for one in map(constant, (parent.test.left, other)) if isinstance(one, str)]
            if len(parent.test.ops) == 1 and (operator, child in parent.body) in (("==", True), ("!=", False)):
                yield from words
        child = parent
