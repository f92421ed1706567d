"""Values that a script passes to another script, that launches a training with them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from ldlm_lint.model import Claim, Finding
from ldlm_lint.patterns import lazily
from ldlm_lint.shell import launch_grammar
from ldlm_lint.shell.launch_arguments import arguments, values
from ldlm_lint.shell.launch_code import Code
from ldlm_lint.shell.launch_commands import words_of
from ldlm_lint.shell.launch_values import is_workers, workers_finding, workers_limit
from ldlm_lint.shell.script import Launch
from ldlm_lint.untrusted_numbers import whole

_CALLS = lazily(rb"\.(?:sh|bash|slurm|sbatch)\b")
_WORKERS = lazily(rb"workers", re.I)


def too_many_workers(code: Code, options: Mapping[str, object]) -> Iterator[Finding]:
    """Loader workers at the limit or above it that are passed on; the project decides whether a training gets them."""
    limit = workers_limit(options)
    for node in code.nodes["command"]:
        place = code.text.data, node.start_byte, node.end_byte
        if not (_CALLS.search(*place) and _WORKERS.search(*place)):
            continue
        call = launch_grammar.call_of(words_of(code.text, node))
        if call is None:
            continue
        launch = Launch("", code.text.span(node.start_byte, node.end_byte), call.arguments)
        for argument in arguments(code, launch):
            for known in values(code, argument) or () if is_workers(argument.name) else ():
                if known.text.isdecimal() and whole(known.text) >= limit:
                    finding = workers_finding(code, argument, known, limit)
                    name = argument.name.lstrip("-+~").replace("-", "_")
                    yield finding._replace(claims=(*finding.claims, Claim("script-passes-to-training", name)))
