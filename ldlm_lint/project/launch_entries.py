"""The project's Python file behind the entry of a launch."""

from __future__ import annotations

import posixpath
import re
from dataclasses import dataclass
from functools import cached_property

from ldlm_lint.patterns import lazily
from ldlm_lint.project.index import Project
from ldlm_lint.project.launch_paths import Paths
from ldlm_lint.project.launch_scripts import Scripts, Started
from ldlm_lint.project.launch_values import possible
from ldlm_lint.shell.launch_grammar import Form

# `name = "package.module:function"` in pyproject.toml, `"name = package.module:function"` in setup.py.
_CONSOLE = lazily(r"^[ \t]*[\"']?([\w.-]+)[\"']?\s*=\s*[\"']?([A-Za-z_][\w.]*):[A-Za-z_][\w.]*[\"']", re.M)


@dataclass
class Entries:
    """Finds the files that launches run."""

    project: Project
    paths: Paths
    scripts: Scripts

    def of(self, started: Started) -> str | None:
        """The Python file of the project that a launch runs; None for a foreign one, or if unknown."""
        invocation = started.invocation
        word = invocation.entry
        if word is None:
            return None
        if invocation.form is Form.CONSOLE:
            module = self.console.get(word.text.rpartition("/")[2])
            return (
                self.paths.module(module, (self.project.root, posixpath.join(self.project.root, "src")))
                if module
                else None
            )
        if invocation.form is Form.MODULE:
            known = possible(started.frame, word.text, word.span)
            names = {one.text for one in known} if known else {word.text}
            found = {self.paths.module(name, started.folders) for name in names}
        elif invocation.form in (Form.FILE, Form.COMMAND):
            found = {self.scripts.file(started.frame, word, started.span)}
        else:
            return None
        path = found.pop() if len(found) == 1 else None
        return path if path in self.project.files else None

    @cached_property
    def console(self) -> dict[str, str]:
        """The module after each command that the project itself installs."""
        found: dict[str, str] = {}
        for name in ("setup.py", "setup.cfg", "pyproject.toml"):
            path = posixpath.join(self.project.root, name)
            text = self.project.data(path).decode(errors="replace")
            found.update((match[1], match[2]) for match in _CONSOLE.finditer(_scripts_of(text, name)))
        return found


def _scripts_of(text: str, name: str) -> str:
    """The part of a packaging file that names commands."""
    if name == "pyproject.toml":
        match = re.search(r"^\[(?:project\.scripts|tool\.poetry\.scripts)\]\s*$(.*?)(?=^\[|\Z)", text, re.M | re.S)
        return match[1] if match else ""
    match = re.search(r"console_scripts.*", text, re.S)
    return re.sub(r"[\"']([\w.-]+)\s*=", r"\n\1=", match[0]) if match else ""
