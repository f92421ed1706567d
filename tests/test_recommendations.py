"""docs/recommendations.md speaks of real rules, shows snippets that lint as it says, and leaves nothing out."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from collected import for_every
from harness import lint

from ldlm_lint.rules import OPTIONS, by_symbol

PAGE = Path(__file__).parent.parent / "docs" / "recommendations.md"
TEXT = PAGE.read_text(encoding="utf-8")
# Names of the catalogue that the page speaks of before they are rules. A name leaves this set when it becomes one, and
# its "(planned)" leaves the page.
PLANNED: set[str] = set()
# Spelt like the name of a rule, and none.
PROGRAMS = {"ldlm-lint", "nvidia-smi"}
AREAS = (
    "Data loading",
    "Gradient accumulation",
    "Memory",
    "Loss",
    "Distributed training",
    "Learning-rate schedule",
    "Monitoring and checkpointing",
    "Adaptive hyperparameters",
    "Batch size",
    "Parameter freezing",
)
PHASES = (
    "Critical fixes",
    "Data loading",
    "Memory",
    "DDP",
    "Optimizer",
    "Loss function",
    "Checkpoint management",
    "Validation",
    "Multi-node",
)
TOOLS = ("Backup and rollback", "apply_critical_fixes.sh", "benchmark_training.sh", "monitor_training.py")
VERDICTS = {"right", "imprecise", "unsupported", "wrong", "dangerous"}
_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.M | re.S)
_SNIPPET = re.compile(
    r"^<!-- lint: (?P<kind>bad|instead)(?P<rules>(?: [a-z0-9-]+)*) -->\n```(?P<language>python|bash)\n(?P<code>.*?)^```$",
    re.M | re.S,
)
_HEADING = re.compile(r"^(#+) (.*)$", re.M)
_FILES = {"python": "snippet.py", "bash": "snippet.sh"}


@dataclass(frozen=True)
class Snippet:
    """A program of the page: what it shows, and which rules it must bring about."""

    name: str
    bad: bool
    rules: frozenset[str]
    language: str
    code: str


def outside_of_code(text: str) -> str:
    """The page without its fenced programs and comments."""
    return re.sub(r"<!--.*?-->", "", _FENCE.sub("", text), flags=re.S)


def snippets() -> list[Snippet]:
    """Every program of the page, named by its heading and its place among the programs there."""
    found: list[Snippet] = []
    for match in _SNIPPET.finditer(TEXT):
        heading = _HEADING.findall(outside_of_code(TEXT[: match.start()]))[-1][1].partition(":")[0]
        earlier = sum(one.name.startswith(f"{heading}/") for one in found)
        rules = frozenset(match["rules"].split())
        found.append(Snippet(f"{heading}/{earlier + 1}", match["kind"] == "bad", rules, match["language"], match["code"]))
    return found


SNIPPETS = snippets()
MENTIONS = re.findall(r"`([a-z]+(?:-[a-z0-9]+)+)`(\s+\(planned\))?", outside_of_code(TEXT))
NAMED = {name for name, _ in MENTIONS if name not in PROGRAMS and name not in OPTIONS}


def section(title: str) -> str:
    """The text below a heading, up to the next one of any level."""
    return re.split(r"^#+ ", outside_of_code(TEXT.partition(f"# {title}\n")[2]), maxsplit=1, flags=re.M)[0]


def linted(snippet: Snippet, root: Path) -> set[str]:
    """The names of the rules that find something in a snippet that stands alone in a project."""
    (root / "pyproject.toml").write_text("[tool.ldlm-lint]\n", encoding="utf-8")
    if snippet.bad:
        (root / "pyproject.toml").write_text('[tool.ldlm-lint]\nextend-select = ["ALL"]\n', encoding="utf-8")
    (root / _FILES[snippet.language]).write_text(snippet.code, encoding="utf-8")
    return {finding.rule for finding in lint(root).findings}


def test_a_planned_rule_that_exists_is_planned_no_longer():
    arrived = PLANNED & by_symbol.keys()
    assert not arrived, f"these are rules now: take {sorted(arrived)} out of PLANNED, and '(planned)' out of the page"


def test_every_planned_rule_is_spoken_of():
    shown = NAMED.union(*(snippet.rules for snippet in SNIPPETS))
    assert not PLANNED - shown


@for_every("name", sorted(NAMED))
def test_a_rule_that_is_named_exists_or_is_marked_as_planned(name):
    assert name in by_symbol or name in PLANNED, f"`{name}` is no rule: docs/rules.md has the names"
    marks = {bool(mark) for mention, mark in MENTIONS if mention == name}
    wanted = "without" if name in by_symbol else "with"
    assert marks == {name not in by_symbol}, f"write `{name}` {wanted} '(planned)' behind it, everywhere on the page"


@for_every("snippet", SNIPPETS, ids=lambda one: one.name)
def test_a_snippet_lints_as_the_page_says(snippet, tmp_path):
    found = linted(snippet, tmp_path)
    if not snippet.bad:
        assert found == set()
        return
    assert snippet.rules <= by_symbol.keys() | PLANNED
    assert snippet.rules
    missing = (snippet.rules & by_symbol.keys()) - found
    assert not missing, f"the page promises {sorted(missing)} for this snippet, and linting it finds {sorted(found)}"


def test_every_program_of_the_page_is_linted():
    assert len(SNIPPETS) == len(_FENCE.findall(TEXT))
    assert {one.language for one in SNIPPETS if one.bad} == {one.language for one in SNIPPETS if not one.bad}


def test_every_link_is_https_or_leads_to_a_heading():
    anchors = set()
    for _, title in _HEADING.findall(outside_of_code(TEXT)):
        anchors.add("#" + re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-"))
    for target in re.findall(r"\]\(([^)]+)\)", outside_of_code(TEXT)):
        assert target.startswith("https://") or target in anchors, target
    assert "http://" not in TEXT


def test_all_areas_phases_and_tools_have_their_sections():
    titles = [title for _, title in _HEADING.findall(outside_of_code(TEXT))]
    assert [title for title in titles if title.startswith("Area ")] == [
        f"Area {number}: {name}" for number, name in enumerate(AREAS, 1)
    ]
    assert [title for title in titles if title.startswith("Phase ")] == [
        f"Phase {number}: {name}" for number, name in enumerate(PHASES, 1)
    ]
    assert set(TOOLS) | {"The headline figures", "The success criteria"} <= set(titles)


@for_every(
    "title",
    [title for _, title in _HEADING.findall(outside_of_code(TEXT)) if title.startswith(("Area ", "Phase ")) or title in TOOLS],
)
def test_a_section_gives_its_verdict(title):
    words = set(re.findall(r"[a-z]+", " ".join(re.findall(r"\*\*(.*?)\*\*", section(title), re.S)).lower()))
    assert words & VERDICTS
    if title.startswith("Area "):
        assert re.search(r"\*They say\*:", section(title))
        assert re.search(r"\*Rules?\*:", section(title))
        assert re.search(r"\*Instead\*|Instead|What the tool does", section(title))


def test_the_table_is_sorted_by_what_must_be_undone_first():
    rows = re.findall(r"^\| .* \| (\w+) \| .* \|$", section("Every recommendation in one table"), re.M)
    verdicts = [row for row in rows if row != "verdict"]
    assert set(verdicts) == VERDICTS
    last = max(place for place, verdict in enumerate(verdicts) if verdict == "dangerous")
    assert set(verdicts[: last + 1]) == {"dangerous"}


def test_no_percentage_without_its_source():
    """A figure stands in quotation marks (the documents' words), beside a link, or says that it was measured here."""
    blocks = re.split(r"\n\n|\n(?=\||- |\d+\. )", outside_of_code(TEXT))
    for block in blocks:
        own = re.sub(r'"[^"]*"', "", block)
        if re.search(r"\d ?%", own):
            assert "https://" in own or re.search(r"we\s+(ran|measured)", own), block
