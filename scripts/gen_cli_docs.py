"""Writes the options and keys in docs/cli.md, docs/configuration.md and docs/config.schema.json; ``--check`` compares.

In the pages it only writes the text between ``<!-- generated -->`` and ``<!-- end -->``.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from ldlm_lint.commands.table import COMMANDS, parser_of  # noqa: E402
from ldlm_lint.rules import ALL  # noqa: E402
from ldlm_lint.settings import SETTINGS, config_schema  # noqa: E402

DOCS = ROOT / "docs"
_GENERATED = re.compile(r"(?<=<!-- generated -->\n).*?(?=<!-- end -->)", re.S)


def wanted() -> dict[Path, str]:
    """The text that each file should have."""
    pages = {"cli.md": commands(), "configuration.md": keys()}
    found = {}
    for name, made in pages.items():
        text = (DOCS / name).read_text(encoding="utf-8")
        found[DOCS / name] = _GENERATED.sub(lambda _, made=made: f"\n{made}\n", text, count=1)
    found[DOCS / "config.schema.json"] = json.dumps(config_schema(ALL), indent=2) + "\n"
    return found


def commands() -> str:
    """A section for each command, and for each form of one."""
    root = parser_of([command.name for command in COMMANDS])
    return "\n".join(line for parser in _all(root) if parser is not root for line in _section(parser))


def _all(parser: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    yield parser
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for sub in action.choices.values():
                yield from _all(sub)


def _section(parser: argparse.ArgumentParser) -> Iterator[str]:
    yield f"## {parser.prog}\n"
    yield f"{parser.description}\n"
    rows = [row for group in parser._action_groups for row in _options(group)]
    if rows:
        yield "| argument | what it does |\n|---|---|"
        yield from rows
        yield ""
    examples = re.search(r"(?m)^examples?:\n((?:  .*\n?)+)", parser.epilog or "")
    if examples:
        lines = (line.strip() for line in examples[1].rstrip().splitlines())
        yield "```sh\n{}\n```\n".format("\n".join(lines))


def _options(group: argparse._ArgumentGroup) -> Iterator[str]:
    """The rows of a group; with a heading if the group has one."""
    actions = [
        action
        for action in group._group_actions
        if action.help != argparse.SUPPRESS and not isinstance(action, (argparse._HelpAction, argparse._SubParsersAction))
    ]
    if actions and group.title not in ("options", "positional arguments"):
        yield _row(f"**{group.title}**", "")
    for action in actions:
        value = action.metavar or ("" if action.nargs == 0 else _choices(action) or action.dest.upper())
        value = " ".join(value) if isinstance(value, tuple) else value
        names = (
            ", ".join(f"`{name} {value}`" if value else f"`{name}`" for name in action.option_strings) or f"`{value}`"
        )
        yield _row(names, str(action.help))


def _choices(action: argparse.Action) -> str:
    return "|".join(str(choice) for choice in action.choices or ())


def _row(first: str, second: str) -> str:
    return f"| {first.replace('|', chr(92) + '|')} | {second.replace('|', chr(92) + '|')} |"


def keys() -> str:
    """The table of keys."""
    schema = config_schema(ALL)["properties"]
    lines = ["| key | value | default | what it does |", "|---|---|---|---|"]
    for name in [
        *(one.name for one in SETTINGS),
        *(name for name in schema if name not in {one.name for one in SETTINGS}),
    ]:
        said = schema[name]
        kind = ", ".join(f"`{word}`" for word in said["enum"]) if "enum" in said else _ranged(said)
        default = json.dumps(said["default"]) if "default" in said else ""
        cells: Iterable[str] = (f"`{name}`", kind, f"`{default}`" if default else "", said["description"])
        lines.append(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |")
    return "\n".join(lines)


def _ranged(said: Mapping[str, Any]) -> str:
    """The type of a value, with the range of a number."""
    ends = (said.get("minimum"), said.get("maximum"))
    if None not in ends:
        return f"{said['type']}, {ends[0]} to {ends[1]}"
    return f"{said['type']}, {ends[0]} or more" if ends[0] is not None else str(said["type"])


def main(arguments: list[str] | None = None) -> int:
    """Write the files, or with ``--check`` compare them; 1 where one is out of date."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; exit with 1 where a file is out of date")
    options = parser.parse_args(arguments)
    stale = {
        path: text for path, text in wanted().items() if not path.is_file() or path.read_text(encoding="utf-8") != text
    }
    for path, text in stale.items():
        if options.check:
            print(f"{path} is out of date: run `python scripts/gen_cli_docs.py`", file=sys.stderr)
        else:
            path.write_text(text, encoding="utf-8", newline="\n")
    return 1 if stale and options.check else 0


if __name__ == "__main__":
    sys.exit(main())
