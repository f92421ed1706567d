"""Other uses of a file's numbered checkpoints: whether one is kept on purpose, or read again by its number."""

from __future__ import annotations

import re
from collections.abc import Iterator

from astroid import nodes

from ldlm_lint.checkers.checkpoint_losses import words_of
from ldlm_lint.checkers.checkpoint_names import Numbered
from ldlm_lint.patterns import lazily
from ldlm_lint.python.choices import CHOSEN_LATER, is_chosen
from ldlm_lint.python.guards import RANK, guards_of
from ldlm_lint.python.names import last_name
from ldlm_lint.python.places import function_of, loops_around
from ldlm_lint.python.walks import nodes_of

_DISTRIBUTED = lazily(
    r"torch\.distributed|\bdist\.|DistributedDataParallel|init_process_group|\baccelerate\b|\bAccelerator\(|deepspeed|LOCAL_RANK|\bDDP\("
)
_SAYS = lazily(
    r"print|(^|_)(log|info|warn|warning|debug|error|write|describe)(_|$)|set_description|save(_|$)", re.I
)
_NEWEST = lazily(r"resume|restart|latest|newest|last|continue|restore|auto_?load|find_|prev", re.I)
_DEPTH = 2
ROTATION = "_keep_last"


def saved_when_best(save: nodes.Call) -> bool:
    """Whether a save may be of the best state so far, judging by its place or the calls of its function in the file."""
    return any(map(is_chosen, _places(save)))


def own_rotation(module: nodes.Module) -> nodes.FunctionDef | None:
    """The function that the fix of unbounded-checkpoints writes, where a file has it."""
    found = (one for one in module.body if isinstance(one, nodes.FunctionDef) and one.name == ROTATION)
    return next((one for one in found if one.argnames() == ["path", "before", "after", "keep"]), None)


def is_repeated(save: nodes.Call) -> bool:
    """Whether the file itself repeats a save: in a loop, or by calls in one."""
    return any(loops_around(one) for one in _places(save))


def saved_on_several_ranks(save: nodes.Call) -> bool:
    """Whether the file trains with several processes and no test of the rank is visible on the way to a save."""
    if not _DISTRIBUTED.search(save.root().as_string()):
        return False
    return not _is_guarded(save)


def _is_guarded(call: nodes.Call, depth: int = 0) -> bool:
    """Whether one rank is selected for a call, at its place or at all calls of its function."""
    if RANK in guards_of(call):
        return True
    callers = list(_callers(call)) if depth < _DEPTH else []
    return bool(callers) and all(_is_guarded(one, depth + 1) for one in callers)


def read_by_number(save: nodes.Call, name: Numbered) -> bool:
    """Whether the file chooses among numbered checkpoints later: by a number, or to average them."""
    module = save.root()
    if any(CHOSEN_LATER.search(one) for one in _identifiers(module)):
        return True
    words = words_of(name)
    alike = (
        one
        for one in nodes_of(module, nodes.Const)
        if isinstance(one.value, str) and any(word in one.value for word in words)
    )
    return any(_is_read(one) and not _is_the_saved_one(one, save, name) for one in alike)


def _identifiers(module: nodes.Module) -> Iterator[str]:
    for one in nodes_of(module, (nodes.Name, nodes.Attribute, nodes.AssignName, nodes.AssignAttr, nodes.FunctionDef)):
        yield one.attrname if isinstance(one, (nodes.Attribute, nodes.AssignAttr)) else one.name


def _places(save: nodes.Call, depth: int = 0) -> Iterator[nodes.Call]:
    """A call, and those that lead to it in the same file."""
    yield save
    for call in _callers(save) if depth < _DEPTH else ():
        yield from _places(call, depth + 1)


def _callers(node: nodes.Call) -> Iterator[nodes.Call]:
    """The calls of the function around a node in the same file."""
    function = function_of(node)
    if isinstance(function, nodes.FunctionDef):
        for call in nodes_of(node.root(), nodes.Call):
            if last_name(call.func) == function.name and function_of(call) is not function:
                yield call


def _is_read(text: nodes.Const) -> bool:
    """Whether a text like the name is in a pattern, or in another formatted name that is neither written nor
    printed.
    """
    formatted = text
    while isinstance(formatted.parent, (nodes.JoinedStr, nodes.BinOp, nodes.Attribute)):
        formatted = formatted.parent
    if "*" not in text.value and formatted is text:
        return False
    words = [getattr(function_of(text), "name", "")]
    for parent in text.node_ancestors():
        if isinstance(parent, nodes.Call) and _SAYS.search(last_name(parent.func)):
            return False
        if isinstance(parent, (nodes.If, nodes.IfExp)):
            words.append(parent.test.as_string())
        if isinstance(parent, nodes.Assign):
            words += [one.as_string() for one in parent.targets]
            if _is_saved_to(parent):
                return False
        if isinstance(parent, nodes.FunctionDef):
            break
    return not any(map(_NEWEST.search, words))


def _is_the_saved_one(text: nodes.Const, save: nodes.Call, name: Numbered) -> bool:
    """Whether a name with the number that was just saved is passed on, as to a link, and not to a load."""
    if function_of(text) is not function_of(save) or not isinstance(function_of(save), nodes.FunctionDef):
        return False
    number = name.number.as_string()
    used = any(one.as_string() == number for one in nodes_of(text.parent, (nodes.Name, nodes.Attribute)))
    around = [last_name(one.func) for one in text.node_ancestors() if isinstance(one, nodes.Call)]
    return used and not any("load" in one or "exists" in one for one in around)


def _is_saved_to(assign: nodes.Assign) -> bool:
    """Whether the path built here is one that the function saves to and does not load from."""
    names = {one.name for one in assign.targets if isinstance(one, nodes.AssignName)}
    calls = [
        last_name(call.func)
        for call in nodes_of(function_of(assign), nodes.Call)
        for value in [*call.args, *(keyword.value for keyword in call.keywords)]
        if any(one.name in names for one in nodes_of(value, nodes.Name))
    ]
    return any("save" in one for one in calls) and not any("load" in one for one in calls)
