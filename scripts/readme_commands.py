"""Prints the shell commands of README's ``bash`` blocks, for a run like that of a new user.

``ldlm-lint`` exits with 1 if it has findings, which README's first command demonstrates; so 1 is expected there, and 0
is an error.
"""

from __future__ import annotations

import re
from pathlib import Path

README = Path(__file__).resolve().parent.parent / "README.md"
_BLOCK = re.compile(r"^```bash\n(.*?)^```$", re.M | re.S)


def commands(text: str) -> list[str]:
    """The commands of all ``bash`` blocks, in order; one that lints the example must report findings."""
    found = [line for block in _BLOCK.findall(text) for line in block.splitlines() if line]
    return [f"({line}) && exit 1 || test $? -eq 1" if "ldlm-lint examples" in line else line for line in found]


if __name__ == "__main__":
    print("\n".join(commands(README.read_text(encoding="utf-8"))))
