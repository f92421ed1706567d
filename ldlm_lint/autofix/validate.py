"""Whether a file is still sound after a fix: one validator for each kind of file."""

from __future__ import annotations

import ast
import io
import tokenize
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType

from ldlm_lint.autofix import validate_documents
from ldlm_lint.autofix.validate_containers import validate_dockerfile, validate_dotenv
from ldlm_lint.configs.detect import config_kind
from ldlm_lint.shell.tree import block_statements, parse, without_carriage_returns
from ldlm_lint.source import Kind

_NEVER_EMPTY = frozenset(("compound_statement", "subshell", "do_group", "if_statement", "elif_clause", "else_clause"))

Validator = Callable[[bytes, bytes], "str | None"]
"""Takes the bytes before and after; returns what is worse now, None if nothing is."""


def validate_python(before: bytes, after: bytes) -> str | None:
    """What broke in a Python file: it must parse and compile as far as it did before. Nothing of it is run."""
    level, _ = _soundness(before)
    now, why = _soundness(after)
    return why if now < level else None


def _soundness(data: bytes) -> tuple[int, str]:
    """2 if the file compiles, 1 if it only parses, 0 if not even that, with the first error.

    Compiling finds what parsing lets through: a repeated keyword argument, a misplaced ``__future__`` import.
    """
    try:
        encoding = tokenize.detect_encoding(io.BytesIO(data).readline)[0]
        text = data.decode(encoding)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(text)
    except (SyntaxError, ValueError, LookupError, RecursionError, MemoryError) as error:
        return 0, f"it would no longer parse: {_describe(error)}"
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            compile(tree, "<fixed>", "exec", dont_inherit=True)
    except (SyntaxError, ValueError, RecursionError) as error:
        return 1, f"it would no longer compile: {_describe(error)}"
    return 2, ""


def _describe(error: Exception) -> str:
    if isinstance(error, SyntaxError) and error.lineno:
        return f"{error.msg} (line {error.lineno})"
    return str(error) or type(error).__name__


def validate_shell(before: bytes, after: bytes) -> str | None:
    """What broke in a shell script: it must not hold more errors than before."""
    old, new = _shell_errors(before), _shell_errors(after)
    return f"the script would hold {new} syntax errors instead of {old}" if new > old else None


def _shell_errors(data: bytes) -> int:
    """The places that tree-sitter could not read or had to make up, and the empty blocks, which bash refuses."""
    errors, pending = 0, [parse(without_carriage_returns(data))]
    while pending:
        node = pending.pop()
        errors += node.is_error or node.is_missing
        errors += node.type in _NEVER_EMPTY and block_statements(node) == []
        pending.extend(node.children)
    return errors


VALIDATORS: Mapping[Kind, Validator] = MappingProxyType(
    {
        Kind.PYTHON: validate_python,
        Kind.SHELL: validate_shell,
        Kind.DOTENV: validate_dotenv,
        Kind.DOCKERFILE: validate_dockerfile,
        **{kind: validate_documents.validator(kind) for kind in (Kind.YAML, Kind.JSON, Kind.TOML)},
    }
)


def kind_of(path: str, data: bytes) -> Kind:
    """The kind that the name tells; Python for a script that names it in its first line, shell for everything else."""
    if path.endswith((".py", ".pyi", ".pyw")):
        return Kind.PYTHON
    if path.endswith((".sh", ".bash", ".sbatch", ".slurm")):
        return Kind.SHELL
    first = data.split(b"\n", 1)[0]
    named = first.startswith(b"#!") and b"python" in first
    return config_kind(Path(path)) or (Kind.PYTHON if named else Kind.SHELL)
