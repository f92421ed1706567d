"""Finds saves under numbered names; whether they stand in a training loop and who prunes them the project knows."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from astroid import nodes

from ldlm_lint.autofix.calls import add_keyword
from ldlm_lint.checkers.base import LdlmChecker, span_of
from ldlm_lint.checkers.trainer_schedule import kept_by
from ldlm_lint.model import Applicability, Claim, Confidence, Edit, Fix
from ldlm_lint.python.calls import Arguments, State
from ldlm_lint.python.names import last_name, qualified
from ldlm_lint.python.places import function_of as enclosing_function
from ldlm_lint.python.places import loops_around, scope_name
from ldlm_lint.python.walks import nodes_of
from ldlm_lint.rules.checkpoint_files import RULES, UNBOUNDED_CHECKPOINTS
from ldlm_lint.source import Source

if TYPE_CHECKING:
    from pylint.lint import PyLinter

_COUNTER = re.compile(
    r"(^|_)(steps?|epochs?|iters?|iterations?|itr|it|updates?|i_?iter|n_?iter|global_?steps?|kimg|nimg|tick|ep|train_steps|milestones?)(_|\d|$)"
)
_SAVE_METHODS = {"save_pretrained", "save_state", "save_checkpoint", "save_model"}
_SAVE_HELPER = re.compile(r"(^|_)save(_|$)|snapshot$")
_TRAINING_ARGUMENTS = frozenset({"transformers.TrainingArguments", "transformers.Seq2SeqTrainingArguments"})
_MODEL_CHECKPOINT = frozenset({"lightning.callbacks.ModelCheckpoint"})
_BY_PRODUCT = re.compile(r"eval|metric|result|sample|predict|history|stats|embed|feature|latents?$|image|logits|output")
_STATE = re.compile(r"state|model|net|ckpt|checkpoint|optim|weights|param|ema|snapshot")
_COUNTING = {"range", "trange", "count", "enumerate"}
_DEPTH = 6
_REASON = "older checkpoints are deleted during the run"


@dataclass(frozen=True)
class _Save:
    """A call that saves under a numbered name: where it stands, the counters in it, what the project must confirm."""

    node: nodes.Call
    place: str
    counters: tuple[str, ...]
    claims: tuple[Claim, ...]


class CheckpointFilesChecker(LdlmChecker):
    """How many checkpoints a training keeps."""

    rules = RULES

    def __init__(self, linter: PyLinter) -> None:
        super().__init__(linter)
        self._saves: dict[tuple[str, str, int], list[_Save]] = {}

    def visit_module(self, _node: nodes.Module) -> None:
        """Start a file."""
        self._saves = {}

    def leave_module(self, _node: nodes.Module) -> None:
        """Report the saves of one place together: model and optimizer of one step are one defect."""
        for saves in self._saves.values():
            first = min(saves, key=lambda save: len(save.claims))
            counters = sorted({counter for save in saves for counter in save.counters})
            self.report(
                UNBOUNDED_CHECKPOINTS,
                first.node,
                args={"what": f"every save gets a new name (it holds {' and '.join(counters)})"},
                confidence=Confidence.MEDIUM,
                related=[(save.node, "saved together with it") for save in saves if save is not first],
                claims=(Claim("stands-in-training-loop", first.place), Claim("nothing-prunes-checkpoints"), *first.claims),
            )

    def visit_call(self, node: nodes.Call) -> None:
        """Look at saves, and at the frameworks' settings that decide how many they keep."""
        names = qualified(node.func)
        if names <= _TRAINING_ARGUMENTS:
            self._check_training_arguments(node)
        elif names <= _MODEL_CHECKPOINT:
            self._check_model_checkpoint(node)
        elif (target := _saved_path(node, names)) is not None:
            self._check_save(node, target, names)

    def _check_save(self, node: nodes.Call, target: nodes.NodeNG, names: frozenset[str]) -> None:
        counters = sorted({*_counters(target), *_loop_counters(node, target)})
        if not counters or _only_at_milestones(node, counters) or _is_by_product(node):
            return
        loops = ",".join(str(loop.lineno or 0) for loop in loops_around(node))
        place = f"{scope_name(enclosing_function(node))}|{loops}"
        certain = names == {"torch.save"} or _is_save_method(node)
        claims = () if certain else (Claim("callee-saves", f"{node.lineno}:{node.col_offset}"),)
        self._saves.setdefault((_outermost_function(node), loops, _guard(node)), []).append(_Save(node, place, tuple(counters), claims))

    def _check_training_arguments(self, node: nodes.Call) -> None:
        arguments = Arguments(node)
        strategy = arguments["save_strategy"]
        if arguments["save_total_limit"].may_be_passed() or (strategy.may_be_passed() and not _saves_often(strategy.values)):
            return
        keep = self.option("checkpoints-to-keep")
        self.report(
            UNBOUNDED_CHECKPOINTS,
            node,
            args={"what": f"save_total_limit is not set, so the Trainer {kept_by(arguments)}"},
            claims=(Claim("belongs-to-training"),),
            fix=lambda source: _keep_fix(source, node, "save_total_limit", keep),
        )

    def _check_model_checkpoint(self, node: nodes.Call) -> None:
        keep_all = Arguments(node)["save_top_k"]
        if keep_all.state is not State.KNOWN or not keep_all.is_only(-1):
            return
        monitored = Arguments(node)["monitor"].may_be_passed()
        keep = self.option("checkpoints-to-keep") if monitored else 1
        self.report(
            UNBOUNDED_CHECKPOINTS,
            node,
            args={"what": "save_top_k=-1 keeps every checkpoint"},
            claims=(Claim("belongs-to-training"),),
            fix=lambda source: Fix(
                f"save_top_k={keep}", (Edit(span_of(source, keep_all.node), str(keep)),), Applicability.UNSAFE, _REASON
            ),
        )


def _outermost_function(node: nodes.NodeNG) -> str:
    """The outermost function around a node; a helper defined inside a function saves on its behalf."""
    functions = [parent for parent in node.node_ancestors() if isinstance(parent, nodes.FunctionDef)]
    return scope_name(functions[-1]) if functions else ""


def _guard(node: nodes.NodeNG) -> int:
    """The line of the outermost ``if`` on a counter around a node inside its loop or function, 0 without one.

    What one guard saves, in whichever branch, is one defect; two guards with intervals of their own are two.
    """
    line = 0
    for parent in node.node_ancestors():
        if isinstance(parent, (nodes.For, nodes.While, nodes.FunctionDef)):
            break
        if isinstance(parent, nodes.If) and any(_COUNTER.search(name.lower()) for name in _all_names(parent.test)):
            line = parent.lineno or 0
    return line


def _only_at_milestones(node: nodes.Call, counters: list[str]) -> bool:
    """Guarded by ``if step in MILESTONES`` or ``if step == last``: as many files as there are milestones."""
    for parent in node.node_ancestors():
        if isinstance(parent, nodes.FunctionDef):
            return False
        if isinstance(parent, nodes.If) and _is_milestone(parent.test, counters):
            return True
    return False


def _is_milestone(test: nodes.NodeNG, counters: list[str]) -> bool:
    if isinstance(test, nodes.BoolOp):
        parts = (_is_milestone(value, counters) for value in test.values)
        return all(parts) if test.op == "or" else any(parts)
    return isinstance(test, nodes.Compare) and test.ops[0][0] in ("in", "==") and _counts(test, counters)


def _counts(compare: nodes.Compare, counters: list[str]) -> bool:
    """A counter itself is compared, not a remainder of it."""
    sides = [compare.left, *(side for _, side in compare.ops)]
    return any(name in counters for side in sides for name in _identifiers(side))


def _is_by_product(node: nodes.Call) -> bool:
    """What is saved is named like a result of the training (metrics, samples), not like its state."""
    words = [name.lower() for argument in node.args[:1] for name in _all_names(argument)]
    return any(map(_BY_PRODUCT.search, words)) and not any(map(_STATE.search, words))


def _all_names(node: nodes.NodeNG) -> Iterator[str]:
    for inner in nodes_of(node, (nodes.Name, nodes.Attribute)):
        yield inner.name if isinstance(inner, nodes.Name) else inner.attrname


def _saves_often(strategies: tuple[object, ...]) -> bool:
    return bool(strategies) and all(value in ("steps", "epoch") for value in strategies)


def _keep_fix(source: Source, call: nodes.Call, name: str, keep: int) -> Fix | None:
    edit = add_keyword(source, span_of(source, call), name, str(keep))
    return Fix(f"set {name}={keep}", (edit,), Applicability.UNSAFE, _REASON) if edit else None


def _is_save_method(node: nodes.Call) -> bool:
    return isinstance(node.func, nodes.Attribute) and node.func.attrname in _SAVE_METHODS


def _saved_path(node: nodes.Call, names: frozenset[str]) -> nodes.NodeNG | None:
    """The expression that names the file or folder which a call saves to; None for a call that saves nothing."""
    if names == {"torch.save"}:
        return Arguments(node, ("obj", "f"))["f"].node
    if _is_save_method(node):
        return node.args[0] if node.args else None
    last = last_name(node.func)
    if not _SAVE_HELPER.search(last):
        return None
    arguments = [*node.args, *(keyword.value for keyword in node.keywords)]
    return next((argument for argument in arguments if _looks_like_path(argument) and any(_counters(argument))), None)


def _looks_like_path(node: nodes.NodeNG) -> bool:
    """A formatted string, a path expression, or a name bound to one."""
    if isinstance(node, nodes.Name):
        return any(_looks_like_path(value) for value in _bound(node) if not isinstance(value, nodes.Name))
    if isinstance(node, nodes.JoinedStr):
        return True
    if isinstance(node, nodes.BinOp):
        return node.op in ("/", "%", "+") and (_looks_like_path(node.left) or _looks_like_path(node.right) or _is_text(node.left))
    if isinstance(node, nodes.Call):
        last = last_name(node.func)
        return last in ("join", "format", "str", "Path", "joinpath") and (
            last in ("join", "format", "joinpath") or any(map(_looks_like_path, node.args))
        )
    return False


def _is_text(node: nodes.NodeNG) -> bool:
    return isinstance(node, nodes.Const) and isinstance(node.value, str)


def _counters(node: nodes.NodeNG, depth: int = 0) -> Iterator[str]:
    """The step or epoch counters that a path expression formats into its name."""
    if depth > _DEPTH:
        return
    if isinstance(node, nodes.FormattedValue):
        yield from (name for name in _identifiers(node.value) if _COUNTER.search(name.lower()))
        if isinstance(node.value, nodes.Name):
            yield from _of_bindings(node.value, depth)
    elif isinstance(node, nodes.JoinedStr):
        for part in node.values:
            yield from _counters(part, depth + 1)
    elif isinstance(node, nodes.BinOp):
        yield from _counters(node.left, depth + 1)
        yield from _formatted_by_percent(node) if node.op == "%" and _is_text(node.left) else _counters(node.right, depth + 1)
    elif isinstance(node, nodes.Call):
        yield from _of_call(node, depth)
    elif isinstance(node, nodes.Name):
        yield from _of_bindings(node, depth)


def _loop_counters(call: nodes.Call, path: nodes.NodeNG) -> set[str]:
    """The variables of counting loops around a save, or sums made of them there, that its path formats."""
    counting = {name for loop in loops_around(call) for name in _counted(loop)}
    for loop in loops_around(call):
        for assign in nodes_of(loop, nodes.Assign):
            if isinstance(assign.value, nodes.BinOp) and counting.intersection(_identifiers(assign.value)):
                counting.update(target.name for target in assign.targets if isinstance(target, nodes.AssignName))
    return counting.intersection(name for part in _formatted(path) for name in _identifiers(part))


def _counted(loop: nodes.NodeNG) -> Iterator[str]:
    """The variable of ``for i in range(…)`` or ``for i, x in enumerate(…)``, also where the iterable has a name."""
    target = getattr(loop, "target", None)
    iterables = list(_bound(loop.iter)) if isinstance(getattr(loop, "iter", None), nodes.Name) else [getattr(loop, "iter", None)]
    if any(isinstance(one, nodes.Call) and last_name(one.func) in _COUNTING for one in iterables):
        first = target.elts[0] if isinstance(target, nodes.Tuple) and target.elts else target
        if isinstance(first, nodes.AssignName):
            yield first.name


def _formatted(path: nodes.NodeNG) -> Iterator[nodes.NodeNG]:
    """The expressions that a path written in place puts into its name."""
    for node in nodes_of(path, (nodes.FormattedValue, nodes.Call, nodes.BinOp)):
        if isinstance(node, nodes.FormattedValue):
            yield node.value
        elif isinstance(node, nodes.BinOp) and node.op == "%":
            yield node.right
        elif isinstance(node, nodes.Call) and last_name(node.func) in ("format", "str"):
            yield from node.args


def _of_bindings(node: nodes.Name, depth: int) -> Iterator[str]:
    for value in _bound(node):
        yield from _counters(value, depth + 1)


def _bound(node: nodes.Name) -> Iterator[nodes.NodeNG]:
    """What a name may hold where it is used: assigned, opened by a ``with``, or an element of the list it loops over."""
    for binding in node.lookup(node.name)[1]:
        parent = binding.parent
        if isinstance(parent, (nodes.Assign, nodes.AnnAssign)) and parent.value is not None:
            yield parent.value
        elif isinstance(parent, nodes.With):
            yield from (context.args[0] for context, target in parent.items if target is binding and _opens(context))
        elif isinstance(parent, nodes.For) and isinstance(parent.iter, nodes.Name):
            yield from _elements(parent.iter)


def _opens(context: nodes.NodeNG) -> bool:
    return isinstance(context, nodes.Call) and bool(context.args)


def _elements(node: nodes.Name) -> Iterator[nodes.NodeNG]:
    """The elements of a list that a function builds from a literal and by appending."""
    for value in _bound(node):
        if isinstance(value, (nodes.List, nodes.Tuple)):
            yield from value.elts
    for call in nodes_of(enclosing_function(node), nodes.Call):
        owner = call.func.expr if isinstance(call.func, nodes.Attribute) and call.func.attrname == "append" else None
        if isinstance(owner, nodes.Name) and owner.name == node.name and call.args:
            yield call.args[0]


def _formatted_by_percent(node: nodes.BinOp) -> Iterator[str]:
    yield from (name for name in _identifiers(node.right) if _COUNTER.search(name.lower()))


def _of_call(node: nodes.Call, depth: int) -> Iterator[str]:
    last = last_name(node.func)
    if last in ("format", "str", "zfill"):
        values = [*node.args, *(keyword.value for keyword in node.keywords)]
        for value in values:
            yield from (name for name in _identifiers(value) if _COUNTER.search(name.lower()))
    if last in ("join", "joinpath", "Path", "str", "abspath", "with_name", "format", "with_suffix"):
        for value in node.args:
            yield from _counters(value, depth + 1)
    if isinstance(node.func, nodes.Attribute) and last in ("joinpath", "zfill", "with_suffix"):
        yield from _counters(node.func.expr, depth + 1)


def _identifiers(node: nodes.NodeNG) -> Iterator[str]:
    """The variable names of an expression that counts; a call in it (``strftime``) is no counter."""
    if isinstance(node, nodes.Name):
        yield node.name
    elif isinstance(node, nodes.Attribute):
        yield node.attrname
    elif isinstance(node, nodes.BinOp) and node.op != "%":
        yield from _identifiers(node.left)
        yield from _identifiers(node.right)
    elif isinstance(node, nodes.Tuple):
        for element in node.elts:
            yield from _identifiers(element)
    elif isinstance(node, nodes.Call) and isinstance(node.func, nodes.Name) and node.func.name in ("int", "str") and node.args:
        yield from _identifiers(node.args[0])
