"""Runs the commands of the ``console`` blocks in docs/ again, and writes their current output into the pages.

    python scripts/update_consoles.py [PAGE ...]

If a block omits lines (``...``), the new one omits the same ones. Pages that need a GPU or that show the time of a
machine are not touched; tests report which of the others are out of date.
"""

from __future__ import annotations

import argparse
import difflib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
EXAMPLE = ROOT / "examples" / "latent-captions"
_BLOCK = re.compile(r"(?ms)(^```console\n\$ )([^\n]*)\n(.*?)(^```$)")
_NOTEBOOK = re.compile(r"(?ms)^```json\n(.*?)^```$")
_TIME = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC")
_BLANKS = re.compile(r"(?m)[ \t]+$")
_LEFT_OUT = "..."


def _here(_text: str, _folder: Path) -> Path:
    return ROOT


def _in_example(_text: str, folder: Path) -> Path:
    return Path(shutil.copytree(EXAMPLE, folder / EXAMPLE.name))


def _beside_notebook(text: str, folder: Path) -> Path:
    (folder / "tune.ipynb").write_text(_NOTEBOOK.findall(text)[0], encoding="utf-8")
    return folder


PAGES: dict[str, Callable[[str, Path], Path]] = {
    "docs/formats.md": _here,
    "docs/program.md": _here,
    "docs/probe.md": _here,
    "docs/monitor.md": _here,
    "docs/editors.md": _in_example,
    "docs/fixes.md": _in_example,
    "docs/notebooks.md": _beside_notebook,
}
"""The pages by what makes the folder that their commands run in, of the text of the page and an empty folder."""


def updated(name: str) -> str:
    """The text of a page with the current output of its commands."""
    text = (ROOT / name).read_text(encoding="utf-8")
    with tempfile.TemporaryDirectory() as folder:
        place = PAGES[name](text, Path(folder))
        return _BLOCK.sub(lambda block: f"{block[1]}{block[2]}\n{_shown(block[3], _printed(block[2], place))}{block[4]}", text)


def _printed(command: str, place: Path) -> str:
    """The stdout of a command run in a folder."""
    plain = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "FORCE_COLOR")}
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"
    done = subprocess.run(
        ["bash", "-c", command],
        cwd=place,
        env={**plain, "PATH": path, "COLUMNS": "120"},
        stdout=subprocess.PIPE,
        text=True,
        encoding="utf-8",
        check=False,
    )
    return done.stdout.strip("\n") + "\n"


def _shown(old: str, new: str) -> str:
    """The shown part of the new output: the same parts as before, with the old time of a run."""
    for time in _TIME.findall(old)[:1]:
        new = _TIME.sub(time, new)
    if not _BLANKS.search(old):
        new = _BLANKS.sub("", new).strip("\n") + "\n"
    if f"\n{_LEFT_OUT}\n" not in old:
        return new
    parts = [part.split("\n") for part in old.rstrip("\n").split(f"\n{_LEFT_OUT}\n")]
    lines = new.rstrip("\n").split("\n")
    places = _places([line for part in parts for line in part], lines)
    pieces, at = [], 0
    for part in parts:
        first, last = places[at], places[at + len(part) - 1]
        pieces.append("\n".join(lines[first : last + 1]))
        at += len(part)
    return f"\n{_LEFT_OUT}\n".join(pieces) + "\n"


def _places(old: Sequence[str], new: Sequence[str]) -> list[int]:
    """For each old line its new one: an equal one, or the one that replaces it."""
    places = []
    for _, first, last, begin, end in difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        places += [min(begin + at, max(end - 1, begin)) for at in range(last - first)]
    return places


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the pages that are named, or all, and name those that changed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pages", nargs="*", metavar="PAGE", help=f"default: {', '.join(PAGES)}")
    for name in parser.parse_args(arguments).pages or PAGES:
        text = updated(name)
        if (ROOT / name).read_text(encoding="utf-8") != text:
            (ROOT / name).write_text(text, encoding="utf-8", newline="\n")
            print(name)
    return 0


if __name__ == "__main__":
    sys.exit(main())
