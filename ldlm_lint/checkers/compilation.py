"""Finds fallbacks around torch.compile that can never happen."""

from __future__ import annotations

from collections.abc import Iterator

from astroid import nodes

from ldlm_lint.checkers.base import LdlmChecker, span_of
from ldlm_lint.model import Applicability, Claim, Edit, Fix
from ldlm_lint.patterns import lazily
from ldlm_lint.python.names import is_named, qualified
from ldlm_lint.python.walks import nodes_of
from ldlm_lint.rules.compilation import COMPILE_GUARDED_BY_TRY, RULES
from ldlm_lint.source import Source
from ldlm_lint.wording import quoted

_COMPILE = frozenset({"torch.compile"})
# These exceptions test whether the name exists at all, or handle a user's interrupt.
_ASKS_SOMETHING_ELSE = lazily(
    r"Attribute|Import|ModuleNotFound|KeyboardInterrupt|SystemExit|TypeError|NameError|NotFound"
)
_SAYS_SOMETHING = lazily(
    r"^(print|log\w*|info|debug|warn\w*|error|rank_zero_\w+|print_\w+|main_print|tqdm|write|time|perf_counter)$"
)
_ONLY_LOOKS = lazily(
    r"^(getattr|hasattr|setattr|isinstance|callable|str|len|int|bool|get|format|dict|"
    r"set_float32_matmul_precision|reset|is_available|get_device_capability|get_device_name)$"
)

_REASON = "only you can decide whether to fall back, and how"


class CompilationChecker(LdlmChecker):
    """torch.compile."""

    rules = RULES

    def visit_try(self, node: nodes.Try) -> None:
        """Check every ``try`` that compiles and continues after any error."""
        # torch itself continues without compiling if the file requests it.
        if any(word in self.source.data for word in COMPILE_GUARDED_BY_TRY.silencers):
            return
        if not node.handlers or not all(_goes_on(handler) for handler in node.handlers):
            return
        compiled = [call for call in _calls(node.body) if _is_compile(call)]
        if not compiled or not self._only_compiles(node, compiled):
            return
        first = compiled[0]
        self.report(
            COMPILE_GUARDED_BY_TRY,
            first,
            args={"target": _target(first)},
            related=[
                (node.handlers[0].type or node.handlers[0].body[0], "a compilation error never reaches this handler")
            ],
            claims=(Claim("stands-outside-tests"), Claim("torch-compiles-on-its-python")),
            fix=lambda source: _without_try(source, node),
        )

    def _only_compiles(self, statement: nodes.Try, compiled: list[nodes.Call]) -> bool:
        """Whether the body does nothing else that may fail, in particular no call of the compiled model."""
        if any(
            True for part in statement.body for _ in nodes_of(part, (nodes.Import, nodes.ImportFrom, nodes.Raise))
        ):
            return False
        return all(
            call in compiled or _is_harmless(call, compiled) for call in _calls(statement.body + statement.orelse)
        )


def _calls(body: list[nodes.NodeNG]) -> Iterator[nodes.Call]:
    for statement in body:
        yield from nodes_of(statement, nodes.Call)


def _is_compile(call: nodes.Call) -> bool:
    """``torch.compile(model)``, not the decorator factory ``torch.compile(mode=...)``; ``model.compile()`` of a module
    cannot be distinguished from Keras's."""
    return is_named(call.func, _COMPILE) and bool(call.args or any(one.arg == "model" for one in call.keywords))


def _goes_on(handler: nodes.ExceptHandler) -> bool:
    """Whether a handler is meant for any error of compilation, and lets the program continue."""
    caught = handler.type.as_string() if handler.type is not None else ""
    if _ASKS_SOMETHING_ELSE.search(caught):
        return False
    stops = nodes_of(handler, (nodes.Raise, nodes.Assert))
    ends = (call for call in nodes_of(handler, nodes.Call) if qualified(call.func) <= {"sys.exit", "os._exit"})
    return not any(True for _ in stops) and not any(True for _ in ends)


def _is_harmless(call: nodes.Call, compiled: list[nodes.Call]) -> bool:
    """A call that prints or inspects something, or builds the arguments of the compilation."""
    name = call.func.attrname if isinstance(call.func, nodes.Attribute) else getattr(call.func, "name", "")
    if _SAYS_SOMETHING.search(name) or _ONLY_LOOKS.search(name):
        return True
    return any(parent in compiled for parent in call.node_ancestors())


def _target(call: nodes.Call) -> str:
    """The name of the compiled model."""
    parent = call.parent
    if isinstance(parent, nodes.Assign):
        return quoted(parent.targets[0].as_string())
    return "the model"


def _without_try(source: Source, statement: nodes.Try) -> Fix:
    """The body alone, with today's behaviour; with edits if the ``try`` contains nothing else."""
    title = "remove the try, which changes nothing today"
    return Fix(title, _body_alone(source, statement), Applicability.DISPLAY, _REASON)


def _body_alone(source: Source, statement: nodes.Try) -> tuple[Edit, ...]:
    if statement.orelse or statement.finalbody:
        return ()
    whole, first, last = (span_of(source, one) for one in (statement, statement.body[0], statement.body[-1]))
    body = source.slice(source.span(first.start, last.end))
    inner, outer = (_indent(source, one) for one in (statement.body[0], statement))
    newline = source.newline
    return (Edit(whole, body.replace(f"{newline}{inner}", f"{newline}{outer}")),)


def _indent(source: Source, statement: nodes.NodeNG) -> str:
    line = source.lines[statement.lineno - 1]
    return line[: len(line) - len(line.lstrip())]
