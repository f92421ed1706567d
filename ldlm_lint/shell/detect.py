"""Recognizes shell scripts by name and first line; kept apart from the parsers, which cost time to load."""

from __future__ import annotations

from pathlib import Path

from ldlm_lint.patterns import lazily

SUFFIXES = frozenset({".sh", ".bash", ".sbatch", ".slurm"})
_SHEBANG = lazily(rb"#![ \t]*(?:/\S*/)?(?:env[ \t]+(?:-S[ \t]+)?)?(?:/\S*/)?(?:bash|sh|dash|zsh|ksh)\b")
_BOM = b"\xef\xbb\xbf"


def is_shell(path: Path, head: bytes) -> bool:
    """Whether a file is a shell script: by its suffix, or by the shebang in ``head`` where it has no suffix."""
    if path.suffix.lower() in SUFFIXES:
        return True
    return not path.suffix and _SHEBANG.match(head.removeprefix(_BOM)) is not None
