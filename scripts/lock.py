"""Writes the locks: requirements-dev.txt (everything a developer and CI install) and requirements-uv.txt (uv itself).

    python scripts/lock.py             # unchanged, plus new requirements of pyproject.toml
    python scripts/lock.py --upgrade   # the newest versions

Both pin every package with its hashes, for Python 3.10 and later on all systems. Needs uv and a network.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
EXTRAS = ("dev", "docs", "gate", "release", "test")
COMMAND = "python scripts/lock.py"


def compiled(source: Path | str, target: Path, *, upgrade: bool, extras: tuple[str, ...] = ()) -> None:
    """Resolve the requirements of a file (``-``: uv alone) into a lock file; raises CalledProcessError."""
    words = ["uv", "pip", "compile", "--quiet", str(source), "--universal", "--python-version", "3.10", "--generate-hashes"]
    words += ["--no-emit-index-url", "--custom-compile-command", COMMAND, "--output-file", str(target)]
    words += [word for extra in extras for word in ("--extra", extra)] + ["--upgrade"] * upgrade
    given = "uv\n" if source == "-" else None
    subprocess.run(words, check=True, text=True, input=given, stdout=subprocess.DEVNULL, cwd=ROOT)


def main() -> int:
    """Write both files."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--upgrade", action="store_true", help="take the newest versions")
    upgrade = parser.parse_args().upgrade
    compiled("pyproject.toml", ROOT / "requirements-dev.txt", upgrade=upgrade, extras=EXTRAS)
    compiled("-", ROOT / "requirements-uv.txt", upgrade=upgrade)
    return 0


if __name__ == "__main__":
    sys.exit(main())
