"""Which models of a file a Trainer trains with certain arguments."""

from __future__ import annotations

from collections.abc import Iterator

from astroid import nodes

from ldlm_lint.python.memo import remembered
from ldlm_lint.python.model_slots import model_slots
from ldlm_lint.python.names import bindings, qualified
from ldlm_lint.python.slots import Slot
from ldlm_lint.python.walks import nodes_of
from ldlm_lint.tables.training_arguments import PACKAGES

# The first two parameters of transformers' Trainer; those of trl and sentence-transformers begin the same way.
_MODEL, _ARGUMENTS = "model", "args"


def trained_models(module: nodes.Module, made: nodes.Call | None) -> list[Slot]:
    """The places of the models that a Trainer of the file trains with the arguments a call made; with any where that is None."""
    trainers = remembered(module, ("trainers by arguments",), lambda: _by_arguments(module))
    models = (_passed(call, _MODEL, 0) for call in trainers.get(id(made) if made is not None else 0, ()))
    return list(dict.fromkeys(slot for model in models if model is not None for slot in model_slots(model)))


def _by_arguments(module: nodes.Module) -> dict[int, list[nodes.Call]]:
    """The calls that make Trainers, by the identity of what their arguments may be; all of them under 0."""
    found: dict[int, list[nodes.Call]] = {}
    for call in filter(_makes_trainer, nodes_of(module, nodes.Call)):
        for key in (0, *(id(value) for value in _values(_passed(call, _ARGUMENTS, 1)))):
            found.setdefault(key, []).append(call)
    return found


def trains_adapter(module: nodes.Module, made: nodes.Call | None) -> bool:
    """Whether only an adapter is trained: trl is given one in the file, or peft makes one, whatever the options say."""
    if made is not None and any(name.startswith("trl.") for name in qualified(made.func)):
        return remembered(module, ("peft_config",), lambda: any(one.arg == "peft_config" for one in nodes_of(module, nodes.Keyword)))
    return remembered(module, ("get_peft_model",), lambda: any(map(_adapts, nodes_of(module, nodes.Call))))


def _adapts(call: nodes.Call) -> bool:
    """A call of peft's ``get_peft_model`` under no condition."""
    return qualified(call.func) == {"peft.get_peft_model"} and not any(map(_chooses, call.node_ancestors()))


def _chooses(node: nodes.NodeNG) -> bool:
    """A condition, but for whether the file is the program that runs."""
    return isinstance(node, nodes.If) and "__name__" not in node.test.as_string()


def _makes_trainer(call: nodes.Call) -> bool:
    """A class of transformers or trl, or one that the file derives from it, is told by its name: both libraries keep to it."""
    names = qualified(call.func)
    name = next(iter(names)) if len(names) == 1 else ""
    if not name.endswith("Trainer"):
        return False
    return name.partition(".")[0] in PACKAGES or name.startswith(".")


def _passed(call: nodes.Call, name: str, place: int) -> nodes.NodeNG | None:
    keyword = next((one.value for one in call.keywords if one.arg == name), None)
    return keyword if keyword is not None or len(call.args) <= place else call.args[place]


def _values(node: nodes.NodeNG | None) -> Iterator[nodes.NodeNG]:
    """An expression, and what is bound to it where it is a name."""
    if node is not None:
        yield node
    for one in bindings(node) if isinstance(node, nodes.Name) else ():
        if isinstance(one.parent, (nodes.Assign, nodes.AnnAssign)):
            yield one.parent.value


__all__ = ["trained_models", "trains_adapter"]
