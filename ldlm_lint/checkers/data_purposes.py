"""The purpose of a loader or a sampler in the code: by its own name, its dataset's, or its branch."""

from __future__ import annotations

from collections.abc import Iterator

from astroid import nodes

from ldlm_lint.python.memo import remembered
from ldlm_lint.python.places import function_of
from ldlm_lint.python.values import constant
from ldlm_lint.vocabulary.purposes import says_evaluation


def is_for_evaluation(call: nodes.Call, dataset: nodes.NodeNG | None) -> bool:
    """Whether the result of a call is named as one for evaluation, although a loop that can also train uses it."""
    names = [target.as_string().rpartition(".")[2] for target in _targets(call)]
    if isinstance(dataset, (nodes.Name, nodes.Attribute)):
        names += dataset.as_string().split(".")
    maker = function_of(call)
    return says_evaluation(names, maker.name if isinstance(maker, nodes.FunctionDef) else "", _splits(call))


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
