"""The launches of projects that are given as texts."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from pathlib import Path

from ldlm_lint.configs.detect import config_kind
from ldlm_lint.project.index import Project
from ldlm_lint.project.launches import Launches, Program
from ldlm_lint.source import Kind

ROOT = "/p"
HYDRA = """
import hydra

@hydra.main(config_path="configs", config_name="base", version_base="1.3")
def main(cfg):
    pass
"""


def launches(files: Mapping[str, str]) -> Launches:
    """The launches of a project whose files are given by their paths below its root."""
    overlay = {f"{ROOT}/{path}": textwrap.dedent(text).encode() for path, text in files.items()}
    python = [path for path in overlay if path.endswith(".py")]
    kinds: dict[str, Kind] = {}
    for path in overlay.keys() - set(python):
        kind = Kind.SHELL if path.endswith((".sh", ".slurm")) else config_kind(Path(path))
        if kind is not None:
            kinds[path] = kind
    return Launches(Project(ROOT, python, overlay, others=kinds))


def programs(files: Mapping[str, str]) -> tuple[Program, ...]:
    """The same as a tuple, in the order of their places."""
    return launches(files).programs


def entry(script: str, *files: str, at: str = "run.sh") -> str | None:
    """The entry of the one launch of a script, below the root."""
    (program,) = programs({at: script, **dict.fromkeys(files, "")})
    return program.entry and program.entry.removeprefix(f"{ROOT}/")
