"""Family 68, the linter itself: reasons why a file was not fully checked."""

from __future__ import annotations

from ldlm_lint.model import Applicability, Confidence, Consequence, Reference, Rule

_DOCS = Reference("ldlm-lint documentation", "https://github.com/ldlm-lint/ldlm-lint/blob/main/docs/rules.md")


def _rule(code: str, symbol: str, message: str, summary: str, rationale: str, cost: str) -> Rule:
    return Rule(
        code=code,
        symbol=symbol,
        consequence=Consequence.CONFIG,
        message=message,
        summary=summary,
        rationale=rationale,
        cost=cost,
        exceptions="None.",
        versions="Independent of torch.",
        verification="Fix the cause and run the linter again.",
        references=(_DOCS,),
        reads=("py", "sh", "cfg"),
        triggers=(b"",),
        status="stable",
    )


INTERNAL_ERROR = _rule(
    "E6801",
    "ldlm-internal-error",
    "ldlm-lint failed in this check (%(error)s), and all other checks ran: please report the error",
    "A rule of ldlm-lint raised an exception.",
    "The rule's findings for this file are missing; every other rule and file is complete.",
    "The run ends with exit code 3, so CI does not pass on an incomplete result.",
)
UNPARSABLE_FILE = _rule(
    "E6802",
    "unparsable-file",
    "cannot be parsed: %(error)s; %(checked)s",
    "A file with a syntax error, or a configuration that contains template placeholders.",
    "In a Python file the code before the error is still checked, the code after it is not. A configuration file is not checked "
    "at all; it is reported only if it contains settings that a rule would check. Templates of a Helm chart and data files (JSON "
    "Lines, tables of thousands of values) are skipped silently. Syntax of a newer Python than the one that runs ldlm-lint is "
    "reported at level info if its form or the project's requirement (`requires-python >= 3.12`) shows that it is not a mistake, "
    "as is a command such as `!deepspeed` in a notebook that Databricks exported.",
    "The program cannot run or load this file, and everything after the error is unchecked.",
)
UNREADABLE_FILE = _rule(
    "E6803",
    "unreadable-file",
    "cannot be read: %(error)s",
    "A file that is not text in its encoding, cannot be opened, or is too large.",
    "Nothing in the file was checked.",
    "The run ends with exit code 3, so CI does not pass on an unread file.",
)

DEAD_CONFIG_KEY = Rule(
    code="I6804",
    symbol="dead-config-key",
    consequence=Consequence.CONFIG,
    message="nothing reads `%(key)s`: the code that loads this file (such as %(program)s) neither contains the name nor "
    "passes a section around it on as a whole, so changing it has no effect; remove the key, or read it",
    summary="A configuration key that no code of the programs that load the file reads.",
    rationale="A setting that nothing reads looks like a decision but has no effect: `use_fused: true` in a file from "
    "which the optimizer takes only the learning rate fuses nothing. It is left over from a rename, was copied from "
    "another project, or the code to read it was never written.",
    cost="Time spent tuning a value, or trusting it, that has no effect.",
    exceptions="A key that a tool outside the project reads, or that code reads under a name built at run time.",
    versions="Independent of torch.",
    verification="Search the project for the name, then change the value and compare two runs.",
    references=(
        _DOCS,
        Reference("OmegaConf, struct flag: unknown keys are accepted in files", "https://github.com/omry/omegaconf/blob/master/docs/source/usage.rst"),
    ),
    reads=("cfg",),
    triggers=(b"batch", b"num_workers", b"learning_rate", b"lr", b"optim", b"epoch", b"steps", b"model", b"train"),
    confidence=Confidence.MEDIUM,
    default=False,
)

UNUSED_SUPPRESSION = Rule(
    code="I6805",
    symbol="unused-suppression",
    consequence=Consequence.CONFIG,
    message="this comment silences %(what)s: %(why)s",
    summary="An `ldlm-lint: ignore` comment that silences no finding, or names a rule that does not exist.",
    rationale="The defect that it silenced was fixed, has moved, or was never there because the name is misspelled. "
    "The comment stays as a false claim about the code, and silently hides the defect if it comes back.",
    cost="A later defect on that line is not reported.",
    exceptions="A comment for another configuration of the linter than that of the project: a name is checked only if "
    "its rule is on, and a comment without names only if all rules are on (`--select ALL`, `--pedantic`).",
    versions="Independent of torch.",
    verification="Remove the comment and run the linter again: it reports the same as before.",
    references=(_DOCS,),
    reads=("py", "sh", "cfg"),
    triggers=(b"",),
    default=False,
    applicability=Applicability.SAFE,
    fix_safety="Safe because only a comment changes: the code, token by token, and the values of a document are "
    "compared with those before. Other words of the comment stay, including the reason after the names.",
)

CONFIGURATION_ERROR = _rule(
    "E6806",
    "ldlm-configuration-error",
    "invalid configuration, so ldlm-lint skips the files under it: %(error)s",
    "Settings of ldlm-lint that cannot be used: an unknown key, a wrong type, a value out of range, a file that is not TOML.",
    "The pylint plugin reports each error once, at its line in the configuration file. The command prints the same errors and ends with "
    "exit code 2.",
    "The files under that configuration are not checked; pylint's own checks continue.",
)

CONFIGURATION_NOT_READ = _rule(
    "W6807",
    "ldlm-configuration-not-read",
    "%(warning)s",
    "A table of settings whose name is nearly that of ldlm-lint, such as `[tool.ldlm_lint]`.",
    "The pylint plugin reports it once, at its line in the configuration file. The command prints the same warning.",
    "The settings in it have no effect.",
)

RULES = (
    *(INTERNAL_ERROR, UNPARSABLE_FILE, UNREADABLE_FILE, DEAD_CONFIG_KEY, UNUSED_SUPPRESSION),
    *(CONFIGURATION_ERROR, CONFIGURATION_NOT_READ),
)
HOST_RULES = (INTERNAL_ERROR, CONFIGURATION_ERROR, CONFIGURATION_NOT_READ)
"""What the host reports of itself and of its settings: no file brings these about."""
