"""Which pages the site has, in which order, and where their links lead.

docs/index.md is the owner of the navigation: on GitHub it is a list of links, on the site each of its lists is a part of
the sidebar. Links to files of the repository that are no page of the site lead to the repository's own site.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from sphinx.application import Sphinx

ROOT = Path(__file__).resolve().parent.parent.parent
DOCS = ROOT / "docs"
REPOSITORY = "https://github.com/ldlm-lint/ldlm-lint"
INDEX = "index"
# Pages of docs/ that are a link on GitHub, and on the site the file that they link to.
IN_PLACE = {"changelog": "CHANGELOG.md", "contributing": "CONTRIBUTING.md"}
_LINK = re.compile(r"(?<=\]\()(?!https?:|#|mailto:)([^)#\s]+)(#[^)\s]*)?(?=\))")
_PART = re.compile(r"^## +(.+?) *$|^- \[([^\]]+)\]\(([^)]+)\.md\)", re.M)


class Entry(NamedTuple):
    """A page of the navigation: how it is called there, and its name as Sphinx knows it (without suffix)."""

    title: str
    page: str


def navigation(index: str) -> dict[str, list[Entry]]:
    """The parts of the navigation by their titles, of the text of docs/index.md."""
    parts: dict[str, list[Entry]] = {}
    for heading, title, page in _PART.findall(index):
        if heading:
            parts[heading] = []
        else:
            parts[next(reversed(parts))].append(Entry(title, page))
    return parts


def linked(text: str, origin: str) -> str:
    """The text with its links as the site has them; ``origin`` is the file that holds it, by its path in the repository."""
    stands_for = {source: f"docs/{page}.md" for page, source in IN_PLACE.items()}
    place = stands_for.get(origin, origin)

    def of_site(match: re.Match[str]) -> str:
        target, anchor = posixpath.normpath(posixpath.join(posixpath.dirname(origin), match[1])), match[2] or ""
        found = stands_for.get(target, target)
        if found.startswith("docs/") and (ROOT / found).is_file():
            return posixpath.relpath(found, posixpath.dirname(place)) + anchor
        kind = "tree" if (ROOT / target).is_dir() else "blob"
        return f"{REPOSITORY}/{kind}/main/{target}{anchor}"

    return _LINK.sub(of_site, text)


def toctrees(parts: dict[str, list[Entry]]) -> str:
    """The navigation as Sphinx reads it."""
    return "\n".join(toctree((f"{entry.title} <{entry.page}>" for entry in entries), title) for title, entries in parts.items())


def toctree(entries: Iterable[str], caption: str = "") -> str:
    """A hidden table of contents: it says what is below a page, and shows nothing."""
    lines = [f":caption: {caption}"] * bool(caption) + [":hidden:", "", *entries]
    return "\n```{toctree}\n" + "\n".join(lines) + "\n```\n"


def site_text(page: str, text: str) -> str:
    """The text of a page of docs/ (named without suffix) as the site shows it."""
    if page == INDEX:
        return f"# ldlm-lint\n{toctrees(navigation(text))}"
    if page in IN_PLACE:
        return linked((ROOT / IN_PLACE[page]).read_text(encoding="utf-8"), IN_PLACE[page])
    below = toctree(_below(page)) if (DOCS / page).is_dir() or page == "evidence/README" else ""
    return linked(text, f"docs/{page}.md") + below


def _below(page: str) -> Iterator[str]:
    """The pages in the folder that a page is the index of."""
    folder = (DOCS / page) if (DOCS / page).is_dir() else (DOCS / page).parent
    for path in sorted(folder.glob("*.md")):
        name = path.relative_to(DOCS).with_suffix("").as_posix()
        if name != page:
            yield f"/{name}"


def setup(app: Sphinx) -> None:
    """Rewrite each page when it is read, and give the navigation to the templates."""

    def read(app: Sphinx, page: str, source: list[str]) -> None:
        source[0] = site_text(page, source[0])

    parts = navigation((DOCS / f"{INDEX}.md").read_text(encoding="utf-8"))
    app.connect("source-read", read)
    app.connect("html-page-context", lambda app, page, template, context, tree: context.update(navigation=parts))
