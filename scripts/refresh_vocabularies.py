"""Refreshes ldlm_lint/tables/vocabularies.json from unpacked packages: fields, first versions, and names that are gone.

    python scripts/refresh_vocabularies.py SITE_PACKAGES... [--check]

Each argument is a directory with unpacked packages (a virtual environment's site-packages, or wheels unpacked by hand),
as for ``refresh_tables.py``. Sources are parsed, never imported. For transformers' TrainingArguments it keeps every
field of any version, and for the names under ``since`` the first version with them. It prints a changed default and a
name that is missing in all versions: their rules must be checked. DeepSpeed and axolotl have no parseable list; their
entries name the files and pages they were taken from. ``--check`` writes nothing and fails if the table would change or
anything was printed.
"""

from __future__ import annotations

import argparse
import ast
import datetime
import json
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))
from refresh_tables import ROOT, constructor, defaults, fields, find, note_version, order

TABLE = ROOT / "ldlm_lint" / "tables" / "vocabularies.json"
# Framework: the package that `read` names, the file below site-packages, and the class in it.
SOURCES = {
    "transformers": ("transformers", "transformers/training_args.py", "TrainingArguments"),
    "lightning": ("lightning", "lightning/pytorch/trainer/trainer.py", "Trainer"),
    "accelerate": ("accelerate", "accelerate/commands/config/config_args.py", "ClusterConfig"),
}
# Keys of an Accelerate file that are in the base class of the parsed class.
INHERITED = {"accelerate": {"compute_environment", "distributed_type", "mixed_precision", "use_cpu", "debug"}}


def main(arguments: list[str] | None = None) -> int:
    """The command; its exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("site", nargs="+", type=Path, help="a directory with unpacked packages")
    parser.add_argument("--check", action="store_true", help="write nothing; fail where the table would change")
    given = parser.parse_args(arguments)
    before = json.loads(TABLE.read_text(encoding="utf-8"))
    after = json.loads(json.dumps(before))
    notes = [note for site in given.site for note in read(site, after["frameworks"])]
    for note in notes:
        print(note, file=sys.stderr)
    if given.check:
        holds = after == before and not notes
        print("the table holds for these packages" if holds else "the table would change")
        return int(not holds)
    after["as_of"] = datetime.date.today().isoformat()
    TABLE.write_text(json.dumps(after, indent=1) + "\n", encoding="utf-8")
    print(f"{TABLE.relative_to(ROOT)}: {'changed' if after['frameworks'] != before['frameworks'] else 'dated'}")
    return 0


def read(site: Path, frameworks: dict[str, Any]) -> list[str]:
    """Join the facts from the packages of a directory into the table; returns what must be checked by hand."""
    notes = []
    for name, (package, file, qualname) in SOURCES.items():
        path = site / file
        if not path.is_file():
            continue
        definition = find(ast.parse(path.read_text(encoding="utf-8")), qualname)
        table, known = frameworks[name], parameters(definition)
        versions: dict[str, Any] = {"read": {package: table["read"]}}
        note_version(site, package, versions)
        table["read"] = versions["read"][package]
        if name == "transformers":
            table["fields"] = sorted({*table["fields"], *known})
            join_first(table, known, version(site, package))
        else:
            gone = set(table["distinctive"]) - known - INHERITED.get(name, set())
            notes += [f"{name}: {one} is no parameter of {qualname} any more" for one in sorted(gone)]
        found = defaults(definition)
        changed = {one: value for one, value in table["defaults"].items() if found.get(one, value) != value}
        notes += [f"{name}: {one} was {value!r} and is {found[one]!r}" for one, value in sorted(changed.items())]
    return notes


def parameters(definition: ast.ClassDef | ast.FunctionDef) -> set[str]:
    """The parameters of a class: fields of a dataclass, or parameters of its constructor."""
    function = constructor(definition)
    if function is None:
        return {name for name, _ in fields(definition)} if isinstance(definition, ast.ClassDef) else set()
    return {one.arg for one in (*function.args.args, *function.args.kwonlyargs)} - {"self"}


def version(site: Path, package: str) -> str:
    """The version of a package in a directory, major and minor; empty if unknown."""
    found = sorted(site.glob(f"{package}-*.dist-info"))
    return ".".join(found[0].name.removesuffix(".dist-info").rpartition("-")[2].split(".")[:2]) if found else ""


def join_first(table: dict[str, Any], known: set[str], found: str) -> None:
    """Keep the first version in which a name was seen."""
    for name, since in table["since"].items():
        if found and name in known:
            table["since"][name] = min(since, found, key=order)


if __name__ == "__main__":
    sys.exit(main())
