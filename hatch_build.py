"""Puts the example files of the rules into the wheel, where ``ldlm-lint explain`` finds them without a checkout."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

FIXTURES = "tests/fixtures"
TARGET = "ldlm_lint/_examples"
EXAMPLES = ("bad", "good", "bad_short", "good_short")


class ExamplesHook(BuildHookInterface):
    """Adds each ``bad``, ``good`` and ``bad.fixed`` fixture, and the short ones, under its name and ``.txt``."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Name the files; an editable install reads them from the checkout."""
        if version == "editable":
            return
        fixtures = Path(self.root, FIXTURES)
        for path in sorted(fixtures.glob("*/*")):
            if path.name.partition(".")[0] not in EXAMPLES:
                continue
            for file in [path] if path.is_file() else sorted(path.rglob("*")):
                if file.is_file() and "__pycache__" not in file.parts:
                    name = f"{TARGET}/{file.relative_to(fixtures).as_posix()}.txt"
                    build_data["force_include"][str(file)] = name
