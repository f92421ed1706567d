"""Scripts that start ranks through ``python -m torch.distributed.launch``."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tree_sitter import Node

from ldlm_lint import tables
from ldlm_lint.model import Applicability, Claim, Edit, Finding, Fix
from ldlm_lint.patterns import lazily
from ldlm_lint.rules.launch import DEPRECATED_LAUNCHER
from ldlm_lint.shell import tree
from ldlm_lint.shell.launch_code import Code
from ldlm_lint.shell.script import Reading
from ldlm_lint.shell.text import Text

_MODULE = lazily(rb"-m(?:[ \t]|\\\n)+(torch\.distributed\.launch)(?![\w.-])")
_PYTHON = lazily(rb"(?<![\w./$}-])python3?[ \t]+\Z")
_USE_ENV = lazily(rb"^[ \t]+--use[_-]env[ \t]*\\\n|[ \t]+--use[_-]env(?![\w=-])", re.M)
_SPEAKERS = frozenset({"echo", "printf", "cat", "grep", "egrep", "rg", "sed", "awk", "log", "info", "pkill", "pgrep", "ps", "die", "warn"})
_DATA = ("comment", "heredoc_body")
_COMMAND = lazily(rb"[ \t]*(?:[A-Za-z_]\w*=\S*[ \t]+)*(?:\S*/)?python[\d.]*[ \t]+(?:-[A-Zbu]+[ \t]+)*-m[ \t]+\Z")
_REASON = "the script no longer gets a rank argument and must read `LOCAL_RANK` from its environment"


def deprecated(code: Code) -> Iterator[Finding]:
    """Every place of a script, its strings included, that runs the old launcher."""
    rule = DEPRECATED_LAUNCHER
    for match in _MODULE.finditer(code.text.data):
        node = code.root.descendant_for_byte_range(*match.span(1))
        home = node and _home(code, node, match.start(1))
        if home is not None:
            span = code.text.span(match.start(), match.end())
            environment = _USE_ENV.search(code.text.data, match.end(), home.end_byte)
            claims = () if environment else (Claim("program-needs-no-rank-argument"),)
            yield Finding(rule.symbol, rule.code, span, fix=_fix(code.text, match, home), claims=claims)


def _home(code: Code, node: Node, module: int) -> Node | None:
    """The command or assignment that runs the code at a node; None if it is only text."""
    for one in (node, *tree.ancestors(node)):
        if one.type in _DATA:
            return None
        if one.type == "ERROR" or (one.type == "command" and one.has_error):
            # Unparsed text may still be plain at the relevant place.
            line = code.text.line_start(module)
            return one if _COMMAND.match(code.text.data, line, module) else None
        if one.type == "command":
            written = tree.words(one)
            name = code.text.of_node(written[0]).rpartition("/")[2] if written else ""
            return None if name in _SPEAKERS else one
        if one.type == "variable_assignment":
            bound = one.child_by_field_name("name")
            return one if bound is not None and _is_used(code, code.text.of_node(bound)) else None
    return None


def _is_used(code: Code, name: str) -> bool:
    return any(one.name == name and one.reading is Reading.USED for one in code.script.expansions)


def _fix(text: Text, match: re.Match[bytes], home: Node) -> Fix:
    """``torchrun`` for ``python -m …``; another interpreter or its options stay, with the module after torchrun."""
    python = _PYTHON.search(text.data, max(match.start() - 20, home.start_byte), match.start())
    if python is not None:
        first, title = Edit(text.span(python.start(), match.end()), "torchrun"), "torchrun"
    else:
        first, title = Edit(text.span(*match.span(1)), "torch.distributed.run"), "python -m torch.distributed.run"
    flags = (Edit(text.span(*flag.span()), "") for flag in _USE_ENV.finditer(text.data, match.end(), home.end_byte))
    return Fix(f"start it with {title}", (first, *flags), Applicability.UNSAFE, _REASON, needs=(tables.interface("torchrun"),))
