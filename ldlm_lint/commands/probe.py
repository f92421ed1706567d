"""``ldlm-lint probe``: selects one of its forms and their parsers; the forms are in ``probe_*.py``.

``probe [OPTIONS]`` experiments on this machine, ``probe run -- CMD...`` watches a program, ``probe train.py -- ARGS``
is short for ``probe run -- python train.py ARGS``, ``probe memory pkg.mod:build`` measures under fake tensors, ``probe
judge DIR`` judges a folder of evidence.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from ldlm_lint.commands import probe_judge, probe_machine, probe_memory, probe_run
from ldlm_lint.commands.output import PROGRAM
from ldlm_lint.parsing import with_examples

FORMS = ("machine", "run", "memory", "judge")


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the forms of ``probe`` as commands of their own."""
    forms = parser.add_subparsers(title="forms", metavar="FORM", required=True, parser_class=type(parser))
    rooms = (
        ("machine", probe_machine, "run experiments on this machine and torch build (the default)", "--budget 60"),
        ("run", probe_run, "watch the first optimizer steps of a program", "--steps 50 -- torchrun train.py"),
        ("memory", probe_memory, "compute the peak memory of a model with fake tensors", "models.gpt:build --fits 80GB"),
        ("judge", probe_judge, "print the verdicts of a folder of evidence", ".ldlm-lint/evidence/RUN"),
    )
    for name, room, text, example in rooms:
        form = forms.add_parser(name, help=text, description=text, allow_abbrev=False)
        room.configure(form)
        form.epilog = with_examples(((f"probe {name} {example}", ""),), form.epilog, PROGRAM)
        form.set_defaults(run_form=room.run)


def run(arguments: argparse.Namespace) -> int:
    """Run the form that was named and return its exit code."""
    return arguments.run_form(arguments)


def spelt_out(arguments: Sequence[str]) -> list[str]:
    """The arguments after ``probe`` with the form written out: no form means ``machine``, a script means ``run``.

    >>> spelt_out(["--only", "fused"])
    ['machine', '--only', 'fused']
    >>> spelt_out(["--steps", "9", "train.py", "--", "--lr", "1"])
    ['run', '--steps', '9', '--', 'python', 'train.py', '--lr', '1']
    """
    words = list(arguments)
    if words and (words[0] in FORMS or words[0] in ("-h", "--help")):
        return words
    ours = words[: words.index("--")] if "--" in words else words
    script = next((index for index, word in enumerate(ours) if word.endswith(".py")), None)
    if script is None:
        return ["machine", *words]
    theirs = words[script + 1 :]
    if theirs[:1] == ["--"]:
        theirs = theirs[1:]
    return ["run", *ours[:script], "--", "python", ours[script], *theirs]
