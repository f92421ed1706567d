"""Checks whether every address in the documentation and the rules still exists.

    python scripts/check_links.py

It prints missing addresses and exits with 1 if there are any. Each address is requested once, at most four at a time,
with a second try after a pause; an address that rejects robots (401, 403, 429) or takes too long is printed as unknown
and does not fail the check. Links inside the documentation are checked by tests/test_site.py, which needs no network.
"""

from __future__ import annotations

import argparse
import re
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGES = ("README.md", "CONTRIBUTING.md", "docs/**/*.md")
AGENT = "ldlm-lint-link-check"
REFUSED = frozenset((401, 403, 405, 429))
TRIES, PAUSE, TIMEOUT = 2, 5.0, 30.0
_ADDRESS = re.compile(r"https?://[^\s<>\"'`)\]]+")
_FENCE = re.compile(r"^( *)```.*?^\1```$", re.M | re.S)


def named(texts: Iterable[str]) -> list[str]:
    """The addresses in texts, without code blocks and anchors, each once."""
    found = (match.rstrip(".,;:").partition("#")[0] for text in texts for match in _ADDRESS.findall(_FENCE.sub("", text)))
    return sorted(set(found))


def answer(address: str, *, pause: float = PAUSE) -> str:
    """``ok``, ``gone: ...`` or ``unknown: ...``."""
    verdict = ""
    for turn in range(TRIES):
        if turn:
            time.sleep(pause)
        request = urllib.request.Request(address, headers={"User-Agent": AGENT})
        try:
            with urllib.request.urlopen(request, timeout=TIMEOUT):
                return "ok"
        except urllib.error.HTTPError as error:
            verdict = f"{'unknown' if error.code in REFUSED or error.code >= 500 else 'gone'}: {error.code}"
        except (urllib.error.URLError, TimeoutError, OSError) as error:
            verdict = f"unknown: {error}"
    return verdict


def main() -> int:
    """Check all of them; returns 1 if one is missing."""
    argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0]).parse_args()
    texts = (path.read_text(encoding="utf-8") for pattern in PAGES for path in sorted(ROOT.glob(pattern)))
    addresses = named(texts)
    with ThreadPoolExecutor(4) as pool:
        answers = dict(zip(addresses, pool.map(answer, addresses), strict=True))
    for address, verdict in answers.items():
        if verdict != "ok":
            print(f"{verdict}  {address}")
    counts = {word: sum(verdict.startswith(word) for verdict in answers.values()) for word in ("ok", "gone", "unknown")}
    print(f"{len(answers)} addresses: {counts['ok']} there, {counts['gone']} gone, {counts['unknown']} unknown")
    return 1 if counts["gone"] else 0


if __name__ == "__main__":
    sys.exit(main())
