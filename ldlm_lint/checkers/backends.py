"""Finds switches of the numerical backends that slow a training down or contradict each other."""

from __future__ import annotations

from collections.abc import Iterator

from astroid import nodes

from ldlm_lint import tables
from ldlm_lint.checkers.base import LdlmChecker, span_of
from ldlm_lint.checkers.training_entries import entry_of, insert_at_entry, torch_at
from ldlm_lint.model import Applicability, Claim, Edit, Fix, Interface
from ldlm_lint.python.names import is_named, qualified
from ldlm_lint.python.places import function_of, position_of, scope_name
from ldlm_lint.python.skim import without_comments
from ldlm_lint.python.values import constant
from ldlm_lint.python.walks import nodes_of
from ldlm_lint.rules.backends import (
    CONVOLUTION_AUTOTUNER_OFF,
    RULES,
    TF32_DISABLED,
)
from ldlm_lint.rules.roles import speaks_of_debugging
from ldlm_lint.source import Source
from ldlm_lint.wording import remark_at

_CUDNN = "torch.backends.cudnn"
_DETERMINISTIC = {"torch.use_deterministic_algorithms", "torch.set_deterministic"}
_OF_COURSE = ("__name__", "cuda.is_available", "cudnn.enabled", "cudnn.is_available")
_TF32_REASON = "float32 products lose precision: their inputs are rounded to 10 bits of mantissa"
_BENCHMARK_REASON = "the chosen algorithms can differ from run to run, and with them the last bits"


class BackendsChecker(LdlmChecker):
    """Switches of the numerical backends."""

    rules = RULES

    def visit_module(self, node: nodes.Module) -> None:
        """Check the settings of a file for the whole process, and settings that are missing at the beginning of a
        script."""
        data = self.source.data
        if b"deterministic" in data or b".benchmark" in data:
            self._check_settings(node)
        self._check_entry(node)

    def _check_settings(self, module: nodes.Module) -> None:
        for settings in _by_function(module):
            guards = [node for node, name, value in settings if name != "benchmark" and value is True]
            if any(name != "benchmark" and value is not True for _, name, value in settings):
                continue
            if not guards and all(value is False for _, _, value in settings):
                self._report_benchmark([node for node, _, _ in settings])

    def _report_benchmark(self, settings: list[nodes.NodeNG]) -> None:
        loose = [node for node in settings if not _is_conditional(node)]
        span = self.span(loose[0]) if loose else None
        # A reason in a comment next to it shows a decision.
        if span is None or remark_at(self.source, span.start, span.end):
            return
        self.report(
            CONVOLUTION_AUTOTUNER_OFF,
            loose[0],
            args={"problem": "`torch.backends.cudnn.benchmark` is False"},
            claims=(
                Claim("runs-in-training", _place(loose[0])),
                Claim("convolves-one-size", "set"),
                Claim("trains-on-cuda"),
            ),
            fix=lambda source: _turned(source, loose, "True", _BENCHMARK_REASON),
        )

    def _check_entry(self, module: nodes.Module) -> None:
        entry = entry_of(module)
        data = without_comments(self.source.data)
        if entry is None or not any(word in data for word in TF32_DISABLED.requires[0]):
            return
        torch = torch_at(entry.first) or "torch"
        if not any(word in data for word in TF32_DISABLED.silencers):
            line = f'{torch}.set_float32_matmul_precision("high")'
            needs = (tables.interface("torch.set_float32_matmul_precision"),)
            self.report(
                TF32_DISABLED,
                entry.place,
                claims=(Claim("runs-full-precision-training"), Claim("trains-on-cuda")),
                fix=lambda source: _inserted(insert_at_entry(source, entry, line), line, _TF32_REASON, needs),
            )
        if b".benchmark" not in data and b"deterministic" not in data:
            setting = f"{torch}.backends.cudnn.benchmark = True"
            self.report(
                CONVOLUTION_AUTOTUNER_OFF,
                entry.place,
                args={"problem": "nothing turns `torch.backends.cudnn.benchmark` on"},
                claims=(Claim("convolves-one-size", "unset"), Claim("trains-on-cuda")),
                fix=lambda source: _inserted(insert_at_entry(source, entry, setting), setting, _BENCHMARK_REASON),
            )


def _inserted(edit: Edit | None, line: str, reason: str, needs: tuple[Interface, ...] = ()) -> Fix | None:
    return Fix(f"add {line}", (edit,), Applicability.UNSAFE, reason, needs=needs) if edit else None


def _settings(module: nodes.Module) -> Iterator[tuple[nodes.NodeNG, str, object]]:
    """The statements that set cuDNN's switches or torch's deterministic mode, with the value if it is one constant."""
    for node in nodes_of(module, (nodes.Assign, nodes.Call)):
        if isinstance(node, nodes.Assign):
            names = [one.attrname for one in node.targets if _is_switch(one)]
            yield from ((node, name, constant(node.value)) for name in names)
        elif is_named(node.func, _DETERMINISTIC):
            mode = node.args[0] if node.args else next((one.value for one in node.keywords if one.arg == "mode"), None)
            warns = any(one.arg == "warn_only" and constant(one.value) is True for one in node.keywords)
            yield node, "algorithms", None if warns else constant(mode)


def _is_switch(target: nodes.NodeNG) -> bool:
    if not isinstance(target, nodes.AssignAttr) or target.attrname not in ("deterministic", "benchmark"):
        return False
    return qualified(target.expr) == {_CUDNN}


def _by_function(module: nodes.Module) -> Iterator[list[tuple[nodes.NodeNG, str, object]]]:
    groups: dict[int, list[tuple[nodes.NodeNG, str, object]]] = {}
    for found in _settings(module):
        groups.setdefault(id(function_of(found[0])), []).append(found)
    yield from groups.values()


def _is_conditional(node: nodes.NodeNG) -> bool:
    """Whether a choice of the user decides about a statement."""
    function = function_of(node)
    if isinstance(function, nodes.FunctionDef) and speaks_of_debugging(function.name):
        return True
    child, parent = node, node.parent
    while parent is not None:
        if isinstance(parent, (nodes.If, nodes.IfExp)) and child is not parent.test:
            text = parent.test.as_string()
            if not any(word in text for word in _OF_COURSE):
                return True
        child, parent = parent, parent.parent
    return isinstance(function, nodes.FunctionDef) and _leaves_early(function, node)


def _leaves_early(function: nodes.FunctionDef, node: nodes.NodeNG) -> bool:
    """``if args.seed is None: return`` before a statement decides about it as well."""
    return any(
        isinstance(one, nodes.If) and (one.lineno or 0) < (node.lineno or 0) and isinstance(one.body[-1], nodes.Return)
        for one in function.body
    )


def _place(node: nodes.NodeNG) -> str:
    return f"{scope_name(function_of(node))}|{position_of(node)}"


def _turned(source: Source, settings: list[nodes.NodeNG], value: str, reason: str) -> Fix | None:
    """The fix that gives settings another literal value."""
    literals = [
        node.value if isinstance(node, nodes.Assign) else (node.args or [one.value for one in node.keywords])[0]
        for node in settings
    ]
    if not all(isinstance(one, nodes.Const) for one in literals):
        return None
    edits = tuple(Edit(span_of(source, one), value) for one in literals)
    return Fix(f"set it to {value}", edits, Applicability.UNSAFE, reason)
