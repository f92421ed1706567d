"""Shows what the command uses on this machine (programs, packages, configuration, cache) and what is wrong with it.

No package is imported to read its version (its metadata has it), and nothing of the project is run.
"""

from __future__ import annotations

import contextlib
import importlib.metadata
import os
import platform
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from ldlm_lint import __version__
from ldlm_lint.extras import NEEDS, install

if TYPE_CHECKING:
    from ldlm_lint.config import Config

PARSERS = ("astroid", "pylint", "tree-sitter", "tree-sitter-bash", "bashlex", "PyYAML", "pathspec")


class Fact(NamedTuple):
    """One component that a run uses: its name and a description."""

    name: str
    value: str


class Health(NamedTuple):
    """All facts, the warnings (each with the problem and what to do) and notes about optional parts."""

    facts: tuple[Fact, ...]
    warnings: tuple[str, ...]
    notes: tuple[str, ...]


def examined(path: Path) -> Health:
    """The facts for a run in a folder (absolute)."""
    from ldlm_lint.configurations import Configurations
    from ldlm_lint.tomlfile import ConfigError

    configured = Configurations(path)
    config, errors = None, []
    try:
        config = configured.run
    except ConfigError as error:
        errors = str(error).splitlines()
    near = [f"{one.path}:{one.line}: {one.message}" for one in configured.warnings(path.as_posix())]
    facts = (*_programs(), *_project(path, config), *_places(path), *_terminal())
    return Health(tuple(facts), (*errors, *near, *_wrong()), tuple(_optional()))


def _version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return ""


def _programs() -> Iterator[Fact]:
    yield Fact("ldlm-lint", f"{__version__} in {Path(__file__).parent}")
    yield Fact("Python", f"{platform.python_version()} at {sys.executable}, {platform.system()} {platform.machine()}")
    torch = _version("torch")
    yield Fact("torch", f"{torch} (never imported by a check)" if torch else "not installed (only `ldlm-lint probe` needs it)")
    yield Fact("parsers", ", ".join(f"{name} {_version(name) or 'missing'}" for name in PARSERS))
    yield Fact("libyaml", "used" if _has_libyaml() else "missing: YAML is read by PyYAML's slower parser")
    found = {extra: package for extra, package in NEEDS.items() if _version(package)}
    yield Fact("extras", ", ".join(f"{extra} {'yes' if extra in found else 'no'}" for extra in NEEDS))


def _has_libyaml() -> bool:
    import importlib.util

    with contextlib.suppress(ImportError, ValueError):
        return importlib.util.find_spec("yaml._yaml") is not None
    return False


def _project(path: Path, config: Config | None) -> Iterator[Fact]:
    from ldlm_lint.config import project_root

    yield Fact("project root", (config.root if config is not None else "") or project_root(path).as_posix())
    if config is None:
        return
    yield Fact("configuration", config.path or "none (`ldlm-lint init` writes one)")
    yield Fact("target torch", _torch(config))
    from ldlm_lint.rules import ALL

    yield Fact("rules", f"{len(config.selected(ALL))} of {len(ALL)} applied (`ldlm-lint --show-settings` lists them)")
    from ldlm_lint.baseline import FILE_NAME

    baseline = Path(config.root, config.baseline or FILE_NAME)
    yield Fact("baseline", baseline.as_posix() if baseline.is_file() else "none")


def _torch(config: Config) -> str:
    """The range of torch versions that rules assume, and its source."""
    import argparse

    from ldlm_lint.origins import settings_of

    row = next(one for one in settings_of(argparse.Namespace(), config) if one.key == "target-torch")
    if row.value is None:
        return "any (no requirement of the project limits it, and `target-torch` is not set)"
    return f"{row.value} ({row.origin})"


def _places(path: Path) -> Iterator[Fact]:
    yield Fact("cache", _cache())
    git = shutil.which("git")
    inside = next((one for one in (path, *path.parents) if (one / ".git").exists()), None)
    here = f"repository {inside}" if inside else "not in a repository"
    yield Fact("git", f"{git or 'not found'}, {here}")
    from ldlm_lint.autofix.undo import nearest_journal

    journal = nearest_journal(path, Path.cwd())
    kept = len(os.listdir(journal.runs)) if journal.runs.is_dir() else 0
    yield Fact("journal", f"{journal.folder} ({kept} {'entry' if kept == 1 else 'entries'})" if kept else "none (nothing to undo)")


def _cache() -> str:
    from ldlm_lint.cache import place

    folder = place.directory()
    if not folder:
        return f"none: there is no home directory (set {place.VARIABLE} to a folder)"
    sizes = []
    for entry in place.entries(folder) if os.path.isdir(folder) else ():
        with contextlib.suppress(OSError):
            sizes.append(entry.stat(follow_symlinks=False).st_size)
    state = "writable" if _is_writable(folder) else "NOT writable"
    return f"{folder}, {len(sizes)} files, {sum(sizes) / 1e6:.1f} MB, {state}"


def _is_writable(folder: str) -> bool:
    """Whether the cache can be kept in a folder, or the folder be created; the check writes nothing."""
    from ldlm_lint.cache import place

    if os.path.isdir(folder):
        return os.access(folder, os.W_OK | os.X_OK) and place.is_ours(folder)
    above = next((one for one in Path(folder).parents if one.exists()), None)
    return above is not None and above.is_dir() and os.access(above, os.W_OK | os.X_OK)


def _terminal() -> Iterator[Fact]:
    from ldlm_lint.parsing import columns
    from ldlm_lint.report.console import wants_colour

    told = [f"{name}={os.environ[name]}" for name in ("NO_COLOR", "FORCE_COLOR", "TERM", "COLUMNS") if os.environ.get(name)]
    kind = "a terminal" if sys.stdout.isatty() else "not a terminal"
    colour = "colour" if wants_colour(sys.stdout) else "no colour"
    surroundings = f" ({', '.join(told)})" if told else ""
    yield Fact("output", f"{kind}, {colour}, {columns()} columns, {sys.stdout.encoding}{surroundings}")


def _wrong() -> Iterator[str]:
    missing = [name for name in PARSERS if not _version(name)]
    if missing:
        yield f"not installed: {', '.join(missing)}; reinstall ldlm-lint"
    from ldlm_lint.cache import place

    folder = place.directory()
    if folder and not _is_writable(folder):
        yield f"the cache {folder} cannot be used, so every run reads all files again; set {place.VARIABLE} to another folder"


def _optional() -> Iterator[str]:
    if not _has_libyaml():
        yield "PyYAML has no libyaml here, so reading YAML is slower; install a PyYAML wheel, which includes libyaml"
    for extra, command in (("server", "server"), ("plot", "bench --plot")):
        if not _version(NEEDS[extra]):
            yield f"`ldlm-lint {command}` needs {NEEDS[extra]}: {install(extra)}"
