"""Trainings whose output goes into a filter, in scripts that do not check the status of the training."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tree_sitter import Node

from ldlm_lint.model import Applicability, Claim, Edit, Finding, Fix
from ldlm_lint.patterns import lazily
from ldlm_lint.rules.launch import PIPELINE_HIDES_FAILURE
from ldlm_lint.shell import tree
from ldlm_lint.shell.launch_code import Code
from ldlm_lint.shell.launch_entries import is_training
from ldlm_lint.shell.script import Launch
from ldlm_lint.source import Source

_OTHER_SHELLS = ("command_substitution", "process_substitution", "function_definition")
_PIPEFAIL = lazily(rb"\bpipe_?fail\b", re.I)
_STATUS = lazily(rb"\bpipestatus\b", re.I)
_SOURCED = lazily(rb"(?:^|[;&|{(]|\bthen|\bdo|\belse)[ \t]*(?:source|\.)[ \t]+([^\n;&|]+)", re.M)
# Files sourced only for the environment, by usual names on clusters.
_ENVIRONMENT = lazily(rb"activate|bashrc|profile|conda|/etc/|/opt/|\.env\b|venv|lmod|modules?/|setvars")
_HEAD = lazily(rb"(?:#[^\n]*\n)+")
_DIRECTIVE = lazily(rb"#(?:SBATCH|PBS|BSUB|\$|COBALT|OAR)\b")
_PLAIN_SH = lazily(rb"#![ \t]*(?:\S*/)?(?:env[ \t]+)?(?:\S*/)?(?:sh|dash)\b")
_REASON = "other pipelines of the script can then fail too, and with `set -e` one that fails ends the script"


def hiding(code: Code, script: Code) -> Iterator[Finding]:
    """The pipelines of a stretch of code that hide how a training ended; ``script`` runs the code."""
    if code is not script and not code.evaluated:
        return
    found = [(node, launch) for node in code.nodes["pipeline"] if (launch := _hidden(code, node))]
    data = _without_comments(code if code.shell else script)
    if code.shell and _PIPEFAIL.search(code.shell.encode()):
        return
    for index, (node, _launch) in enumerate(found):
        start, end = node.start_byte, node.end_byte
        until = found[index + 1][0].start_byte if index + 1 < len(found) else len(data)
        before = data if any(one.type == "function_definition" for one in tree.ancestors(node)) else data[:start]
        if _PIPEFAIL.search(before) or _STATUS.search(data, end, until):
            continue
        claims = (Claim("sourced-scripts-leave-pipefail-off"),) if _sources_another(before) else ()
        yield _finding(code, script, node)._replace(claims=claims)


def speaks_of_pipefail(data: bytes) -> bool:
    """Whether a script may set the option."""
    return _PIPEFAIL.search(data) is not None


def is_environment(written: str) -> bool:
    """Whether a sourced file, as written, only sets variables, as on nearly every cluster."""
    return _ENVIRONMENT.search(written.encode()) is not None


def _hidden(code: Code, pipeline: Node) -> Launch | None:
    """The training whose status the pipeline does not return."""
    elements = [child for child in pipeline.children if child.is_named and child.type != "comment"]
    launches = {launch.span.start - code.source.bom: launch for launch in code.script.launches}
    commands = (command for element in elements[:-1] for command in _commands(element))
    found = (launches.get(command.start_byte) for command in commands)
    return next((launch for launch in found if launch is not None and is_training(launch)), None)


def _commands(node: Node) -> Iterator[Node]:
    if node.type == "command":
        yield node
    elif node.type not in _OTHER_SHELLS:
        for child in node.children:
            yield from _commands(child)


def _without_comments(code: Code) -> bytes:
    """The bytes of a script with blanks for its comments; the shebang stays, since it may set options."""
    data = bytearray(code.text.data)
    for node in code.nodes["comment"]:
        if data.startswith(b"#!") and not node.start_byte:
            continue
        data[node.start_byte : node.end_byte] = b" " * (node.end_byte - node.start_byte)
    return bytes(data)


def _sources_another(data: bytes) -> bool:
    """Whether a file is sourced that may set options."""
    return any(not _ENVIRONMENT.search(match[1]) for match in _SOURCED.finditer(data))


def _finding(code: Code, script: Code, pipeline: Node) -> Finding:
    rule = PIPELINE_HIDES_FAILURE
    last = [child for child in pipeline.children if child.is_named and child.type != "comment"][-1]
    bar = next(child for child in reversed(pipeline.children) if child.type in ("|", "|&"))
    name = re.split(r"[\s;|(){}]+", code.text.of_node(last).strip("({ \t\n"))[0]
    return Finding(
        rule.symbol,
        rule.code,
        code.text.span(bar.start_byte, last.end_byte),
        (("filter", re.sub(r"[{}\"']", "", name).rpartition("/")[2] or "the last command"),),
        fix=_inner_fix(code) if code.shell else _fix(script.source),
    )


def _inner_fix(code: Code) -> Fix | None:
    """The option at the head of the string that another bash runs."""
    if not re.search(r"\b(?:bash|zsh)\s+-\w*c", code.shell):
        return None
    edit = Edit(code.source.span(code.start, code.start), "set -o pipefail; ")
    return Fix("set -o pipefail", (edit,), Applicability.UNSAFE, _REASON)


def _fix(source: Source) -> Fix | None:
    """``set -o pipefail`` after the head of comments, which holds the scheduler's directives."""
    data = source.data[source.bom :]
    if _PLAIN_SH.match(data):
        return None
    place = source.bom + _end_of_head(data)
    edit = Edit(source.span(place, place), f"set -o pipefail{source.newline}")
    return Fix("set -o pipefail", (edit,), Applicability.UNSAFE, _REASON)


def _end_of_head(data: bytes) -> int:
    """The offset after the first comments of a script and after the last directive that is before its commands."""
    end = match.end() if (match := _HEAD.match(data)) else 0
    offset = 0
    for line in data.splitlines(keepends=True):
        if line.strip() and not line.startswith(b"#"):
            break
        offset += len(line)
        if _DIRECTIVE.match(line):
            end = max(end, offset)
    return end
