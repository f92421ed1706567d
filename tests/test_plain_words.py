"""The texts of the project keep clear of the phrases in plain_words.toml."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from calling import every_parser
from collected import for_every

from ldlm_lint.commands.table import COMMANDS, parser_of
from ldlm_lint.rules import ALL
from ldlm_lint.untrusted_toml import loads

ROOT = Path(__file__).resolve().parent.parent
AREAS = ("docs", "help", "rules", "code")
RULE_TEXTS = ("message", "summary", "rationale", "cost", "exceptions", "versions", "verification", "fix_safety")
NAMES = re.compile(r"[a-z0-9_.:/-]*(?: [a-z0-9_]+-[a-z0-9_-]+)*")
"""Names such as ``stands-outside-tests``, and lists of them: they are keys, not texts."""
_FENCED = re.compile(r"(?ms)^( *)(`{3,}|~{3,})[^\n]*\n.*?^\1\2[^\n]*$")
_CODE = re.compile(r"(`+)(?!`).+?(?<!`)\1(?!`)", re.S)
_ADDRESS = re.compile(r"https?://\S+|(?<=\])\([^)\s]*\)")
_MARKUP = re.compile(r"(?s)\{#.*?#\}|\{%.*?%\}|\{\{.*?\}\}|<[^>]*>")
_SCRIPT_STRING = re.compile(r"\"[^\"\n]* [^\"\n]*\"|`[^`]* [^`]*`")
_BLOCK = re.compile(r"(?s)(?:(?!\n\s*\n|\n\s*(?:[-*|#>]|\d+\.) ).)+")


class Phrase(NamedTuple):
    """A phrase to keep out: its expression, plainer words, the areas it is kept out of, a text that has it, one that has not."""

    match: re.Pattern[str]
    instead: str
    scope: tuple[str, ...]
    bad: str
    good: str


class Text(NamedTuple):
    """A text without code, with single blanks, and where it was found: a file with a line, a command, or a rule with a field."""

    place: str
    text: str


def phrases() -> list[Phrase]:
    """The phrases of plain_words.toml."""
    table = loads((ROOT / "tests" / "plain_words.toml").read_text(encoding="utf-8"))
    return [
        Phrase(
            re.compile(entry["match"], re.I),
            entry["instead"],
            tuple(entry.get("scope", AREAS)),
            entry["bad"],
            entry.get("good", ""),
        )
        for entry in table["phrase"]
    ]


def prose(markdown: str) -> str:
    """A text of Markdown without its code and addresses, with as many lines as before."""
    without = _FENCED.sub(lambda found: "\n" * found[0].count("\n"), markdown)
    without = _CODE.sub(lambda found: "`code`" + "\n" * found[0].count("\n"), without)
    return _ADDRESS.sub("", without)


def paragraphs(markdown: str) -> Iterator[tuple[int, str]]:
    """The paragraphs, list items and table rows of a text without its code, each with its first line (from 1) and single blanks."""
    text = prose(markdown)
    for found in _BLOCK.finditer(text):
        line = text.count("\n", 0, found.start() + len(found[0]) - len(found[0].lstrip())) + 1
        yield line, " ".join(found[0].split()).lstrip("-*#> ")


def pages() -> Iterator[Text]:
    """The paragraphs of every page that users read."""
    names = (
        "README.md",
        "CHANGELOG.md",
        "CONTRIBUTING.md",
        "examples/latent-captions/README.md",
        "editors/vscode/README.md",
        "editors/vscode/CHANGELOG.md",
    )
    for path in (*map(ROOT.joinpath, names), *sorted((ROOT / "docs").rglob("*.md"))):
        name = path.relative_to(ROOT).as_posix()
        for line, text in paragraphs(path.read_text(encoding="utf-8")):
            yield Text(f"{name}:{line}", text)
    yield from pages_for_browsers()


def pages_for_browsers() -> Iterator[Text]:
    """The paragraphs of the templates of reports and site, and the strings of their scripts."""
    for folder in ("ldlm_lint/report/html", "docs/_templates", "docs/_static"):
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in {".html", ".js"}:
                source = path.read_text(encoding="utf-8")
                texts = _SCRIPT_STRING.findall(source) if path.suffix == ".js" else _MARKUP.sub("\n\n", source).split("\n\n")
                yield from (Text(path.relative_to(ROOT).as_posix(), " ".join(text.split())) for text in texts)


def helps() -> Iterator[Text]:
    """What ``--help`` prints for every command."""
    for parser in (parser_of([command.name for command in COMMANDS]), *every_parser()):
        for _, text in paragraphs(parser.format_help()):
            yield Text(f"{parser.prog} --help", text)


def rules() -> Iterator[Text]:
    """The texts of every rule."""
    for rule in ALL:
        for field in RULE_TEXTS:
            for _, text in paragraphs(getattr(rule, field)):
                yield Text(f"{rule.symbol}: {field}", text)


def code() -> Iterator[Text]:
    """The docstrings and string literals of the package; names, which hold no blank between words, are not texts."""
    for path in sorted((ROOT / "ldlm_lint").rglob("*.py")):
        name = path.relative_to(ROOT).as_posix()
        for line, literal in literals(ast.parse(path.read_text(encoding="utf-8"))):
            if NAMES.fullmatch(literal):
                continue
            for offset, text in paragraphs(literal):
                yield Text(f"{name}:{line + offset - 1}", text)


def literals(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """The string literals of a tree with their first lines; the values of a formatted string are shown as ``{}``."""
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.lineno, node.value
        elif isinstance(node, ast.JoinedStr):
            parts = (part.value if isinstance(part, ast.Constant) else "{}" for part in node.values)
            yield node.lineno, "".join(map(str, parts))
            waiting += (part for part in node.values if isinstance(part, ast.FormattedValue))
        else:
            waiting += ast.iter_child_nodes(node)


TEXTS = {"docs": pages, "help": helps, "rules": rules, "code": code}


@pytest.mark.parametrize("area", AREAS)
def test_texts_are_free_of_the_phrases(area: str) -> None:
    kept_out = [phrase for phrase in phrases() if area in phrase.scope]
    texts = list(TEXTS[area]())
    assert sum(len(text.text) for text in texts) > 5_000
    found = [
        f"{place}: {text[max(0, match.start() - 30) : match.end() + 30]!r}: instead of {match[0]!r}: {phrase.instead}"
        for place, text in texts
        for phrase in kept_out
        for match in phrase.match.finditer(text)
    ]
    assert not found, "\n" + "\n".join(found)


@for_every("phrase", phrases(), ids=lambda phrase: phrase.match.pattern)
def test_a_phrase_matches_its_example_and_nothing_like_it(phrase: Phrase) -> None:
    assert phrase.match.search(phrase.bad)
    assert not phrase.good or not phrase.match.search(phrase.good)
    assert set(phrase.scope) <= set(AREAS)
    assert phrase.instead


def test_code_is_left_out() -> None:
    page = "A `nobody` and\n`some\ncode` here.\n\n```sh\nnobody\n```\n- item one\n- item [two](nobody.md)\n"
    assert list(paragraphs(page)) == [(1, "A `code` and `code` here."), (8, "item one"), (9, "item [two]")]


def test_values_are_left_out_of_literals() -> None:
    tree = ast.parse('"""One\ntwo."""\nx = f"a {b + \'c\'} d"\n')
    assert sorted(literals(tree)) == [(1, "One\ntwo."), (3, "a {} d"), (3, "c")]
