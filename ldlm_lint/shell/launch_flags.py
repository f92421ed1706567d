"""The values of a launch for options of its program's own parser: the project decides whether they matter where they
are used."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ldlm_lint import rules
from ldlm_lint.model import Applicability, Claim, Confidence, Edit, Finding, Fix, Rule, Span
from ldlm_lint.rules.settings import Origin
from ldlm_lint.shell.launch_arguments import Argument, arguments, values, written_words
from ldlm_lint.shell.launch_code import Code
from ldlm_lint.shell.launch_entries import entry_of, invocation_of
from ldlm_lint.shell.launch_grammar import Form
from ldlm_lint.shell.launch_values import trains
from ldlm_lint.shell.script import Launch
from ldlm_lint.wording import quoted

_REASON = "another number of workers takes other memory and draws other random numbers, and fewer can be too few"


def own_options(code: Code, script: Code, options: Mapping[str, object]) -> Iterator[Finding]:
    """Options that leave loaders without workers, and switches for unused parameters, in launches of the project's files."""
    reported: set[Span] = set()
    for launch in code.script.launches:
        invocation = invocation_of(launch)
        if invocation is None or invocation.form not in (Form.FILE, Form.MODULE) or not entry_of(launch) or not trains(script, launch):
            continue
        for finding in (*_without_workers(script, launch, options), *_unused_parameters(script, launch)):
            if finding.span not in reported:
                reported.add(finding.span)
                yield finding


def _without_workers(script: Code, launch: Launch, options: Mapping[str, object]) -> Iterator[Finding]:
    given = {_destination(one.name): one for one in arguments(script, launch) if one.name.startswith("--")}
    for name, argument in given.items():
        if "worker" in name and _is_zero(script, argument):
            args = (("option", argument.name), ("why", f" ({quoted(argument.name)} is 0 here)"))
            yield _finding(rules.by_symbol["dataloader-in-main-process"], argument.span, args, f"no-workers|{name}", _workers_fix(argument, options))


def _is_zero(script: Code, argument: Argument) -> bool:
    known = values(script, argument) or ()
    return bool(known) and all(one.text == "0" and one.origin is not Origin.DEFAULT for one in known)


def _workers_fix(argument: Argument, options: Mapping[str, object]) -> Fix | None:
    option = rules.OPTIONS["num-workers"]
    count = options.get(option.name, option.default)
    if argument.value_span is None or argument.value != "0" or not isinstance(count, int):
        return None
    return Fix(f"use {count} workers", (Edit(argument.value_span, str(count)),), Applicability.UNSAFE, _REASON)


def _unused_parameters(script: Code, launch: Launch) -> Iterator[Finding]:
    """A switch such as ``--find-unused``, which only another option follows."""
    written = written_words(script, launch)
    for word, following in zip(written, (*written[1:], None), strict=True):
        alone = following is None or following.text.startswith("-")
        if word.text.startswith("--") and "unused" in word.text and "=" not in word.text and alone:
            yield _finding(rules.by_symbol["ddp-find-unused-parameters"], word.span, (), f"unused-parameters|{_destination(word.text)}")


def _destination(option: str) -> str:
    """The attribute in which argparse stores an option."""
    return option.lstrip("-").replace("-", "_")


def _finding(rule: Rule, span: Span, args: tuple[tuple[str, object], ...], subject: str, fix: Fix | None = None) -> Finding:
    return Finding(rule.symbol, rule.code, span, args, Confidence.MEDIUM, fix=fix, claims=(Claim("launched-value-reaches-call", subject),))


__all__ = ["own_options"]
