"""Finds state dictionaries that are kept, or passed to a thread, while the training goes on changing their tensors."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from astroid import nodes

from ldlm_lint.checkers.kept_states import kept_states
from ldlm_lint.python.names import bindings, qualified
from ldlm_lint.python.places import function_of, loops_around
from ldlm_lint.python.walks import nodes_of
from ldlm_lint.wording import quoted

_THREADS = {"threading.Thread"}
_EXECUTORS = {
    "concurrent.futures.ThreadPoolExecutor",
    "concurrent.futures.thread.ThreadPoolExecutor",
    "multiprocessing.pool.ThreadPool",
}
_SUBMITS = {"submit", "apply_async"}
_SHALLOW = {"copy.copy", "collections.OrderedDict"}
_WAITS = {"join", "result", "wait", "shutdown"}
STATE = "`state_dict()` returns the live tensors"
_DEPTH = 4


class LiveState(NamedTuple):
    """A state that is not a copy: where it is passed on or kept, how (as text), its later use; ``states`` are its
    expressions.

    ``what`` names the object that is not a copy.
    """

    node: nodes.NodeNG
    how: str
    use: nodes.NodeNG | None = None
    note: str = ""
    states: tuple[nodes.NodeNG, ...] = ()
    what: str = STATE


def live_states(module: nodes.Module) -> Iterator[LiveState]:
    """The live states that a file passes to threads, or keeps across further steps."""
    for call in nodes_of(module, nodes.Call):
        handed = _handed_on(call)
        if handed and any(map(_is_live, handed)) and not _waits(call):
            states = tuple(_made(one) for one in handed if _is_live(one))
            yield LiveState(call, "a thread saves them while the next steps change them", states=states)
    for kept in kept_states(module, _is_live):
        note = "by now this is the model of the last step" if kept.whole else "by now this is the state of the last step"
        how = "it is kept while further steps change it" if kept.whole else "they are kept while further steps change them"
        what = f"{quoted(kept.state.as_string())} is the model itself" if kept.whole else STATE
        yield LiveState(kept.assign, how, kept.use, note, () if kept.whole else (kept.state,), what)


def _handed_on(call: nodes.Call) -> list[nodes.NodeNG]:
    """The arguments that a thread gets."""
    passed = [keyword.value for keyword in call.keywords if keyword.arg in ("args", "kwargs")]
    if passed and qualified(call.func) <= _THREADS:
        return [part for value in passed for part in _parts(value)]
    if isinstance(call.func, nodes.Attribute) and call.func.attrname in _SUBMITS and _is_executor(call.func.expr):
        rest = [*call.args[1:], *(keyword.value for keyword in call.keywords)]
        return [part for value in rest for part in (_parts(value) if isinstance(value, nodes.Tuple) else [value])]
    return []


def _parts(value: nodes.NodeNG) -> list[nodes.NodeNG]:
    if isinstance(value, (nodes.Tuple, nodes.List)):
        return value.elts
    return [part for _, part in value.items] if isinstance(value, nodes.Dict) else []


def _is_executor(node: nodes.NodeNG) -> bool:
    """Whether an expression is a thread pool created by the file, and not one that a ``with`` waits for."""
    if isinstance(node, nodes.Name):
        values = [one.parent.value for one in bindings(node) if isinstance(one.parent, nodes.Assign)]
    elif isinstance(node, nodes.Attribute):
        every = nodes_of(node.root(), nodes.AssignAttr)
        values = [
            one.parent.value for one in every if one.attrname == node.attrname and isinstance(one.parent, nodes.Assign)
        ]
    else:
        return False
    return any(isinstance(one, nodes.Call) and qualified(one.func) <= _EXECUTORS for one in values)


def _is_live(node: nodes.NodeNG, depth: int = 0) -> bool:
    """Whether an expression holds the tensors of a ``state_dict()`` themselves."""
    if depth > _DEPTH:
        return False
    if isinstance(node, nodes.Call):
        if isinstance(node.func, nodes.Attribute) and node.func.attrname == "state_dict":
            return not _may_copy(node)
        shallow = qualified(node.func) <= _SHALLOW or (isinstance(node.func, nodes.Name) and node.func.name == "dict")
        shallow = shallow or (isinstance(node.func, nodes.Attribute) and node.func.attrname == "copy" and not node.args)
        inner = node.args[:1] or ([node.func.expr] if isinstance(node.func, nodes.Attribute) else [])
        return shallow and any(_is_live(one, depth + 1) for one in inner)
    if isinstance(node, nodes.Dict):
        return any(_is_live(value, depth + 1) for _, value in node.items)
    if isinstance(node, nodes.DictComp):
        return _comprehends_live(node, depth)
    if isinstance(node, nodes.Name):
        values = [getattr(one.parent, "value", None) for one in bindings(node) if isinstance(one, nodes.AssignName)]
        return (
            len(values) == 1 and len(bindings(node)) == 1 and values[0] is not None and _is_live(values[0], depth + 1)
        )
    return False


def _made(node: nodes.NodeNG) -> nodes.NodeNG:
    """The creation of the state: the value of the variable that `_is_live` followed."""
    while isinstance(node, nodes.Name):
        node = next(iter(bindings(node))).parent.value
    return node


def _may_copy(call: nodes.Call) -> bool:
    """An object of another kind, such as one of FSDP or DeepSpeed, may gather its state into new tensors."""
    return bool(call.args or call.keywords)


def _comprehends_live(node: nodes.DictComp, depth: int) -> bool:
    """``{k: v for k, v in x.state_dict().items()}``, and ``v.cpu()`` over an optimizer (its state contains
    dictionaries)."""
    source = node.generators[0].iter
    if not (
        isinstance(source, nodes.Call) and isinstance(source.func, nodes.Attribute) and source.func.attrname == "items"
    ):
        return False
    owner = source.func.expr
    if not _is_live(owner, depth + 1):
        return False
    if isinstance(node.value, nodes.Name):
        return True
    of_optimizer = isinstance(owner, nodes.Call) and "optim" in owner.func.as_string().lower()
    guarded = isinstance(node.value, nodes.IfExp) and isinstance(node.value.orelse, nodes.Name)
    return of_optimizer and guarded and "ensor" in node.value.test.as_string()


def _waits(call: nodes.Call) -> bool:
    """Whether the function waits for what it started, in the same iteration if there is a loop."""
    loops = loops_around(call)
    around = loops[0] if loops else function_of(call)
    later = (one for one in nodes_of(around, nodes.Call) if (one.lineno or 0) >= (call.lineno or 0))
    return any(
        isinstance(one.func, nodes.Attribute) and one.func.attrname in _WAITS and _is_handle(one) for one in later
    )


def _is_handle(call: nodes.Call) -> bool:
    """``thread.join()`` and not ``os.path.join(a, b)``."""
    return not call.args or call.func.attrname in ("wait", "result")
