"""Writes docs/assets/*.svg: the terminal output of the command, drawn by rich; ``--check`` only compares.

Each picture is the output of the command in its title, run on the example repository.
"""

from __future__ import annotations

import argparse
import io
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.text import Text

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "docs" / "assets"
EXAMPLE = "examples/latent-captions"
COLUMNS = 112
# rich's own frame loads its font from a server; a picture in the documentation must not.
FRAME = """\
<svg class="rich-terminal" viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg">
<style>
.{unique_id}-matrix {{ font-family: ui-monospace, Menlo, Consolas, "DejaVu Sans Mono", monospace; font-size: {char_height}px; line-height: {line_height}px; font-variant-east-asian: full-width; }}
.{unique_id}-title {{ font-size: 18px; font-weight: bold; font-family: arial, sans-serif; }}
{styles}
</style>
<defs>
<clipPath id="{unique_id}-clip-terminal"><rect x="0" y="0" width="{terminal_width}" height="{terminal_height}" /></clipPath>
{lines}
</defs>
{chrome}
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}
<g class="{unique_id}-matrix">
{matrix}
</g>
</g>
</svg>
"""


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture: its file's name without the suffix, and the arguments of the command."""

    name: str
    arguments: tuple[str, ...]

    @property
    def title(self) -> str:
        """The command as typed."""
        return " ".join(("ldlm-lint", *self.arguments))


PICTURES = (
    Picture("findings", ("check", f"{EXAMPLE}/captions/data.py")),
    Picture("launch", ("graph", EXAMPLE)),
    Picture("nccl", ("check", f"{EXAMPLE}/scripts/train.sh", "--select", "excessive-heartbeat-timeout,nccl-monitoring-disabled")),
)


def drawn(picture: Picture) -> str:
    """The picture as SVG."""
    environment = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "COLORTERM")}
    environment |= {"FORCE_COLOR": "1", "TERM": "xterm-256color", "COLUMNS": str(COLUMNS), "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "ldlm_lint", *picture.arguments]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    if done.returncode not in (0, 1):
        raise SystemExit(f"{picture.title} ended with {done.returncode}: {done.stderr}")
    console = Console(record=True, width=COLUMNS, file=io.StringIO(), force_terminal=True, color_system="256")
    console.print(Text.from_ansi(done.stdout.rstrip()))
    return console.export_svg(title=picture.title, code_format=FRAME, unique_id=picture.name)


def main() -> int:
    """Write or compare the pictures; 1 where one is out of date."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="write nothing; exit with 1 where a picture is out of date")
    check = parser.parse_args().check
    stale = []
    for picture in PICTURES:
        path, wanted = FOLDER / f"{picture.name}.svg", drawn(picture)
        if check and (not path.exists() or path.read_text(encoding="utf-8") != wanted):
            stale.append(path.name)
        elif not check:
            path.write_text(wanted, encoding="utf-8", newline="\n")
    for name in stale:
        print(f"docs/assets/{name} is out of date: python scripts/screenshots.py", file=sys.stderr)
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main())
