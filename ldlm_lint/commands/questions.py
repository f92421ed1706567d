"""The queries of ``check`` that replace linting: ``--show-files`` and ``--show-settings``."""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ldlm_lint.arguments import UsageError
from ldlm_lint.commands.output import code_of, print_lines_of, print_notes
from ldlm_lint.report.common import shown_path

if TYPE_CHECKING:
    from ldlm_lint.config import Config
    from ldlm_lint.configurations import Configurations
    from ldlm_lint.discover import Discovery
    from ldlm_lint.origins import Origin
    from ldlm_lint.source import Kind

FILES_SCHEMA = "ldlm-lint-files/1"
SETTINGS_SCHEMA = "ldlm-lint-settings/1"
_NOTEBOOK = "ipynb"
_KINDS = {
    "py": "Python",
    "sh": "shell script",
    "yaml": "YAML",
    "json": "JSON",
    "toml": "TOML",
    "env": "environment file",
    "dockerfile": "Dockerfile",
    _NOTEBOOK: "notebook",
}


def answer(arguments: argparse.Namespace, paths: Sequence[Path], configured: Configurations, base: Path) -> int:
    """Print the answer as text or JSON and return the exit code."""
    if arguments.format not in (None, "text", "json"):
        raise UsageError("--show-files and --show-settings have only the formats text and json")
    shown = _files if arguments.show_files else _settings
    return shown(arguments, paths, configured, base)


def _files(arguments: argparse.Namespace, paths: Sequence[Path], configured: Configurations, base: Path) -> int:
    found = _found(paths, configured, base)
    if arguments.format == "json":
        sys.stdout.write(json.dumps(_document(found, base), indent=2) + "\n")
    else:
        _list(found, base, arguments.quiet)
    print_notes(found.warnings, base)
    return code_of(found.problems)


def _found(paths: Sequence[Path], configured: Configurations, base: Path) -> Discovery:
    from ldlm_lint.discover import discover

    return discover(paths, configured, Path(configured.run.root or base))


def _document(found: Discovery, base: Path) -> dict[str, Any]:
    return {
        "schema": FILES_SCHEMA,
        "files": [{"path": shown_path(path.as_posix(), base), "kind": _kind(path, kind)} for path, kind in found.files],
        "errors": [{"path": shown_path(one.path, base), "message": one.message} for one in found.problems],
        "excluded": found.excluded,
    }


def _list(found: Discovery, base: Path, quiet: bool) -> None:
    from ldlm_lint.report.cells import clean
    from ldlm_lint.report.summary import count

    rows = [(clean(shown_path(path.as_posix(), base)), _KINDS[_kind(path, kind)]) for path, kind in found.files]
    width = max((len(path) for path, _ in rows), default=0)
    for path, word in rows:
        print(f"{path:<{width}}  {word}")
    if not quiet:
        kinds = ", ".join(f"{number} {word}" for word, number in Counter(word for _, word in rows).most_common())
        print(f"{count(len(rows), 'file')}{f' ({kinds})' if kinds else ''}.")
    sys.stdout.flush()
    print_lines_of(found.problems, base)


def _kind(path: Path, kind: Kind) -> str:
    """The file kind as shown; a notebook is Python inside another file."""
    return _NOTEBOOK if path.suffix == f".{_NOTEBOOK}" else kind.value


def _settings(arguments: argparse.Namespace, paths: Sequence[Path], configured: Configurations, base: Path) -> int:
    from ldlm_lint.origins import settings_of
    from ldlm_lint.rules import ALL

    found = _found(paths, configured, base)
    config = configured.of(paths[0].as_posix()) if len(paths) == 1 and paths[0].is_file() else configured.run
    others = _others(found, configured, config)
    rows = settings_of(arguments, config)
    selected = config.selected(ALL)
    applied = [rule.symbol for rule in ALL if rule.symbol in selected]
    root, path = config.root or base.as_posix(), config.path
    faults = [one for one in found.problems if one.usage]
    print_notes(found.warnings, base)
    if arguments.format == "json":
        document = {
            "schema": SETTINGS_SCHEMA,
            "root": root,
            "file": path or None,
            "settings": [{"key": one.key, "value": one.value, "origin": one.origin} for one in rows],
            "rules": applied,
            "others": [{"file": file or None, "files": count} for file, count in others.items()],
        }
        sys.stdout.write(json.dumps(document, indent=2) + "\n")
    else:
        _print_settings(root, path, others, rows, applied)
    print_lines_of(faults, base)
    return code_of(faults)


def _others(found: Discovery, configured: Configurations, shown: Config) -> dict[str, int]:
    """The other configurations of the files that would be checked (empty: none), with the number of files that each
    applies to."""
    return dict(
        sorted(Counter(config.path for path, _ in found.files if (config := configured.of(path.as_posix())).path != shown.path).items())
    )


def _print_settings(root: str, path: str, others: Mapping[str, int], rows: Sequence[Origin], applied: Sequence[str]) -> None:
    from ldlm_lint.report.cells import clean
    from ldlm_lint.report.summary import count
    from ldlm_lint.rules import ALL

    print(f"# project: {clean(root)}\n# configuration: {clean(path) or 'none'}")
    for other, number in others.items():
        print(f"# does not apply to the {count(number, 'file')} of {clean(other) or 'no configuration'}")
    lines = [(f"{one.key} = {json.dumps(one.value, ensure_ascii=False)}", one.origin) for one in rows]
    width = max(len(text) for text, _ in lines if len(text) < 60)
    for text, origin in lines:
        print(f"{clean(text):<{width}}  # {origin}")
    print(f"\n# {len(applied)} of {len(ALL)} rules are applied")
    for symbol in applied:
        print(symbol)
    sys.stdout.flush()
