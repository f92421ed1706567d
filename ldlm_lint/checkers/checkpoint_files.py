"""Finds saves under numbered names; whether they stand in a training loop and who prunes them the project knows."""

from __future__ import annotations

import re
from collections.abc import Iterator

from astroid import nodes

from ldlm_lint.autofix.calls import add_keyword
from ldlm_lint.checkers.base import LdlmChecker, span_of
from ldlm_lint.model import Applicability, Claim, Confidence, Edit, Fix
from ldlm_lint.python.calls import Arguments, State
from ldlm_lint.python.flow import loops_around, scope_name
from ldlm_lint.python.flow import function_of as enclosing_function
from ldlm_lint.python.names import qualified
from ldlm_lint.rules.checkpoint_files import UNBOUNDED_CHECKPOINTS
from ldlm_lint.source import Source

_COUNTER = re.compile(
    r"(^|_)(steps?|epochs?|iters?|iterations?|itr|it|updates?|i_?iter|n_?iter|global_?steps?|kimg|nimg|tick|ep|train_steps)(_|\d|$)"
)
_SAVE_METHODS = {"save_pretrained", "save_state", "save_checkpoint", "save_model"}
_SAVE_HELPER = re.compile(r"(^|_)save(_|$)|snapshot$")
_TRAINING_ARGUMENTS = frozenset({"transformers.TrainingArguments", "transformers.Seq2SeqTrainingArguments"})
_MODEL_CHECKPOINT = frozenset({"lightning.callbacks.ModelCheckpoint"})
_DEPTH = 6
_REASON = "older checkpoints are deleted during the run"


class CheckpointFilesChecker(LdlmChecker):
    """Rules of family 76."""

    family = "76"

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
        counters = sorted(set(_counters(target)))
        if not counters:
            return
        loops = ",".join(str(loop.lineno or 0) for loop in loops_around(node))
        place = f"{scope_name(enclosing_function(node))}|{loops}"
        claims = [Claim("stands-in-training-loop", place), Claim("nothing-prunes-checkpoints")]
        if names != {"torch.save"} and not _is_save_method(node):
            claims.append(Claim("callee-saves", f"{node.lineno}:{node.col_offset}"))
        self.report(
            UNBOUNDED_CHECKPOINTS,
            node,
            args={"what": f"every save gets a new name (it holds {' and '.join(counters)})"},
            confidence=Confidence.MEDIUM,
            claims=tuple(claims),
        )

    def _check_training_arguments(self, node: nodes.Call) -> None:
        arguments = Arguments(node)
        strategy = arguments["save_strategy"]
        if arguments["save_total_limit"].may_be_passed() or (strategy.may_be_passed() and not _saves_often(strategy.values)):
            return
        keep = self.option("checkpoints-to-keep")
        self.report(
            UNBOUNDED_CHECKPOINTS,
            node,
            args={"what": "save_total_limit is not set, so the Trainer keeps every checkpoint it writes"},
            claims=(Claim("file-is-no-test"),),
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
            claims=(Claim("file-is-no-test"),),
            fix=lambda source: Fix(
                f"save_top_k={keep}", (Edit(span_of(source, keep_all.node), str(keep)),), Applicability.UNSAFE, _REASON
            ),
        )


def _saves_often(strategies: tuple[object, ...]) -> bool:
    return bool(strategies) and all(value in ("steps", "epoch") for value in strategies)


def _keep_fix(source: Source, call: nodes.Call, name: str, keep: int) -> Fix:
    edit = add_keyword(source, span_of(source, call), name, str(keep))
    return Fix(f"set {name}={keep}", (edit,), Applicability.UNSAFE, _REASON)


def _is_save_method(node: nodes.Call) -> bool:
    return isinstance(node.func, nodes.Attribute) and node.func.attrname in _SAVE_METHODS


def _saved_path(node: nodes.Call, names: frozenset[str]) -> nodes.NodeNG | None:
    """The expression that names the file or folder which a call saves to; None for a call that saves nothing."""
    if names == {"torch.save"}:
        return Arguments(node, ("obj", "f"))["f"].node
    if _is_save_method(node):
        return node.args[0] if node.args else None
    last = node.func.attrname if isinstance(node.func, nodes.Attribute) else getattr(node.func, "name", "")
    if not _SAVE_HELPER.search(last):
        return None
    arguments = [*node.args, *(keyword.value for keyword in node.keywords)]
    return next((argument for argument in arguments if _looks_like_path(argument) and any(_counters(argument))), None)


def _looks_like_path(node: nodes.NodeNG) -> bool:
    """A formatted string, a path expression, or a name bound to one."""
    if isinstance(node, nodes.Name):
        values = [one.parent.value for one in node.lookup(node.name)[1] if isinstance(one.parent, nodes.Assign)]
        return any(_looks_like_path(value) for value in values if not isinstance(value, nodes.Name))
    if isinstance(node, nodes.JoinedStr):
        return True
    if isinstance(node, nodes.BinOp):
        return node.op in ("/", "%", "+") and (_looks_like_path(node.left) or _looks_like_path(node.right) or _is_text(node.left))
    if isinstance(node, nodes.Call):
        last = node.func.attrname if isinstance(node.func, nodes.Attribute) else getattr(node.func, "name", "")
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


def _of_bindings(node: nodes.Name, depth: int) -> Iterator[str]:
    for binding in node.lookup(node.name)[1]:
        if isinstance(binding.parent, (nodes.Assign, nodes.AnnAssign)) and binding.parent.value is not None:
            yield from _counters(binding.parent.value, depth + 1)


def _formatted_by_percent(node: nodes.BinOp) -> Iterator[str]:
    yield from (name for name in _identifiers(node.right) if _COUNTER.search(name.lower()))


def _of_call(node: nodes.Call, depth: int) -> Iterator[str]:
    last = node.func.attrname if isinstance(node.func, nodes.Attribute) else getattr(node.func, "name", "")
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
    elif isinstance(node, nodes.BinOp):
        yield from _identifiers(node.left)
        yield from _identifiers(node.right)
    elif isinstance(node, nodes.Tuple):
        for element in node.elts:
            yield from _identifiers(element)
    elif isinstance(node, nodes.Call) and isinstance(node.func, nodes.Name) and node.func.name in ("int", "str") and node.args:
        yield from _identifiers(node.args[0])
