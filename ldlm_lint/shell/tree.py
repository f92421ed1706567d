"""tree-sitter-bash: the structure of a script, also of one with errors."""

from __future__ import annotations

import functools
import itertools
import time
from collections.abc import Iterator, Mapping

import tree_sitter_bash
from tree_sitter import Language, Node, Parser

from ldlm_lint.budget import apart
from ldlm_lint.patterns import lazily

LANGUAGE = Language(tree_sitter_bash.language())
_REGIONS = (
    *("if_statement", "case_statement", "while_statement", "for_statement", "c_style_for_statement", "list"),
    *("function_definition", "pipeline", "subshell", "command_substitution", "process_substitution"),
)
# The types of nodes that the scanner reads, with its names for them.
_KINDS_OF_TYPES: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(_REGIONS, ("region",)),
    "variable_assignment": ("assignment",),
    "declaration_command": ("declaration",),
    "command": ("command",),
    "unset_command": ("unset",),
    "expansion": ("expansion",),
    "variable_name": ("name",),
    "raw_string": ("raw",),
    "heredoc_body": ("raw",),
    "pipeline": ("region", "pipeline"),
    "ERROR": ("error",),
    "comment": ("comment",),
}
KINDS = (
    *("assignment", "declaration", "command", "unset", "expansion", "name", "raw", "region", "error", "missing"),
    *("pipeline", "comment"),
)
_GAP = lazily(rb"(?:[ \t]|\\\n)+")
_GAP_OR_NONE = lazily(rb"(?:[ \t]|\\\n)*")
_ESCAPED_BLANK = lazily(rb"[ \t]*\\[ \t]")
_HEADS = (*(bytes((one,)) for one in b" \t\n;&|(){}`!"), b"")
_CARRIAGE_RETURN = lazily(rb"(\\?)\r\n")
# Where the statements of a block begin: the child token before them.
_OPENERS = {
    "program": None,
    "compound_statement": "{",
    "subshell": "(",
    "do_group": "do",
    "if_statement": "then",
    "elif_clause": "then",
    "else_clause": "else",
    "case_item": ")",
}
MAX_DEPTH = 400
MAX_SECONDS = 2.0
"""Processor seconds in which a script is parsed; one of a megabyte takes 0.1."""
MAX_PIPES = 4000
"""Pipes between the statements of a script. The parser takes their square of time at the end, where it reports no progress."""
# A script is parsed for its own findings and again for launches, usually soon after.
_REMEMBERED = 128
_DEEPENING = (b"(", b"{", b"[", b"`", b"if", b"do", b"case", b"&&", b"||", b"|", b"!", b"-", b"+", b"*", b"/", b"?", b"=")
_NOT_A_STATEMENT = frozenset({"comment", "elif_clause", "else_clause", "heredoc_body", "ERROR"})


def without_carriage_returns(data: bytes) -> bytes:
    r"""The same bytes with CRLF line ends as bash would need them, every other byte at its offset.

    ``\r\n`` becomes an empty line more; after a backslash the backslash moves, so that it continues the line.
    """
    return _CARRIAGE_RETURN.sub(lambda match: b" \\\n" if match[1] else b"\n\n", data) if b"\r" in data else data


def parse(data: bytes) -> Node:
    """The root node of a script's syntax tree; that of an empty script if it has a `problem_of`."""
    root = _parsed(data)[0]
    return Parser(LANGUAGE).parse(b" " * len(data)).root_node if root is None else root


def _without_open_end(data: bytes) -> bytes:
    """The same bytes without the continuation of a last line: for bash the command ends there, for the grammar it is an
    error."""
    return data[:-2] + b" \n" if data.endswith(b"\\\n") and not data.endswith(b"\\\\\n") else data


def problem_of(data: bytes) -> str:
    """Why a script cannot be read; empty if it can."""
    return _parsed(data)[1]


@functools.lru_cache(_REMEMBERED)
def _parsed(data: bytes) -> tuple[Node | None, str]:
    if _pipes_in_a_row(data) > MAX_PIPES:
        return None, f"contains more than {MAX_PIPES} pipes in a row"
    root = _parsed_in_time(_without_open_end(data))
    if root is None:
        return None, f"gave up after {MAX_SECONDS:g} s without finding a way to parse it"
    # Asking for the parents of nodes that are so deep would take forever.
    return (None, f"nested more than {MAX_DEPTH} levels deep") if _is_too_deep(data, root) else (root, "")


def _pipes_in_a_row(data: bytes) -> int:
    """A lower bound on the number of pipes in consecutive continued lines, including comments between them."""
    if data.count(b"|") <= MAX_PIPES:
        return 0
    most = count = 0
    for line in data.split(b"\n"):
        text = line.strip()
        if text and not text.startswith(b"#"):
            count += text.count(b"|")
            most = max(most, count)
            count = count if text.endswith((b"|", b"\\")) else 0
    return most


def _parsed_in_time(data: bytes) -> Node | None:
    """The root node; None if the parser, which no signal interrupts, looks for a way out of errors for too long."""
    with apart():
        end = time.process_time() + MAX_SECONDS
        try:
            # For a text passed as a whole it reports no progress.
            tree = Parser(LANGUAGE).parse(lambda offset, _: data[offset:], progress_callback=lambda *_: time.process_time() > end)
        except ValueError:
            return None
    return tree.root_node


def _may_be_deep(data: bytes) -> bool:
    return sum(map(data.count, _DEEPENING)) > MAX_DEPTH


def _is_too_deep(data: bytes, root: Node) -> bool:
    if not _may_be_deep(data):
        return False
    cursor = root.walk()
    depth = 0
    while True:
        if cursor.goto_first_child():
            depth += 1
            if depth > MAX_DEPTH:
                return True
            continue
        while not cursor.goto_next_sibling():
            if not cursor.goto_parent():
                return False
            depth -= 1


@functools.lru_cache(_REMEMBERED)
def nodes(data: bytes) -> Mapping[str, list[Node]]:
    """The nodes of a script that the scanner reads, by kind, in the order of the script; not to be changed."""
    found: dict[str, list[Node]] = {kind: [] for kind in KINDS}
    for node in _all(parse(data)):
        for kind in _KINDS_OF_TYPES.get(node.type, ()):
            found[kind].append(node)
        if node.is_missing:
            found["missing"].append(node)
    return {kind: sorted(some, key=lambda node: (node.start_byte, -node.end_byte)) for kind, some in found.items()}


def _all(root: Node) -> Iterator[Node]:
    """Every node, parents first. A query takes quadratic time with unclosed brackets or quotes, and cannot be
    stopped.
    """
    cursor = root.walk()
    while True:
        if cursor.node is not None:
            yield cursor.node
        if cursor.goto_first_child():
            continue
        while not cursor.goto_next_sibling():
            if not cursor.goto_parent():
                return


def ancestors(node: Node) -> Iterator[Node]:
    """The node's parents, nearest first."""
    parent = node.parent
    while parent is not None:
        yield parent
        parent = parent.parent


def words(command: Node) -> list[Node]:
    """The nodes of a command's words, its name first, without prefix assignments and redirections."""
    return [child for child in command.named_children if _is_word(child)]


def first_word(command: Node) -> Node | None:
    """The first of the `words`; a command may have thousands."""
    children = map(command.named_child, range(command.named_child_count))
    return next((child for child in children if child is not None and _is_word(child)), None)


def _is_word(child: Node) -> bool:
    return child.type not in ("variable_assignment", "comment") and not child.type.endswith("_redirect")


def names(unset: Node) -> list[Node]:
    """The names in an ``unset`` command, without its options."""
    return [child for child in unset.named_children if child.type == "variable_name"]


def block_statements(parent: Node) -> list[Node] | None:
    """The statements of the block ``parent``, None if it is not a block."""
    if parent.type not in _OPENERS or (parent.type == "compound_statement" and parent.children[0].type != "{"):
        return None
    children, opener = parent.children, _OPENERS[parent.type]
    if opener is not None:
        behind = next((index for index, child in enumerate(children) if child.type == opener), None)
        children = [] if behind is None else children[behind + 1 :]
    return [child for child in children if child.is_named and child.type not in _NOT_A_STATEMENT]


def is_split(data: bytes, command: Node) -> bool:
    r"""Whether tree-sitter-bash has missed a part of a simple command, so that its words must be read again.

    It drops a lone ``-``, a ``\ `` at the end and words after a redirection, and it splits a word at ``$a.b``.
    """
    parts = [child for child in command.children if not child.type.endswith("_redirect")]
    for left, right in itertools.pairwise(parts):
        if not _GAP.fullmatch(data, left.end_byte, right.start_byte):
            return True
    head, tail = data[command.start_byte - 1 : command.start_byte], command_end(data, command)
    return head not in _HEADS or tail != command.end_byte


def is_detached(data: bytes, command: Node) -> bool:
    """Whether the assignments in front of a command end with their line, and so do not belong to it.

    tree-sitter-bash continues if a backslash joins them.
    """
    for left, right in itertools.pairwise(command.children):
        if left.type == "variable_assignment" and right.type != "variable_assignment":
            gap = data[left.end_byte : right.start_byte]
            return b"\n" in gap.replace(b"\\\n", b"")
    return False


def command_end(data: bytes, command: Node) -> int:
    """Where a command ends, with the redirections that follow it up to the first heredoc."""
    parent, end = command.parent, command.end_byte
    if parent is not None and parent.type == "redirected_statement" and parent.children[0] == command:
        heredoc = next((child for child in parent.children if child.type == "heredoc_redirect"), None)
        end = heredoc.start_byte if heredoc is not None else parent.end_byte
        if not any(
            len(child.children_by_field_name("destination")) > 1 for child in parent.children
        ) and _GAP_OR_NONE.fullmatch(data, command.end_byte, parent.children[1].start_byte):
            end = command.end_byte
    escaped = _ESCAPED_BLANK.match(data, end)
    return escaped.end() if escaped else end


def command_start(data: bytes, command: Node) -> int:
    """Where a command really starts: a sibling without a separator in between is the beginning of its first word."""
    start, node = command.start_byte, command
    while (previous := node.prev_sibling) is not None and previous.is_named and previous.end_byte == start:
        if data[start - 1 : start] in _HEADS:
            break
        start, node = previous.start_byte, previous
    return start
