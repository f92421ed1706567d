"""What every Rule object must say, and how: these texts are all that a user gets to see."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

import pytest
from collected import for_every

from ldlm_lint.checkers.queries import queries
from ldlm_lint.model import Applicability, Rule, Severity
from ldlm_lint.pylint_host.messages import message_definitions
from ldlm_lint.rules import ALL, OPTIONS, by_symbol
from ldlm_lint.rules.linter import HOST_RULES

pytestmark = pytest.mark.xdist_group("fixtures")
every_rule = for_every("rule", ALL, lambda rule: rule.symbol)
every_option = for_every("option", OPTIONS.values(), lambda option: option.name)

# The families of the catalogue.
FAMILIES = {"68", "71", "72", "73", "75", "76", "78"}
# Words that name a remedy or a rule of conduct, not a defect.
REMEDIES = {
    "no",
    "use",
    "avoid",
    "prefer",
    "do",
    "dont",
    "require",
    "enable",
    "disable",
    "set",
    "add",
    "should",
    "must",
}
# Names of torch's interface that are what the defect lacks, and hold such a word.
INTERFACE = ("no-sync", "use-reentrant", "set-epoch")
# `missing-` stands in one name of the catalogue only.
MISSING = {"missing-activation-checkpointing"}
# Hosts of primary sources: documentation and repositories of the software that a rule speaks of.
SOURCES = {
    "docs.pytorch.org",
    "pytorch.org",
    "docs.nvidia.com",
    "github.com",
    "huggingface.co",
    "lightning.ai",
    "docs.python.org",
    "www.gnu.org",
}
# Percentages and speed-ups that a text may give: each stands beside the source it comes from.
MEASURED = {
    "cache-emptied-in-training-loop": {"10 %": "Hugging Face says"},
    "missing-activation-checkpointing": {"20 %": "Hugging Face says", "18 to 36 %": "we measured"},
    "optimizer-not-fused": {"3 %": "deepmd-kit#4463", "1.5 to 2 %": "torchtitan#355"},
}
UNITS = re.compile(r"\b(seconds|minutes|hours|bytes|batches|checkpoints|workers|steps|ranks|names|files|dollars)\b")
SENTENCES = ("summary", "rationale", "cost", "exceptions", "versions", "verification", "fix_safety")
PERCENTAGE = re.compile(r"(?:\d[\d.]*(?: ?(?:-|to) ?))?\d[\d.]* ?(?:%|percent|per cent)")
TEMPLATE = re.compile(r"%\((\w+)\)[sd]")


def texts(rule: Rule) -> dict[str, str]:
    return {name: getattr(rule, name) for name in SENTENCES if getattr(rule, name)}


@every_rule
def test_a_symbol_is_kebab_case_and_names_the_defect(rule):
    assert re.fullmatch(r"[a-z][a-z0-9]*(-[a-z0-9]+)+", rule.symbol)
    words = set(re.sub("|".join(INTERFACE), "", rule.symbol).split("-"))
    # The catalogue's "set too late" is the defect; "set" alone would be its remedy.
    assert not (words - ({"set"} if "late" in words else set())) & REMEDIES
    assert rule.symbol in MISSING or "missing" not in words


@every_rule
def test_a_code_is_a_pylint_id_of_a_family(rule):
    assert re.fullmatch(r"[IRWE]\d{4}", rule.code)
    assert rule.family in FAMILIES
    assert rule.severity is Severity.of_code(rule.code)


def test_an_old_name_is_no_name_of_another_rule():
    taken = [*by_symbol, *(name for rule in ALL for name in rule.old_names)]
    assert len(taken) == len(set(taken))


@every_rule
def test_every_text_is_filled_with_sentences(rule):
    wanted = set(SENTENCES) - ({"fix_safety"} if rule.applicability is None else set())
    assert set(texts(rule)) == wanted
    for name, text in texts(rule).items():
        assert text[0].isupper() or text.startswith(("`", "torch ")), name
        assert text.endswith((".", ".`")), name
        assert text == " ".join(text.split()), name
        assert text.count("`") % 2 == 0, name


@every_rule
def test_a_message_is_one_line_without_a_full_stop(rule):
    assert rule.message
    assert not rule.message.endswith(".")
    assert "\n" not in rule.message
    assert re.sub(TEMPLATE, "", rule.message).replace("%%p", "").count("%") == 0


@every_rule
def test_the_references_are_https_links_to_primary_sources(rule):
    assert rule.references
    for reference in rule.references:
        address = urlsplit(reference.url)
        assert address.scheme == "https"
        assert address.hostname in SOURCES
        assert reference.title
    links = [reference.url for reference in rule.references]
    assert len(links) == len(set(links))


@every_rule
def test_a_source_that_a_text_names_is_among_the_references(rule):
    known = " ".join(reference.title for reference in rule.references)
    named = {name for text in texts(rule).values() for name in re.findall(r"[\w-]+#\d+", text)}
    assert {name for name in named if name not in known} == set()


@every_rule
def test_no_percentage_without_its_source(rule):
    allowed = MEASURED.get(rule.symbol, {})
    found = {match.strip() for text in texts(rule).values() for match in PERCENTAGE.findall(text)}
    assert found == set(allowed)
    for number, source in allowed.items():
        sentence = next(one for one in re.split(r"(?<=[a-z)])[.;] ", rule.cost) if number in one)
        assert source in sentence
    assert not re.search(r"\d ?x faster|times faster|twice as fast", " ".join(texts(rule).values()))


@every_rule
def test_fix_safety_says_the_level_first(rule):
    openings = {
        None: "",
        Applicability.DISPLAY: "Shown only: ",
        Applicability.UNSAFE: "Unsafe: ",
        Applicability.SAFE: "Safe ",
    }
    assert rule.fix_safety.startswith(openings[rule.applicability])
    assert bool(rule.fix_safety) == (rule.applicability is not None)


@every_rule
def test_a_rule_reads_artefacts_and_has_triggers_for_them(rule):
    assert rule.reads
    assert set(rule.reads) <= {"py", "sh", "cfg"}
    # What asks the linked program has words of its own there.
    assert rule.triggers or any(rule.symbol in query.symbols for query in queries())
    assert rule.status in {"preview", "stable", "deprecated"}
    assert re.fullmatch(r"\d+\.\d+\.\d+", rule.since)


@every_rule
def test_pylint_gets_a_description_with_the_link_to_the_page(rule):
    message, symbol, description, _ = message_definitions([rule])[rule.code]
    assert (message, symbol) == ("%s", rule.symbol)
    assert description.replace("%%", "%").startswith(f"{rule.summary} {rule.rationale}")
    assert description.endswith(f"docs/rules/{rule.symbol}.md")


@every_option
def test_an_option_is_kebab_case_and_its_help_is_a_phrase_with_the_unit(option):
    assert re.fullmatch(r"[a-z]+(-[a-z]+)*", option.name)
    assert isinstance(option.default, option.kind)
    assert option.kind not in (int, float) or UNITS.search(option.help)
    assert option.help[0].islower()
    assert not option.help.endswith(".")


def test_every_message_that_a_fixture_brings_about_is_filled(reports):
    spoken: dict[str, set[str]] = {}
    for report in reports.values():
        for finding in report.findings:
            rule = by_symbol[finding.rule]
            assert set(TEMPLATE.findall(rule.message)) <= {name for name, _ in finding.args}
            spoken.setdefault(finding.rule, set()).add(rule.text(finding.args))
    assert set(spoken) == set(by_symbol) - {rule.symbol for rule in HOST_RULES}
    for symbol, messages in spoken.items():
        for message in messages:
            assert "%(" not in message, symbol
            # What the user wrote, such as ``${RANK}``, ``x=None`` or ``{{ name }}``, is quoted as it is.
            said = re.sub(r"`[^`]*`", "it", message)
            assert "%" not in said, symbol
            assert not re.search(r"\bNone\b|\{|\}|  ", said), symbol


def test_every_fix_and_related_place_of_a_fixture_says_what_it_is(reports):
    findings = [finding for report in reports.values() for finding in report.findings]
    fixes = [finding.fix for finding in findings if finding.fix]
    notes = [related.message for finding in findings for related in finding.related]
    assert fixes
    assert notes
    for text in (*(fix.title for fix in fixes), *(fix.reason for fix in fixes if fix.reason), *notes):
        assert text
        assert not text.endswith(".")
        assert "\n" not in text
