"""Whether a file is still sound after a fix: one validator for each kind of file."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from types import MappingProxyType

from ldlm_lint.autofix import validate_documents
from ldlm_lint.autofix.validate_containers import validate_dockerfile, validate_dotenv
from ldlm_lint.autofix.validate_python import validate_python
from ldlm_lint.configs.detect import config_kind
from ldlm_lint.model import Edit
from ldlm_lint.shell.tree import block_statements, parse, without_carriage_returns
from ldlm_lint.source import Kind

_NEVER_EMPTY = frozenset(("compound_statement", "subshell", "do_group", "if_statement", "elif_clause", "else_clause"))

Validator = Callable[[bytes, bytes, Collection[Edit]], "str | None"]
"""Takes the bytes before and after, and the edits that make them so; returns what is worse now, None if nothing is."""


def validate_shell(before: bytes, after: bytes, edits: Collection[Edit] = ()) -> str | None:
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
