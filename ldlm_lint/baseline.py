"""The baseline: a file of known defects, so that CI fails only on new ones.

The format suits git: sorted, one defect per line, paths relative to the project, nothing specific to the machine that
wrote it. A defect is identified by its rule, its file, the function or class around it and its code without layout (see
`ldlm_lint.identity`), with a count. Lines may therefore move, and a second equal defect still counts as new.
"""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import cast

from ldlm_lint.gate import NEVER_HELD
from ldlm_lint.model import Identity, Report
from ldlm_lint.patterns import lazily
from ldlm_lint.rules import ALL
from ldlm_lint.tomlfile import ConfigError, read_text

FILE_NAME = ".ldlm-lint-baseline.json"
SCHEMA = "ldlm-lint-baseline/1"
_BETWEEN = lazily(r"[\s,]*")

Known = Mapping[Identity, int]
"""How many findings of each identity are known."""


def candidates(root: Path) -> Iterator[Path]:
    """Where the default file may be: at the root of a run, and above it up to the root of its repository."""
    chain = (root, *root.parents)
    top = next((at for at, folder in enumerate(chain) if (folder / ".git").exists()), 0)
    return (folder / FILE_NAME for folder in chain[: top + 1])


def nearest(root: Path) -> Known:
    """The defects of the nearest default baseline that are below ``root``; nothing without one. Raises ConfigError.

    A run over one project of a repository must use the same baseline as a run over the whole repository.
    """
    place = next((one for one in candidates(root) if os.path.lexists(one)), None)
    if place is None:
        return {}
    below = root.relative_to(place.parent).as_posix() + "/" if place.parent != root else ""
    known = read(place)
    return {one._replace(path=one.path[len(below) :]): count for one, count in known.items() if one.path.startswith(below)}


def updated(known: Known, report: Report) -> dict[Identity, int]:
    """The known defects after accepting the findings of a report that was made with ``known`` as its gate."""
    from ldlm_lint.identity import Identifier

    identifier = Identifier(report.sources, report.root)
    counts = Counter(known)
    counts.subtract(dict(report.stale))
    counts.update(identifier.of(finding) for finding in report.findings if finding.rule not in NEVER_HELD)
    return dict(+counts)


def summary(path: str, before: Known, after: Known, written: bool) -> str:
    """One line that says how a baseline file changed."""
    if not written:
        return f"{path} is up to date: {_count(sum(after.values()))}."
    new, gone = Counter(after) - Counter(before), Counter(before) - Counter(after)
    return f"Wrote {_count(sum(after.values()))} to {path}: {new.total()} new, {gone.total()} gone."


def _count(number: int) -> str:
    return f"{number} known finding{'s' if number != 1 else ''}"


def render(known: Known) -> str:
    """The text of a baseline file: ASCII, sorted, one entry to a line."""
    entries = [
        "    " + json.dumps({**identity._asdict(), "count": count})
        for identity, count in sorted(known.items())
        if count > 0
    ]
    body = ",\n".join(entries)
    findings = f"[\n{body}\n  ]" if entries else "[]"
    return f'{{\n  "schema": {json.dumps(SCHEMA)},\n  "findings": {findings}\n}}\n'


def write(path: Path, known: Known, root: Path | None) -> bool:
    """Write a baseline file unless it says the same already, and return whether it was written.

    The file may not be outside of ``root`` (where given). Raises WriteError.
    """
    from ldlm_lint.autofix.write import create_atomically, write_atomically

    data = render(known).encode("ascii")
    if not os.path.lexists(path):
        create_atomically(path, data, root=root)
        return True
    before = path.read_bytes()
    if before != data:
        write_atomically(path, before, data, root=root)
    return before != data


def read(path: Path) -> dict[Identity, int]:
    """The known defects of a file; raises ConfigError, with the line, for one that is not a baseline."""
    shown = path.as_posix()
    if not path.is_file():
        fault = "is not a file" if path.exists() else "does not exist; ldlm-lint baseline writes it"
        raise ConfigError(shown, 0, "", fault)
    text = read_text(path)
    try:
        document = json.loads(text)
    except json.JSONDecodeError as error:
        raise ConfigError(shown, error.lineno, "", f"is not valid JSON: {error.msg}") from error
    except (RecursionError, ValueError) as error:
        raise ConfigError(shown, 1, "", f"is not a baseline: {error}") from error
    return _checked(document, shown, text)


def _checked(document: object, path: str, text: str) -> dict[Identity, int]:
    if not isinstance(document, dict) or document.keys() != {"schema", "findings"}:
        raise ConfigError(path, 1, "", 'is not a baseline: must be an object with "schema" and "findings"')
    if document["schema"] != SCHEMA:
        raise ConfigError(path, _line_of(text, '"schema"'), "schema", f'must be "{SCHEMA}"')
    if not isinstance(document["findings"], list):
        raise ConfigError(path, _line_of(text, '"findings"'), "findings", "must be a list")
    renamed = {old: rule.symbol for rule in ALL for old in rule.old_names}
    known: dict[Identity, int] = {}
    for index, entry in enumerate(document["findings"]):
        fault = _fault(entry)
        if fault:
            raise ConfigError(path, _line_of_entry(text, index), "findings", fault)
        identity = Identity(*(entry[name] for name in Identity._fields))
        identity = Identity(identity.path, renamed.get(identity.rule, identity.rule), identity.symbol, identity.code)
        # git leaves equal entries when it merges two branches that both added one.
        known[identity] = max(known.get(identity, 0), entry["count"])
    return known


def _fault(entry: object) -> str:
    """The error in an entry; empty if nothing is."""
    if not isinstance(entry, dict) or entry.keys() != {*Identity._fields, "count"}:
        return f"an entry must be an object with {', '.join(Identity._fields)} and count"
    wrong = next((name for name in Identity._fields if not isinstance(entry[name], str)), "")
    if wrong:
        return f"{wrong} must be a string"
    count = entry["count"]
    return "" if isinstance(count, int) and not isinstance(count, bool) and count > 0 else "count must be at least 1"


def _line_of(text: str, key: str) -> int:
    return text.count("\n", 0, max(text.find(key), 0)) + 1


def _line_of_entry(text: str, index: int) -> int:
    """The line where an entry of the list begins, in a text that is valid JSON."""
    decoder = json.JSONDecoder()
    position = text.find("[", max(text.find('"findings"'), 0)) + 1
    start = position
    for _ in range(index + 1):
        # It also matches the empty text in between.
        start = cast("re.Match[str]", _BETWEEN.match(text, position)).end()
        _, position = decoder.raw_decode(text, start)
    return text.count("\n", 0, start) + 1
