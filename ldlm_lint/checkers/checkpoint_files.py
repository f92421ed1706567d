"""Finds saves under numbered names; whether they stand in a training loop and who prunes them the project knows."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from astroid import nodes

from ldlm_lint.autofix.calls import add_keyword
from ldlm_lint.checkers.base import LdlmChecker, span_of
from ldlm_lint.checkers.checkpoint_counters import (
    bound_values,
    counters_in,
    identifiers,
    is_text,
    loop_counters,
)
from ldlm_lint.checkers.checkpoint_rotation import rotation_fix
from ldlm_lint.checkers.checkpoint_uses import is_rotated
from ldlm_lint.checkers.mm_configs import KEEP, is_settings, keeps_every_checkpoint
from ldlm_lint.model import Applicability, Claim, Confidence, Edit, Fix
from ldlm_lint.patterns import lazily
from ldlm_lint.python.calls import Arguments, State
from ldlm_lint.python.checkpoint_words import COUNTER, SAVE_HELPER, SAVE_METHODS
from ldlm_lint.python.names import bindings, last_name, qualified
from ldlm_lint.python.places import function_of as enclosing_function
from ldlm_lint.python.places import loops_around, position_of, scope_name
from ldlm_lint.python.walks import nodes_of
from ldlm_lint.rules.checkpoint_files import RULES, UNBOUNDED_CHECKPOINTS
from ldlm_lint.rules.kept_checkpoints import HANDFUL
from ldlm_lint.source import Source
from ldlm_lint.wording import listed

if TYPE_CHECKING:
    from ldlm_lint.checkers.host import Host

_MODEL_CHECKPOINT = frozenset({"lightning.callbacks.ModelCheckpoint"})
_PERIODIC = frozenset(
    f"{module}.PeriodicCheckpointer"
    for module in ("fvcore.common.checkpoint", "detectron2.checkpoint", "detectron2.checkpoint.detection_checkpoint", "detectron2.engine.hooks")
)
_OF_PERIODIC = ("checkpointer", "period", "max_iter", "max_to_keep")
# A folder for each call; what writes it anew (``storage_writer``) may be given instead of its name.
_SHARDED_SAVES = frozenset(
    f"torch.distributed.checkpoint.{module}{function}"
    for module in ("", "state_dict_saver.")
    for function in ("save", "async_save")
)
_BY_PRODUCT = lazily(
    r"eval|metric|result|sample|predict|history|stats|embed|feature|latents?$|image|logits|output|trajector|rollout|generat"
    r"|(^|_)(val|valid|validation|test)(_|$)"
)
_FOLDER = lazily(r"^out(put)?_?(dir|directory|folder|path|root)$")
_STATE = lazily(r"state|model|net|ckpt|checkpoint|optim|weights|param|ema|snapshot")
_SAVING_OWNERS = ("fabric", "_fabric", "accelerator", "_accelerator")
_REASON = "older checkpoints are deleted during the run, so that no later resume or evaluation can pick one; the best one stays only where the framework is told which metric decides"


class _Save(NamedTuple):
    """A call that saves under a numbered name: where it stands, the counters in it, what the project must confirm."""

    node: nodes.Call
    place: str
    counters: tuple[str, ...]
    claims: tuple[Claim, ...]


class CheckpointFilesChecker(LdlmChecker):
    """How many checkpoints a training keeps."""

    rules = RULES

    def __init__(self, linter: Host) -> None:
        super().__init__(linter)
        self._saves: dict[tuple[str, str, int], list[_Save]] = {}

    def visit_module(self, _node: nodes.Module) -> None:
        """Start a file."""
        self._saves = {}

    def leave_module(self, _node: nodes.Module) -> None:
        """Report the saves of one place together: model and optimizer of one step are one defect."""
        for saves in self._saves.values():
            first = min(saves, key=lambda save: len(save.claims))
            counters = listed(sorted({counter for save in saves for counter in save.counters}))
            made = "file" if qualified(first.node.func) == {"torch.save"} else "checkpoint"
            self.report(
                UNBOUNDED_CHECKPOINTS,
                first.node,
                args={"what": f"the {made} name contains {counters}, so every save makes a new {made}"},
                confidence=Confidence.MEDIUM,
                related=[(save.node, "this is saved together with it") for save in saves if save is not first],
                claims=(
                    Claim("stands-in-training-loop", first.place),
                    Claim("nothing-prunes-checkpoints"),
                    *first.claims,
                    Claim("old-checkpoints-may-go", " ".join(position_of(save.node) for save in saves)),
                ),
                fix=functools.partial(_rotation, saves=saves, keep=self.option("checkpoints-to-keep")),
            )

    def visit_call(self, node: nodes.Call) -> None:
        """Look at saves, and at the frameworks' settings that decide how many they keep."""
        names = qualified(node.func)
        if names <= _MODEL_CHECKPOINT:
            self._check_model_checkpoint(node)
        elif names <= _PERIODIC:
            self._check_periodic(node)
        elif is_settings(node):
            self._check_hook(node)
        elif (target := _saved_path(node, names)) is not None:
            self._check_save(node, target, names)

    def _check_hook(self, node: nodes.Call) -> None:
        """``checkpoint_config = dict(interval=1)`` in a configuration of OpenMMLab."""
        if not keeps_every_checkpoint(node):
            return
        keep = self.option("checkpoints-to-keep")
        self.report(
            UNBOUNDED_CHECKPOINTS,
            node,
            args={"what": f"`{KEEP}` is not set, so the CheckpointHook keeps every checkpoint"},
            claims=(Claim("is-setting-of-mm", KEEP),),
            fix=lambda source: _keep_fix(source, node, KEEP, keep),
        )

    def _check_save(self, node: nodes.Call, target: nodes.NodeNG, names: frozenset[str]) -> None:
        counters = sorted({*counters_in(target), *loop_counters(node, target)})
        if not counters or _only_at_milestones(node, counters) or _is_by_product(node, target) or is_rotated(node, target) or _ends_loop(node):
            return
        loops = ",".join(str(loop.lineno or 0) for loop in loops_around(node))
        place = f"{scope_name(enclosing_function(node))}|{loops}"
        certain = names == {"torch.save"} or names <= _SHARDED_SAVES or (_is_save_method(node) and node.args[:1] == [target]) or _is_save_of_library(node)
        claims: tuple[Claim, ...] = () if certain else (Claim("callee-saves", f"{node.lineno}:{node.col_offset}"),)
        function = enclosing_function(node)
        if len(counters) == 1 and isinstance(function, nodes.FunctionDef) and counters[0] in {one.name for one in function.args.arguments}:
            # It may be called with one name and no number, whatever the parameter is called.
            claims += (Claim("calls-give-numbers", f"{scope_name(function)}|{counters[0]}"),)
        if _may_wait(node):
            claims += (Claim("save-is-not-optional", f"{node.lineno}:{node.col_offset}"),)
        self._saves.setdefault((_outermost_function(node), loops, _guard(node)), []).append(_Save(node, place, tuple(counters), claims))

    def _check_periodic(self, node: nodes.Call) -> None:
        """``PeriodicCheckpointer(checkpointer, period=5000)`` of fvcore keeps all unless it is told how many."""
        arguments = Arguments(node, _OF_PERIODIC)
        limit, period, length = (arguments[name] for name in ("max_to_keep", "period", "max_iter"))
        if not (limit.absent or limit.is_only(None)) or _few(period.values, length.values):
            return
        keep = self.option("checkpoints-to-keep")
        self.report(
            UNBOUNDED_CHECKPOINTS,
            node,
            args={"what": "`max_to_keep` is not set, so the PeriodicCheckpointer keeps every checkpoint"},
            claims=(Claim("belongs-to-training"),),
            fix=lambda source: _keep_fix(source, node, "max_to_keep", keep),
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
            args={"what": "`save_top_k=-1` keeps every checkpoint"},
            claims=(Claim("belongs-to-training"), Claim("lightning-saves-again", f"{node.lineno}:{node.col_offset}")),
            fix=lambda source: Fix(
                f"set save_top_k={keep}", (Edit(span_of(source, keep_all.node), str(keep)),), Applicability.UNSAFE, _REASON
            ),
        )


def _rotation(source: Source, saves: Sequence[_Save], keep: int) -> Fix | None:
    return rotation_fix(source, [save.node for save in saves], keep)


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
        if isinstance(parent, nodes.If) and any(COUNTER.search(name.lower()) for name in _all_names(parent.test)):
            line = parent.lineno or 0
    return line


def _may_wait(node: nodes.Call) -> bool:
    """Whether a save stands under tests of which one takes a remainder and there is another: the interval may be off."""
    tests = [one.test for one in node.node_ancestors() if isinstance(one, nodes.If)]
    parts = sum(len(test.values) if isinstance(test, nodes.BoolOp) else 1 for test in tests)
    return parts > 1 and any(one.op == "%" for test in tests for one in nodes_of(test, nodes.BinOp))


def _only_at_milestones(node: nodes.Call, counters: list[str]) -> bool:
    """Guarded by ``if step in MILESTONES`` or ``if step == last``: as many files as there are milestones."""
    for parent in node.node_ancestors():
        if isinstance(parent, nodes.FunctionDef):
            return False
        if isinstance(parent, nodes.If) and _is_milestone(parent.test, counters):
            return True
    return False


def _ends_loop(node: nodes.Call) -> bool:
    """``if last_step: save(step); break`` in a loop that nothing repeats: it saves once."""
    child: nodes.NodeNG = node
    for parent in node.node_ancestors():
        if isinstance(parent, (nodes.For, nodes.While, nodes.FunctionDef)):
            return False
        if isinstance(parent, nodes.If):
            block = parent.body if child in parent.body else parent.orelse
            if child in block and isinstance(block[-1], nodes.Break):
                return len(loops_around(node)) == 1
        child = parent
    return False


def _is_milestone(test: nodes.NodeNG, counters: list[str]) -> bool:
    if isinstance(test, nodes.BoolOp):
        parts = (_is_milestone(value, counters) for value in test.values)
        return all(parts) if test.op == "or" else any(parts)
    return isinstance(test, nodes.Compare) and test.ops[0][0] in ("in", "==") and _counts(test, counters)


def _counts(compare: nodes.Compare, counters: list[str]) -> bool:
    """A counter itself is compared, not a remainder of it."""
    sides = [compare.left, *(side for _, side in compare.ops)]
    return any(name in counters for side in sides for name in identifiers(side))


def _is_by_product(node: nodes.Call, target: nodes.NodeNG) -> bool:
    """What is saved is named like a result of the training (metrics, samples), not like its state.

    ``accelerator.save_state(output_dir)`` names no object: what the method saves is state, whatever its folder is called.
    """
    if _is_save_method(node) and node.args[:1] == [target]:
        return False
    words = [name.lower() for argument in node.args[:1] for name in _all_names(argument) if not _FOLDER.search(name.lower())]
    words.append(last_name(node.func).lower())
    return any(map(_BY_PRODUCT.search, words)) and not any(map(_STATE.search, words))


def _all_names(node: nodes.NodeNG) -> Iterator[str]:
    for inner in nodes_of(node, (nodes.Name, nodes.Attribute)):
        yield inner.name if isinstance(inner, nodes.Name) else inner.attrname


def _few(period: tuple[object, ...], length: tuple[object, ...]) -> bool:
    """Whether a run of known length makes a handful of saves."""
    numbers = [one for one in (*period, *length) if isinstance(one, int) and one > 0]
    return len(numbers) == len(period) + len(length) == 2 and numbers[1] <= HANDFUL * numbers[0]


def _keep_fix(source: Source, call: nodes.Call, name: str, keep: int) -> Fix | None:
    edit = add_keyword(source, span_of(source, call), name, str(keep))
    return Fix(f"set {name}={keep}", (edit,), Applicability.UNSAFE, _REASON) if edit else None


def _is_save_method(node: nodes.Call) -> bool:
    return (
        isinstance(node.func, nodes.Attribute)
        and node.func.attrname in SAVE_METHODS
        and not _is_imported_module(node.func.expr)
    )


def _is_save_of_library(node: nodes.Call) -> bool:
    """``fabric.save(path, state)`` of Lightning, ``accelerator.save(state, path)`` of Accelerate."""
    return isinstance(node.func, nodes.Attribute) and node.func.attrname == "save" and last_name(node.func.expr) in _SAVING_OWNERS


def _is_imported_module(node: nodes.NodeNG) -> bool:
    """``import utils``: what is called of it is a function of the project, which takes its path anywhere."""
    found = bindings(node) if isinstance(node, nodes.Name) else []
    return bool(found) and all(isinstance(one, nodes.Import) for one in found)


def _saved_path(node: nodes.Call, names: frozenset[str]) -> nodes.NodeNG | None:
    """The expression that names the file or folder which a call saves to; None for a call that saves nothing."""
    if names == {"torch.save"}:
        return Arguments(node, ("obj", "f"))["f"].node
    if names <= _SHARDED_SAVES:
        return Arguments(node)["checkpoint_id"].node
    # The method of a library takes its path first; a function or method of the project's own takes it anywhere.
    if _is_save_method(node) and node.args and _is_numbered(node, node.args[0]):
        return node.args[0]
    if not SAVE_HELPER.search(last_name(node.func)):
        return None
    arguments = [*node.args, *(keyword.value for keyword in node.keywords)]
    return next((one for one in arguments if _looks_like_path(one) and _is_numbered(node, one)), None)


def _is_numbered(node: nodes.Call, path: nodes.NodeNG) -> bool:
    return any(counters_in(path)) or bool(loop_counters(node, path))


def _looks_like_path(node: nodes.NodeNG) -> bool:
    """A formatted string, a path expression, or a name bound to one."""
    if isinstance(node, nodes.Name):
        return any(_looks_like_path(value) for value in bound_values(node) if not isinstance(value, nodes.Name))
    if isinstance(node, nodes.JoinedStr):
        return True
    if isinstance(node, nodes.BinOp):
        return node.op in ("/", "%", "+") and (_looks_like_path(node.left) or _looks_like_path(node.right) or is_text(node.left))
    if isinstance(node, nodes.Call):
        last = last_name(node.func)
        return last in ("join", "format", "str", "Path", "joinpath") and (
            last in ("join", "format", "joinpath") or any(map(_looks_like_path, node.args))
        )
    return False
