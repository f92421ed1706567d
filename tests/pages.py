"""HTML pages as tests read them: elements with attributes and texts, and what must hold of every page."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser

VOID = frozenset(["area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr"])


@dataclass
class Element:
    """An element with its children: elements and texts."""

    tag: str
    attributes: dict[str, str]
    children: list[Element | str] = field(default_factory=list)

    @property
    def text(self) -> str:
        """All of its text."""
        return "".join(child if isinstance(child, str) else child.text for child in self.children)

    @property
    def classes(self) -> list[str]:
        return self.attributes.get("class", "").split()

    def all(self, tag: str = "", **attributes: str) -> Iterator[Element]:
        """The elements below with a tag and attributes, in order; ``kind`` stands for a class."""
        for child in self.children:
            if isinstance(child, Element):
                kind = attributes.get("kind", "")
                others = {name: value for name, value in attributes.items() if name != "kind"}
                same = all(child.attributes.get(name) == value for name, value in others.items())
                if (not tag or child.tag == tag) and same and (not kind or kind in child.classes):
                    yield child
                yield from child.all(tag, **attributes)


class _Parser(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.root = Element("", {})
        self.open = [self.root]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        names = [name for name, _ in attrs]
        assert len(set(names)) == len(names), f"<{tag}> repeats an attribute: {names}"
        element = Element(tag, {name: value or "" for name, value in attrs})
        self.open[-1].children.append(element)
        if tag not in VOID:
            self.open.append(element)

    def handle_endtag(self, tag: str) -> None:
        assert self.open[-1].tag == tag, f"</{tag}> closes <{self.open[-1].tag}> at {self.getpos()}"
        self.open.pop()

    def handle_data(self, data: str) -> None:
        self.open[-1].children.append(data)


def parsed(text: str) -> Element:
    """The page as a tree; fails where an element is not closed in order."""
    parser = _Parser()
    parser.feed(text)
    parser.close()
    assert parser.open == [parser.root], f"not closed: {[one.tag for one in parser.open[1:]]}"
    return parser.root


def checked(text: str) -> Element:
    """The page as a tree, once what must hold of each page does: one file, nothing but its own script, unique ids, labels."""
    page = parsed(text)
    ids = [one.attributes["id"] for one in page.all() if "id" in one.attributes]
    assert len(set(ids)) == len(ids), sorted({one for one in ids if ids.count(one) > 1})
    for one in page.all():
        assert not [name for name in one.attributes if name.startswith("on") or name == "style"], one
        assert not {"src", "srcset", "action", "formaction"} & one.attributes.keys(), one
        assert one.tag not in ("iframe", "object", "embed", "base", "form-associated", "link"), one
        href = one.attributes.get("href", "#")
        assert href.startswith(("#", "https://")), href
        if href.startswith("#") and len(href) > 1:
            assert href[1:] in ids, href
        for name in ("aria-labelledby", "data-copy"):
            assert one.attributes.get(name, "") in ("", *ids), one
    for one in page.all("button"):
        assert one.text.strip() or "aria-label" in one.attributes
    _check_policy(page)
    return page


def _check_policy(page: Element) -> None:
    """The policy allows the page's own style sheet and script by their hashes, and nothing else."""
    (policy,) = (one.attributes["content"] for one in page.all("meta") if one.attributes.get("http-equiv"))
    rules = dict(rule.split(" ", 1) for rule in policy.split("; "))
    assert rules["default-src"] == "'none'" and "unsafe" not in policy
    (script,), (style,) = page.all("script"), page.all("style")
    for element, name in ((script, "script-src"), (style, "style-src")):
        assert rules[name] == f"'sha256-{base64.b64encode(hashlib.sha256(element.text.encode()).digest()).decode()}'"
    assert not re.search(r"url\(|@import", style.text)
