"""``# pylint:`` comments with the scopes of pylint 4, so that the command and the pylint plugin silence the same lines.

pylint has no public interface for them without a linter, so its rule is implemented here: the comment belongs to the
innermost node around its line, and what it covers depends on that node. A test compares the lines with pylint's own
answer.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from astroid import nodes

from ldlm_lint.families import ALL_FAMILIES, UMBRELLAS
from ldlm_lint.model import Rule
from ldlm_lint.patterns import lazily
from ldlm_lint.pragmas import Comment
from ldlm_lint.python.tree import parse
from ldlm_lint.source import Source

_PRAGMA = lazily(r"#.*?\bpylint:\s*([^;#\n]+)")
_ACTION = lazily(r"(disable-next|disable|enable|skip-file|disable-all)\b\s*(?:=\s*([\w-]+(?:\s*,\s*[\w-]+)*))?")
_EVERY_RULE = "all"


@dataclass(frozen=True)
class PylintPragmas:
    """The switches in the comments of one file; ``skip`` silences the whole file.

    A switch is a line, whether it switches on, whether it holds for the block around it, and the names.
    """

    skip: bool = False
    switches: tuple[tuple[int, bool, bool, frozenset[str]], ...] = ()
    module: nodes.Module | None = None
    _states: dict[str, dict[int, bool]] = field(default_factory=dict)

    def disables(self, rule: Rule, line: int) -> bool:
        """Whether messages of a rule are switched off at a 1-based line."""
        return self.skip or not self._state(rule).get(line, True)

    def enables(self, rule: Rule, line: int) -> bool:
        """Whether a comment switches messages of a rule on at a 1-based line, and none switches them off again."""
        return any(on for _, on, _, _ in self._about(rule)) and self._state(rule).get(line, False)

    def _about(self, rule: Rule) -> Iterator[tuple[int, bool, bool, frozenset[str]]]:
        """The switches that name a rule by any of its names."""
        names = {rule.symbol, rule.code, rule.code[0], *rule.old_names, UMBRELLAS.get(rule.family, ""), ALL_FAMILIES}
        for switch in self.switches:
            _, on, _, listed = switch
            if not listed.isdisjoint(names) or (on and _EVERY_RULE in listed):
                yield switch

    def _state(self, rule: Rule) -> dict[int, bool]:
        if rule.symbol not in self._states:
            self._states[rule.symbol] = self._lines(rule)
        return self._states[rule.symbol]

    def _lines(self, rule: Rule) -> dict[int, bool]:
        state: dict[int, bool] = {}
        for line, on, around, _ in self._about(rule):
            if not around or self.module is None or not _spread(self.module, line, on, state):
                state[line] = on
        return state


def pylint_pragmas(source: Source, comments: Iterable[Comment]) -> PylintPragmas | None:
    """The ``pylint`` pragmas among a file's comments; None if there are none.

    In a file with a syntax error the scopes are those of the part that is before it, and after it a pragma applies to
    its own line.
    """
    switches: list[tuple[int, bool, bool, frozenset[str]]] = []
    for comment in comments:
        for action, names in _actions(comment.text):
            if action in ("skip-file", "disable-all") or (action == "disable" and _EVERY_RULE in names):
                return PylintPragmas(skip=True)
            # After a backslash the comment ends a line that pylint counts as part of the line before.
            line = comment.line - _backslashes(source, comment)
            if action == "disable-next":
                switches.append((line + 1, False, False, names))
            else:
                switches.append((line, action == "enable", True, names))
    if not switches:
        return None
    return PylintPragmas(False, tuple(switches), parse(source, "ldlm_lint_pragmas").module)


def _actions(text: str) -> Iterator[tuple[str, frozenset[str]]]:
    match = _PRAGMA.search(text)
    for found in _ACTION.finditer(match[1]) if match else ():
        yield found[1], frozenset(name.strip() for name in (found[2] or "").split(",")) - {""}


def _backslashes(source: Source, comment: Comment) -> int:
    before = source.lines[comment.line - 2] if comment.line > 1 else ""
    return int(not comment.alone and before.endswith("\\"))


def _spread(node: nodes.NodeNG, line: int, on: bool, state: dict[int, bool]) -> bool:
    """Write a switch at ``line`` into the lines of the innermost node around it; False if no node is."""
    if node.lineno != node.end_lineno and any(_spread(child, line, on, state) for child in node.get_children()):
        return True
    if not node.fromlineno <= line <= node.tolineno:
        return False
    scoped = isinstance(node, (nodes.Module, nodes.ClassDef, nodes.FunctionDef)) and node.body
    first_child = node.body[0].fromlineno if scoped else node.tolineno
    start, end = _block(node, line)
    if start == node.fromlineno and start >= first_child and start in state:
        start = line
    # After its first statement a switch does not affect the lines before it in the block.
    current = True if line > first_child else on
    first_kept = node.fromlineno if isinstance(node, nodes.Module) else node.fromlineno + 1
    for each in range(start, end + 1):
        if first_kept <= each < line and each in state:
            continue
        current = on if each == line else current
        state[each] = current
    return True


def _block(node: nodes.NodeNG, line: int) -> tuple[int, int]:
    try:
        return node.block_range(line)
    except AttributeError:
        # astroid 4.0 asks the first statement of an ``else`` for its own ``else``, which a ``with`` does not have.
        return line, node.tolineno
