"""Checks that a file is still valid after a fix: one validator for each kind of file."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from types import MappingProxyType

from ldlm_lint.autofix import validate_documents
from ldlm_lint.autofix.validate_containers import validate_dockerfile, validate_dotenv
from ldlm_lint.autofix.validate_python import validate_python
from ldlm_lint.autofix.validate_shell import validate_shell
from ldlm_lint.configs.detect import config_kind
from ldlm_lint.model import Edit
from ldlm_lint.source import Kind

Validator = Callable[[bytes, bytes, Collection[Edit]], "str | None"]
"""Takes the bytes before and after, and the edits that make them so; returns what is worse now, None if nothing is."""


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
    """The kind by name; Python for a script with it in the first line, else shell."""
    if path.endswith((".py", ".pyi", ".pyw", ".ipynb")):
        return Kind.PYTHON
    if path.endswith((".sh", ".bash", ".sbatch", ".slurm")):
        return Kind.SHELL
    first = data.split(b"\n", 1)[0]
    named = first.startswith(b"#!") and b"python" in first
    return config_kind(Path(path)) or (Kind.PYTHON if named else Kind.SHELL)
