"""Pages that the site has beside those of docs/: README as its start, changes, contributing, and one page per rule.

A hook of mkdocs (``hooks`` in mkdocs.yml): the pages are made while the site is built and written nowhere else, so that
they cannot be out of date. Links of README to files of the repository lead to the page that the site has of them, and
where it has none to the file on the repository's own site.
"""

from __future__ import annotations

import posixpath
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "scripts"), str(ROOT / "tests")]

import gen_docs  # noqa: E402
from harness import cases  # noqa: E402

from ldlm_lint.rules import ALL  # noqa: E402

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files

# Files of the repository's root that are pages of the site, by their place in it.
OF_ROOT = {"README.md": "index.md", "CHANGELOG.md": "changelog.md", "CONTRIBUTING.md": "contributing.md"}
_LINK = re.compile(r"(?<=\]\()(?!https?:|#|mailto:)([^)#\s]+)(#[^)\s]*)?(?=\))")


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Put the rules into the navigation, family by family; called by mkdocs before anything else."""
    families: list[dict[str, object]] = [{"All rules": "rules/index.md"}]
    for family, title in gen_docs.FAMILIES.items():
        families.append({title: [{rule.symbol: f"rules/{rule.symbol}.md"} for rule in ALL if rule.family == family]})
    config["nav"] = [{"Rules": families} if "Rules" in entry else entry for entry in config["nav"]]
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages; called by mkdocs when it has listed docs/."""
    from mkdocs.structure.files import File

    for place, text in pages(config["repo_url"]):
        files.append(File.generated(config, place, content=text))
    return files


def on_page_markdown(markdown: str, *, page: object, config: MkDocsConfig, files: Files) -> str:
    """Lead the links of docs/ to what the site has in the place of rules.md and of files outside of docs/."""
    place = page.file.src_uri  # type: ignore[attr-defined]
    return markdown if place in OF_ROOT.values() else linked(markdown, f"docs/{place}", config["repo_url"])


def pages(repository: str) -> Iterator[tuple[str, str]]:
    """The generated pages: place in the site, text."""
    for name, place in OF_ROOT.items():
        yield place, linked((ROOT / name).read_text(encoding="utf-8"), name, repository)
    examples = {(case.symbol, case.path.stem): case for case in cases()}
    index = "\n".join([gen_docs.INTRODUCTION, *gen_docs._index(list(ALL))])
    yield "rules/index.md", re.sub(r"\]\(#([\w-]+)\)", r"](\1.md)", index)
    for rule in ALL:
        text = gen_docs.page(rule, examples.get((rule.symbol, "bad")), examples.get((rule.symbol, "good")))
        yield f"rules/{rule.symbol}.md", re.sub(r"^##(#?) ", r"#\1 ", text, flags=re.M)


def linked(text: str, origin: str, repository: str) -> str:
    """The text with its links of the repository, as a file at ``origin`` writes them, as links of the site."""
    place = OF_ROOT.get(origin, origin.removeprefix("docs/"))

    def of_site(match: re.Match[str]) -> str:
        target, anchor = posixpath.normpath(posixpath.join(posixpath.dirname(origin), match[1])), match[2] or ""
        if target == "docs/rules.md":
            found, anchor = f"rules/{anchor.removeprefix('#') or 'index'}.md", ""
        elif target in OF_ROOT:
            found = OF_ROOT[target]
        elif target.startswith("docs/") and (ROOT / target).is_file():
            found = target.removeprefix("docs/")
        else:
            kind = "tree" if (ROOT / target).is_dir() else "blob"
            return f"{repository}/{kind}/main/{target}{anchor}"
        return posixpath.relpath(found, posixpath.dirname(place) or ".") + anchor

    return _LINK.sub(of_site, text)
