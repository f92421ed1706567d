"""Recognizes configuration files by name; kept apart from the parsers, which cost time to load."""

from __future__ import annotations

import re
from pathlib import Path

from ldlm_lint.patterns import lazily
from ldlm_lint.source import Kind

# A file that people write by hand is never larger; data and recorded results are.
MAX_BYTES = 1_000_000
SUFFIXES = {".yaml": Kind.YAML, ".yml": Kind.YAML, ".json": Kind.JSON, ".toml": Kind.TOML}
# Files of other tools, unrelated to training.
_OF_TOOLS = lazily(
    r"pyproject\.toml|ldlm-lint\.toml|cargo\.toml|package(?:-lock)?\.json|tsconfig.*\.json|\.ldlm-lint.*|\.pre-commit-.*\.yaml|mkdocs\.ya?ml"
    r"|\.?readthedocs\.ya?ml|\.?codecov\.ya?ml|\.travis\.yml|.*\.ipynb\.json|tokenizer.*\.json|vocab.*\.json",
    re.I,
)
_DOCKERFILE = lazily(r"(?:.*[._-])?(?:Dockerfile|Containerfile)(?:[._-].*)?", re.I)
_NOT_A_DOCKERFILE = frozenset((".md", ".rst", ".dockerignore", *SUFFIXES))
# The file that DeepSpeed's launcher passes to every node.
_OF_DEEPSPEED = ".deepspeed_env"
_DOTENV = lazily(r"(?:.*\.)?env(?:\..*)?|env(?:\.\w+)?")


def is_of_tools(path: Path) -> bool:
    """Whether a file configures another tool, by its name."""
    return _OF_TOOLS.fullmatch(path.name) is not None


def config_kind(path: Path) -> Kind | None:
    """The kind of a configuration file, None if it is not one by name."""
    name = path.name
    if is_of_tools(path):
        return None
    if _DOCKERFILE.fullmatch(name) and path.suffix.lower() not in _NOT_A_DOCKERFILE:
        return Kind.DOCKERFILE
    dotted = (name.startswith(".env") or name.endswith(".env")) and _DOTENV.fullmatch(name.lstrip("."))
    if dotted or name == _OF_DEEPSPEED:
        return Kind.DOTENV
    return SUFFIXES.get(path.suffix.lower())
