"""The files that the README at the root of a project tells users to run: ``accelerate launch examples/ppo.py``."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator
from typing import TYPE_CHECKING

from ldlm_lint.shell import launch_code, tree, words
from ldlm_lint.shell.scanner import scan
from ldlm_lint.source import Kind, Source, UnreadableError

if TYPE_CHECKING:
    from ldlm_lint.project.index import Project
    from ldlm_lint.project.launch_paths import Paths
    from ldlm_lint.shell.launch_code import Code

_NAMES = ("README.md", "README.rst", "README.txt", "README")
_FENCES = (b"```", b"~~~")
_PROMPT = b"$ "
_MOVES = (b"cd", b"pushd")


def documented(project: Project, paths: Paths) -> frozenset[str]:
    """The Python files, notebooks and scripts that a command in the README names, from the root or after a ``cd``."""
    return frozenset(found for name in _NAMES for code in _codes(project, f"{project.root.rstrip('/')}/{name}") for found in _named(code, paths))


def _codes(project: Project, path: str) -> Iterator[Code]:
    """Each block of code in a document as a script."""
    project.note("file", path)
    for block in _blocks(project.data(path)):
        try:
            source = Source.from_bytes(path, block, Kind.SHELL)
        except UnreadableError:
            continue
        yield launch_code.codes(source, scan(source))[0]


def _blocks(text: bytes) -> Iterator[bytes]:
    """The text between fences, and that of indented lines, without the prompts in front."""
    fenced: list[bytes] | None = None
    indented: list[bytes] = []
    for line in text.splitlines():
        bare = line.strip()
        if bare.startswith(_FENCES):
            if fenced is not None:
                yield b"\n".join(fenced)
            fenced = [] if fenced is None else None
        elif fenced is not None:
            fenced.append(bare.removeprefix(_PROMPT))
        elif line.startswith((b"    ", b"\t")):
            indented.append(bare.removeprefix(_PROMPT))
    yield b"\n".join(indented)


def _named(code: Code, paths: Paths) -> Iterator[str]:
    folders: tuple[str, ...] = (paths.root,)
    for node in code.nodes["command"]:
        written = [code.text.of_node(word) for word in tree.words(node)]
        if len(written) > 1 and written[0].encode() in _MOVES:
            folders = paths.below(folders, words.read_word(written[1])) or folders
            continue
        for word in written:
            text = words.read_word(word)
            found = paths.find(text, (*folders, paths.root)) if posixpath.basename(text) else None
            if found is not None:
                yield found


__all__ = ["documented"]
