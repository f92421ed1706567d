"""Pages about rules, made from the Rule objects and their example files: for `explain` and `rules`, without a network."""

from __future__ import annotations

import difflib
import json
import textwrap
from collections.abc import Iterable, Iterator, Mapping

from ldlm_lint.examples import Small, example, small
from ldlm_lint.model import Probe, Rule
from ldlm_lint.report.common import rule_url

SCHEMA = "ldlm-lint-rules/1"
WIDTH = 88
_ARTEFACTS = {"py": "Python", "sh": "shell scripts", "cfg": "configuration files"}


def page(rule: Rule) -> str:
    """The full description of a rule, as plain text."""
    parts = [f"{rule.symbol} ({rule.code})", _filled(rule.summary), *_facts(rule)]
    parts += _sections(rule)
    return "\n".join(parts) + "\n"


def document(rules: Iterable[Rule]) -> str:
    """The full description of rules, as JSON (docs/rules.schema.json)."""
    return json.dumps({"schema": SCHEMA, "rules": [_described(rule) for rule in rules]}, indent=2) + "\n"


def _described(rule: Rule) -> dict[str, object]:
    return {
        "name": rule.symbol,
        "code": rule.code,
        "family": rule.family,
        "consequence": rule.consequence.value,
        "frequency": rule.frequency.label,
        "severity": rule.severity.label,
        "confidence": rule.confidence.label,
        "default": rule.default,
        "fix": rule.applicability.label if rule.applicability is not None else None,
        "reads": list(rule.reads),
        "status": rule.status,
        "since": rule.since,
        "old_names": list(rule.old_names),
        "summary": rule.summary,
        "rationale": rule.rationale,
        "cost": rule.cost_text,
        "exceptions": rule.exceptions,
        "versions": rule.versions,
        "fix_safety": rule.fix_safety,
        "verification": rule.verification,
        "example": [_small(one) for one in small(rule.symbol)],
        "options": [{"name": one.name, "default": one.default, "help": one.help} for one in rule.options],
        "references": [{"title": one.title, "url": one.url} for one in rule.references],
        "url": rule_url(rule.symbol),
    }


def _small(file: Small) -> dict[str, object]:
    return {"file": file.name, "bad": file.bad, "fixed": file.fixed, "lines": sorted(file.reported), "applied": file.applied}


def default(rule: Rule) -> str:
    """``on`` or ``opt-in``."""
    return "on" if rule.default else "opt-in"


def fix_level(rule: Rule) -> str:
    """``safe``, ``unsafe``, ``display``, or ``-`` for a rule without a fix."""
    return rule.applicability.label if rule.applicability is not None else "-"


def probe(probe: Probe) -> str:
    """What the runtime probe observes, which run confirms it, and on which device."""
    words = [f"The metric `{probe.metric}` confirms a finding if {probe.confirms}."]
    if probe.watched:
        words.append(f"`{probe.command()}` watches a program for it.")
    if probe.experiment:
        words.append(f"`ldlm-lint probe --only {probe.experiment}` measures the claim of the rule on this machine.")
    if probe.device_bound:
        words.append("Only a run on the training device can confirm or refute it.")
    return " ".join(words)


def _facts(rule: Rule) -> Iterator[str]:
    reads = ", ".join(_ARTEFACTS[one] for one in rule.reads)
    yield ""
    yield f"  consequence {rule.consequence.value}"
    yield f"  severity    {rule.severity.label}"
    yield f"  confidence  {rule.confidence.label}"
    yield f"  default     {default(rule)}"
    yield f"  fix         {fix_level(rule)}"
    yield f"  reads       {reads}"
    yield f"  since       {rule.since} ({rule.status})"
    if rule.successor:
        yield f"  instead     {rule.successor}"
    if rule.old_names:
        yield f"  old names   {', '.join(rule.old_names)}"


def _sections(rule: Rule) -> Iterator[str]:
    yield from _paragraphs(("Why", rule.rationale), ("What it costs", rule.cost_text))
    yield from _examples(rule)
    yield from _paragraphs(
        ("When not to follow it", rule.exceptions),
        ("Versions", rule.versions),
        ("Fix safety", rule.fix_safety),
        ("How to verify", rule.verification),
        ("Probe", probe(rule.probe) if rule.probe else ""),
    )
    if rule.options:
        yield "\nOptions in [tool.ldlm-lint]"
        yield from (_filled(f"{one.name} = {one.default}  {one.help}", "  ") for one in rule.options)
    yield f"\nTo silence it on a line\n  # ldlm-lint: ignore[{rule.symbol}] reason"
    yield "\nReferences"
    yield from (f"  {one.title}: {one.url}" for one in rule.references)
    yield f"  This page: {rule_url(rule.symbol)}"


def _paragraphs(*texts: tuple[str, str]) -> Iterator[str]:
    yield from (f"\n{title}\n{_filled(text, '  ')}" for title, text in texts if text)


def _examples(rule: Rule) -> Iterator[str]:
    bad, good, fixed = (example(rule.symbol, kind) for kind in ("bad", "good", "bad.fixed"))
    for title, files in (("Bad", bad), ("Good", good)):
        if files:
            yield f"\n{title}"
        yield from (f"  {name}:\n{_indented(text)}" for name, text in files.items() if text)
    if fixed:
        yield f"\nWhat {fixing(rule)} does to the bad example"
        yield from (_indented(_change(name, bad, fixed)) for name in bad if bad[name] != fixed[name])


def fixing(rule: Rule) -> str:
    """The flags with which a run applies the fix of a rule; a trade is applied where the rule is selected by name."""
    return "--fix --unsafe-fixes" + (f" --select {rule.code}" if rule.trade else "")


def _change(name: str, before: Mapping[str, str], after: Mapping[str, str]) -> str:
    old, new = before[name].splitlines(keepends=True), after[name].splitlines(keepends=True)
    return "".join(difflib.unified_diff(old, new, name, name, n=2))


def _indented(text: str) -> str:
    return textwrap.indent(text, "    ").rstrip("\n")


def _filled(text: str, indent: str = "") -> str:
    """A paragraph at most `WIDTH` wide; words such as URLs stay whole."""
    return textwrap.fill(
        text,
        WIDTH,
        initial_indent=indent,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )
