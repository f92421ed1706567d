"""Losses when only the last of numbered checkpoints are kept: the best one, or those that users select by number."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator, Sequence

from astroid import nodes

from ldlm_lint.checkers.checkpoint_counters import bound_values
from ldlm_lint.checkers.checkpoint_names import Numbered
from ldlm_lint.python.choices import is_chosen, speaks_of_worth
from ldlm_lint.python.names import bindings, last_name
from ldlm_lint.python.places import function_of
from ldlm_lint.python.walks import nodes_of

_ORDERS = frozenset({"<", "<=", ">", ">="})
_KEEPS = re.compile(r"save|copy|link|export|upload|(?:^|_)push|write_checkpoint|snapshot", re.I)
_STATE = re.compile(r"state_dict|deepcopy")
# Calls that list the existing files, and that read the number of the last one.
_FINDS = re.compile(r"^(?:max|min|sorted|glob|iglob|listdir|iterdir|scandir|rglob|read|read_text|readline|load|loads|search|match|findall|split|get_latest\w*|find_\w+)$")
_DEPTH = 4


def words_of(name: Numbered) -> tuple[str, ...]:
    """The texts next to the number of a file's name that identify other code for the same files."""
    texts = [part.strip("/") for part in (*name.before[-1:], *name.after[:1]) if isinstance(part, str)]
    return tuple(text for text in texts if re.search("[a-z]{3}", text, re.I) and not text.startswith("."))


def unsaved_best(modules: Iterable[nodes.Module], training: Iterable[nodes.Module] = ()) -> str:
    """The warning about a best value that a module tracks without saving a checkpoint for it; empty if there is none.

    ``training`` are the other modules of the same training, which may save it; they are read only then.
    """
    modules = list(modules)
    found = next((one for module in modules for one in _best_values(module)), None)
    if found is None or any(_keeps_best(module) for module in itertools.chain(modules, training)):
        return ""
    node, name = found
    place = f"{node.root().file.replace(chr(92), '/').rpartition('/')[2]}:{node.lineno}" if node.root().file else f"line {node.lineno}"
    return f"the best checkpoint is lost unless it is among the last ones: `{name}` ({place}) tracks the best value, but no separate file is saved for it"


def chosen_by_number(module: nodes.Module, words: Sequence[str], own: Sequence[nodes.NodeNG] = ()) -> str:
    """The warning about a path of such files built from a number of the user; empty if there is none.

    ``own`` are the saves themselves, whose paths do not count.
    """
    for text in nodes_of(module, nodes.Const):
        if not isinstance(text.value, str) or not any(word in text.value for word in words):
            continue
        path = _path_around(text)
        number = next((one for one in _numbers_in(path) if _is_given(one)), None) if path is not None else None
        if path is not None and number is not None and not any(_is_of(path, one) for one in own) and _is_read(path):
            return f"`{number.as_string()}` in line {path.lineno} picks a checkpoint by its number, and older ones are deleted"
    return ""


def _best_values(module: nodes.Module) -> Iterator[tuple[nodes.NodeNG, str]]:
    """Where a best value so far is kept: ``best = max(best, score)``, ``if loss < best: best = loss``."""
    for assign in nodes_of(module, nodes.Assign):
        # Most assignments are neither, and converting one to text takes longer than checking that.
        if not _takes_extreme(assign.value) and not isinstance(assign.parent, nodes.If):
            continue
        target = assign.targets[0].as_string()
        if (_is_extreme(assign, target) or _is_improved(assign, target)) and speaks_of_worth(f"{target} {assign.value.as_string()}"):
            yield assign, target


def _takes_extreme(value: nodes.NodeNG) -> bool:
    """A call such as ``max(best, score)``."""
    return isinstance(value, nodes.Call) and last_name(value.func) in ("max", "min", "maximum", "minimum") and len(value.args) > 1


def _is_extreme(assign: nodes.Assign, target: str) -> bool:
    return _takes_extreme(assign.value) and any(one.as_string() == target for one in assign.value.args)


def _is_improved(assign: nodes.Assign, target: str) -> bool:
    """Whether the assignment is below a test that compares its target with the assigned value."""
    branch = assign.parent
    test = branch.test if isinstance(branch, nodes.If) and assign in branch.body else None
    if isinstance(test, nodes.Name):
        test = next(iter(bound_values(test)), None)
    for compare in nodes_of(test, nodes.Compare) if test is not None else ():
        sides = [compare.left.as_string(), compare.ops[0][1].as_string()]
        if compare.ops[0][0] in _ORDERS and target in sides:
            other = sides[1 - sides.index(target)]
            return other.removesuffix(".item()") in assign.value.as_string()
    return False


def _keeps_best(module: nodes.Module) -> bool:
    """Whether the best state is kept: a file that is saved or copied for it, or the state itself."""
    for call in nodes_of(module, nodes.Call):
        if _KEEPS.search(last_name(call.func)) and (is_chosen(call) or "best" in call.as_string().lower()):
            return True
        if _STATE.search(last_name(call.func)) and is_chosen(call):
            return True
    return False


def _path_around(text: nodes.Const) -> nodes.NodeNG | None:
    """The expression that combines a text and a number; None if the text is alone."""
    path = text
    while isinstance(path.parent, (nodes.JoinedStr, nodes.BinOp)) or (
        isinstance(path.parent, nodes.Attribute) and path.parent.attrname == "format" and isinstance(path.parent.parent, nodes.Call)
    ):
        path = path.parent.parent if isinstance(path.parent, nodes.Attribute) else path.parent
    return path if path is not text else None


def _numbers_in(path: nodes.NodeNG) -> Iterator[nodes.NodeNG]:
    """The values that a path is formatted with; the folder at its beginning does not count."""
    for node in nodes_of(path, (nodes.FormattedValue, nodes.Call, nodes.BinOp)):
        if isinstance(node, nodes.FormattedValue):
            yield node.value
        elif isinstance(node, nodes.BinOp) and node.op == "%":
            yield from node.right.elts if isinstance(node.right, nodes.Tuple) else [node.right]
        elif isinstance(node, nodes.Call) and last_name(node.func) in ("format", "str"):
            yield from (*node.args, *(one.value for one in node.keywords))


def _is_given(value: nodes.NodeNG, depth: int = 0) -> bool:
    """Whether a number comes from the user: ``args.resume_step``, ``cfg["epoch"]``, ``sys.argv[1]``.

    A number computed by the program, such as ``max(...)`` over the existing files, does not count.
    """
    if depth > _DEPTH or not _counts(value):
        return False
    if isinstance(value, nodes.Call):
        return last_name(value.func) == "int" and len(value.args) == 1 and _is_given(value.args[0], depth + 1)
    if isinstance(value, (nodes.Attribute, nodes.Subscript)):
        root = value
        while isinstance(root, (nodes.Attribute, nodes.Subscript)):
            root = root.expr if isinstance(root, nodes.Attribute) else root.value
        return isinstance(root, nodes.Name) and not _is_found_out(root)
    if isinstance(value, nodes.Name):
        values = list(bound_values(value))
        return any(_is_given(one, depth + 1) for one in values) if values else _is_parameter(value)
    return False


def _counts(value: nodes.NodeNG) -> bool:
    """Whether an expression names a step or an epoch, or may: an argument of the command line."""
    return re.search(r"step|epoch|iter|num|index|idx|argv|ckpt|checkpoint|resume|\bi\b|\bn\b", value.as_string(), re.I) is not None


def _is_found_out(name: nodes.Name) -> bool:
    """Whether the value of a variable comes from a checkpoint or a directory listing."""
    calls = [one for value in bound_values(name) for one in nodes_of(value, nodes.Call)]
    return any(_FINDS.match(last_name(one.func)) for one in calls)


def _is_parameter(name: nodes.Name) -> bool:
    return any(isinstance(one, nodes.Arguments) or isinstance(one.parent, nodes.Arguments) for one in bindings(name))


def _is_of(path: nodes.NodeNG, save: nodes.NodeNG) -> bool:
    """Whether a path is that of a save: written in it, or bound to a name in it."""
    if save is path or save.parent_of(path):
        return True
    names = {one.name for one in nodes_of(save, nodes.Name)}
    statement = path.statement()
    targets = statement.targets if isinstance(statement, nodes.Assign) else []
    return function_of(path) is function_of(save) and any(getattr(one, "name", "") in names for one in targets)


def _is_read(path: nodes.NodeNG) -> bool:
    """Whether a path is passed to code that loads or searches a file, within its own function; not to code that writes
    or prints it."""
    statement = path.statement()
    around = [last_name(one.func) for one in path.node_ancestors() if isinstance(one, nodes.Call)]
    if isinstance(statement, nodes.Assign):
        names = {one.name for one in statement.targets if isinstance(one, nodes.AssignName)}
        uses = (one for one in nodes_of(function_of(path), nodes.Name) if one.name in names)
        around += [last_name(call.func) for one in uses for call in one.node_ancestors() if isinstance(call, nodes.Call)]
    return any("load" in one.lower() or one in ("exists", "is_file", "isfile", "open") for one in around)


__all__ = ["chosen_by_number", "unsaved_best", "words_of"]
