"""Finds fused optimizers that fail, or that are not fused in fact."""

from __future__ import annotations

from collections.abc import Iterator

from astroid import nodes

from ldlm_lint.autofix.keywords import remove_arguments
from ldlm_lint.checkers.base import LdlmChecker, span_of
from ldlm_lint.checkers.step_names import last_name
from ldlm_lint.model import Applicability, Claim, Edit, Fix
from ldlm_lint.python.calls import Argument, Arguments, State
from ldlm_lint.python.memo import remembered
from ldlm_lint.python.names import bindings, is_named, qualified
from ldlm_lint.python.values import constant
from ldlm_lint.python.walks import nodes_of
from ldlm_lint.requirements import NEWEST_TORCH
from ldlm_lint.rules.fused import (
    CHECKED_IN_STEP,
    FUSED_CONFLICT,
    FUSED_FALLBACK_INEFFECTIVE,
    FUSED_LOST_ON_RESUME,
    FUSED_SINCE,
    RULES,
    WITHOUT_FUSED,
)
from ldlm_lint.source import Source
from ldlm_lint.wording import quoted

_CLASSES = WITHOUT_FUSED | FUSED_SINCE.keys()
_EXCLUDED = ("foreach", "differentiable")
_CATCHES_TYPES = {"TypeError", "AttributeError", "ImportError", "ValueError", "KeyError", "ModuleNotFoundError"}
_TESTS = Claim("stands-outside-tests")

_UNCLIPPED = "RuntimeError in training, because Lightning cannot clip gradients for a fused optimizer in mixed precision: drop `fused`"


class FusedChecker(LdlmChecker):
    """Fused optimizers that fail, or that are not fused in fact."""

    rules = RULES

    def visit_call(self, node: nodes.Call) -> None:
        """Check every call of a torch.optim class with ``fused``."""
        if not is_named(node.func, _CLASSES):
            return
        arguments = Arguments(node, ("params", "lr"))
        fused = arguments["fused"]
        if fused.absent or not _is_given(node, fused):
            return
        problem = self._problem(node, fused, arguments)
        if problem is not None:
            self._report_conflict(node, *problem)
        elif is_named(node.func, FUSED_SINCE.keys()) and _may_be_true(fused):
            self._check_lightning(node, fused)
            self._check_fallback(node, fused)
            self._check_resume(node)

    def _problem(self, node: nodes.Call, fused: Argument, arguments: Arguments) -> tuple[str, str] | None:
        """Why the constructor raises, and the argument to take out; None if it does not."""
        if _is_caught(node):
            return None
        if is_named(node.func, WITHOUT_FUSED):
            return f"TypeError: `{last_name(node.func)}` has no argument `fused`; drop it", "fused"
        target = self.option(NEWEST_TORCH)
        names = qualified(node.func)
        if target is not None and all(FUSED_SINCE[name] > target for name in names):
            since = ".".join(map(str, min(FUSED_SINCE[name] for name in names)))
            runs = ".".join(map(str, target))
            return f"TypeError: it has the argument since torch {since}, but the project runs on torch {runs}; drop `fused`", "fused"
        if not fused.is_only(True):
            return None
        other = next((name for name in _EXCLUDED if arguments[name].is_only(True)), None)
        surplus = "foreach" if other == "foreach" else "fused"
        return (f"RuntimeError: `fused=True` and `{other}=True` exclude each other; drop `{surplus}`", surplus) if other else None

    def _report_conflict(self, node: nodes.Call, problem: str, surplus: str) -> None:
        self.report(
            FUSED_CONFLICT,
            node,
            args={"call": _described(node), "problem": problem},
            claims=(_TESTS,),
            fix=lambda source: _removal(source, node, surplus),
        )

    def _check_lightning(self, node: nodes.Call, fused: Argument) -> None:
        function = node.scope()
        if not isinstance(function, nodes.FunctionDef) or function.name != "configure_optimizers":
            return
        if isinstance(function.parent, nodes.ClassDef) and (fused.is_only(True) or _asks_for_cuda(fused)):
            self.report(
                FUSED_CONFLICT,
                node,
                args={"call": _described(node), "problem": _UNCLIPPED},
                claims=(_TESTS, Claim("lightning-clips-mixed")),
                fix=lambda source: _removal(source, node, "fused"),
            )

    def _check_fallback(self, node: nodes.Call, fused: Argument) -> None:
        target = self.option(NEWEST_TORCH)
        if not fused.is_only(True) or (target is not None and target < CHECKED_IN_STEP):
            return
        handler = _fallback_of(node)
        if handler is not None:
            self.report(
                FUSED_FALLBACK_INEFFECTIVE,
                node,
                args={"optimizer": last_name(node.func)},
                related=[(handler, "the error never reaches this handler")],
                claims=(_TESTS,),
                fix=lambda source: _decided(source, node),
            )

    def _check_resume(self, node: nodes.Call) -> None:
        module = node.root()
        if remembered(module, ("sets fused",), lambda: _sets_fused(module)):
            return
        loads = [one for one in remembered(module, ("loads",), lambda: _loads_of(module)) if _restores(one, node)]
        self.report(
            FUSED_LOST_ON_RESUME,
            node,
            args={"optimizer": last_name(node.func)},
            related=[(one, "the flags of the checkpoint replace those of the constructor") for one in loads[:1]],
            claims=(_TESTS,) if loads else (_TESTS, Claim("optimizer-state-is-restored")),
            fix=(lambda source: _set_again(source, loads[0])) if loads else None,
        )


def _described(node: nodes.Call) -> str:
    """An optimizer with its argument as the call spells it."""
    given = next((one.value.as_string() for one in node.keywords if one.arg == "fused"), "True")
    return quoted(f"{last_name(node.func)}(fused={given})")


def _is_given(node: nodes.Call, fused: Argument) -> bool:
    """Whether the argument is certainly passed, by name or in a dictionary that the file decides."""
    return any(keyword.arg == "fused" for keyword in node.keywords) or fused.state is State.KNOWN


def _may_be_true(fused: Argument) -> bool:
    return fused.state is State.UNKNOWN or any(value is True for value in fused.values)


def _asks_for_cuda(fused: Argument) -> bool:
    return isinstance(fused.node, nodes.Call) and qualified(fused.node.func) == {"torch.cuda.is_available"}


def _is_caught(node: nodes.Call) -> bool:
    """Whether a ``try`` around a constructor catches what it raises: a handled test of the torch version."""
    return any(True for _ in _handlers_around(node))


def _handlers_around(node: nodes.Call) -> Iterator[nodes.ExceptHandler]:
    child: nodes.NodeNG = node
    for parent in node.node_ancestors():
        if isinstance(parent, (nodes.FunctionDef, nodes.Module)):
            return
        if isinstance(parent, nodes.Try) and child in parent.body:
            yield from parent.handlers
        child = parent


def _fallback_of(node: nodes.Call) -> nodes.ExceptHandler | None:
    """The handler that builds an optimizer again where this constructor fails; None if it serves other errors too."""
    for handler in _handlers_around(node):
        tried = [call for one in handler.parent.body for call in nodes_of(one, nodes.Call)]
        if any(last_name(call.func) == "step" for call in tried) or not _catches_device_errors(handler):
            continue
        again = (call for one in handler.body for call in nodes_of(one, nodes.Call))
        if any(_builds_without(call) for call in again):
            return handler
    return None


def _catches_device_errors(handler: nodes.ExceptHandler) -> bool:
    if handler.type is None:
        return True
    kinds = handler.type.elts if isinstance(handler.type, nodes.Tuple) else [handler.type]
    return any(last_name(kind) not in _CATCHES_TYPES for kind in kinds)


def _builds_without(call: nodes.Call) -> bool:
    fused = Arguments(call)["fused"]
    return is_named(call.func, _CLASSES) and (fused.absent or fused.is_only(False) or fused.state is State.UNKNOWN)


def _sets_fused(module: nodes.Module) -> bool:
    """Whether a file sets the key ``fused`` on something: a group of a restored optimizer."""
    targets = (target for one in nodes_of(module, nodes.Assign) for target in one.targets)
    return any(isinstance(one, nodes.Subscript) and constant(one.slice) == "fused" for one in targets)


def _loads_of(module: nodes.Module) -> list[nodes.Call]:
    """The calls of a file that load a state into something."""
    return [one for one in nodes_of(module, nodes.Call) if isinstance(one.func, nodes.Attribute) and one.func.attrname == "load_state_dict"]


def _restores(load: nodes.Call, made: nodes.Call) -> bool:
    """Whether a call loads a state into the optimizer that a constructor made."""
    owner = load.func.expr
    statement = made.statement()
    targets = statement.targets if isinstance(statement, nodes.Assign) else []
    if isinstance(owner, nodes.Name):
        return any(one in targets for one in bindings(owner))
    return any(isinstance(one, nodes.AssignAttr) and one.attrname == last_name(owner) for one in targets)


def _removal(source: Source, node: nodes.Call, name: str) -> Fix | None:
    keyword = next((one for one in node.keywords if one.arg == name), None)
    edits = remove_arguments(source, [span_of(source, keyword)]) if keyword is not None else None
    if edits is None:
        return None
    reason = "the optimizer then uses another implementation, and updates differ in the last bits"
    return Fix(f"remove {name}", edits, Applicability.UNSAFE, reason)


def _decided(source: Source, node: nodes.Call) -> Fix | None:
    keyword = next((one for one in node.keywords if one.arg == "fused"), None)
    if keyword is None:
        return None
    edit = Edit(span_of(source, keyword.value), "torch.cuda.is_available()")
    reason = "the file does not show whether the parameters are on that device and of a supported type"
    return Fix("set fused=torch.cuda.is_available()", (edit,), Applicability.DISPLAY, reason)


def _set_again(source: Source, load: nodes.Call) -> Fix | None:
    """Set the flag in the state before it is loaded: set afterwards, the step counts would stay on the CPU, where the
    kernels of a GPU cannot read them."""
    statement = load.statement()
    state = load.args[0] if len(load.args) == 1 else None
    if not isinstance(statement, nodes.Expr) or not isinstance(state, (nodes.Name, nodes.Attribute, nodes.Subscript)):
        return None
    text, newline = source.slice(span_of(source, state)), source.newline
    line = source.lines[(statement.lineno or 1) - 1]
    indent = line[: len(line) - len(line.lstrip())]
    start = source.line_starts[(statement.lineno or 1) - 1]
    if "\n" in text or span_of(source, statement).start != start + len(indent):
        return None
    step = "\t" if indent.endswith("\t") else "    "
    text = f'{indent}for group in {text}["param_groups"]:{newline}{indent}{step}group["fused"] = True{newline}'
    edit, reason = Edit(source.span(start, start), text), "the code does not show whether older checkpoints exist"
    return Fix("set fused in the state before loading it", (edit,), Applicability.DISPLAY, reason)
