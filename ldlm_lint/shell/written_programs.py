"""Python that a script writes into a file and then starts: ``cat > train.py <<'EOF'`` and ``torchrun train.py``
later.
"""

from __future__ import annotations

from collections.abc import Iterator

from tree_sitter import Node

from ldlm_lint.shell import tree, words
from ldlm_lint.shell.launch_code import Code
from ldlm_lint.shell.launch_entries import entry_of


def is_started(code: Code, command: Node) -> bool:
    """Whether a command writes exactly its here-document into a file that a later launch runs."""
    paths = set(_written_by(code, command))
    end = command.end_byte + code.source.bom
    return bool(paths) and any(_plain(entry_of(one)) in paths for one in code.script.launches if one.span.start > end)


def _written_by(code: Code, command: Node) -> Iterator[str]:
    """The Python files that ``cat > FILE`` or ``tee FILE`` creates; an appended one is not a whole program."""
    written = [code.text.of_node(word) for word in tree.words(command)]
    targets = list(_targets(code, command)) if written == ["cat"] else []
    if len(targets) == 1:
        written.append(targets[0])
    elif written[:1] != ["tee"]:
        return
    if len(written) == 2:
        path = _plain(words.read_word(written[1]))
        if path.endswith(".py"):
            yield path


def _targets(code: Code, command: Node) -> Iterator[str]:
    """The target of a command's output; the redirections may be after ``<<EOF``."""
    parent = command.parent
    outer = parent.children if parent is not None and parent.type == "redirected_statement" else []
    inner = [child for one in outer if one.type == "heredoc_redirect" for child in one.children]
    for one in (*outer, *inner):
        destination = one.child_by_field_name("destination") if one.type == "file_redirect" else None
        if destination is not None and one.children[0].type in (">", ">|"):
            yield code.text.of_node(destination)


def _plain(path: str) -> str:
    return path.removeprefix("./")


__all__ = ["is_started"]
