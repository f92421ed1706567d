"""Values that a script only sets, for the scripts that source it: a launch in one of them decides whether they are
defects."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from ldlm_lint import rules
from ldlm_lint.model import Claim, Confidence, Finding, Span
from ldlm_lint.rules.settings import Origin
from ldlm_lint.shell.launch_arguments import Argument, Known
from ldlm_lint.shell.launch_code import Code
from ldlm_lint.shell.launch_values import always, trains, workers_finding, workers_limit
from ldlm_lint.shell.script import Form, Launch
from ldlm_lint.untrusted_numbers import whole
from ldlm_lint.vocabulary.batch_sizes import is_accumulation
from ldlm_lint.wording import quoted


def values_for_others(script: Code, found: Collection[Span], options: Mapping[str, object]) -> Iterator[Finding]:
    """Values that a script only sets, for others that source it and pass them to a launch; ``found`` are reported already."""
    limit = workers_limit(options)
    claims = (Claim("holds-in-sourcing-script"),)
    if any(trains(script, one) and not _is_in_function(script, one) for one in script.script.launches):
        return
    for one in script.script.assignments:
        value = one.values[0] if one.values and len(one.values) == 1 else None
        if value is None or one.span in found or one.form not in (Form.PLAIN, Form.DECLARED, Form.DEFAULT):
            continue
        if value.origin is Origin.VARIABLE or not value.text.isdecimal():
            continue
        known = Known(value.text, one.span, value.origin, one, value.span)
        if "workers" in one.name.lower() and whole(value.text) >= limit:
            place = Argument(one.name, value.text, one.span)
            yield workers_finding(script, place, known, limit)._replace(confidence=Confidence.MEDIUM, claims=claims)
        elif is_accumulation(one.name) and whole(value.text) > 1:
            rule = rules.by_symbol["gradient-accumulation-fixed"]
            args = (("name", quoted(one.name)), ("value", always(value.text, value.origin)), ("world", ""))
            yield Finding(rule.symbol, rule.code, one.span, args, Confidence.MEDIUM, claims=claims)


def _is_in_function(script: Code, launch: Launch) -> bool:
    reaching = script.script.variables.reaching
    return reaching is not None and reaching.function(launch.span.start - script.source.bom) is not None
