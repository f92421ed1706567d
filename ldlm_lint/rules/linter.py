"""Family 68, the linter itself: what kept a file from being checked in full."""

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
        verification="Run the linter again after mending the cause.",
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
    "The run ends with exit code 3, so that a gate does not pass on half an answer.",
)
UNPARSABLE_FILE = _rule(
    "E6802",
    "unparsable-file",
    "cannot be parsed: %(error)s; %(checked)s",
    "A file with a syntax error, or a configuration that contains template placeholders.",
    "Of a Python file, what stands before the error is still checked, what stands after it is not. Of a configuration file "
    "nothing is; it is named only where it holds settings that a rule would look at. The templates of a Helm chart and "
    "files of data (JSON Lines, tables of thousands of values) are passed over without a word. Syntax of a newer Python than the one "
    "that runs ldlm-lint is reported at level info, where its form or the project's requirement (`requires-python >= 3.12`) shows that it is no mistake.",
    "The program would not run or load this file, and what follows the error is unchecked.",
)
UNREADABLE_FILE = _rule(
    "E6803",
    "unreadable-file",
    "cannot be read: %(error)s",
    "A file that is not text in its encoding, cannot be opened, or is too large.",
    "Nothing of the file was checked.",
    "The run ends with exit code 3, so that a gate does not pass on an unread file.",
)

DEAD_CONFIG_KEY = Rule(
    code="I6804",
    symbol="dead-config-key",
    consequence=Consequence.CONFIG,
    message="nothing reads `%(key)s`: the code that loads this file (such as %(program)s) neither contains the name nor "
    "passes a section around it on as a whole, so changing it has no effect; remove the key, or read it",
    summary="A configuration key that no code of the programs that load the file reads.",
    rationale="A setting that nothing reads looks like a decision and is none: `use_fused: true` in a file from which the optimizer takes "
    "only the learning rate fuses nothing. It is left over from a rename, was copied from another project, or its reader was never written.",
    cost="Whoever tunes it, or trusts it, waits for an effect that cannot come.",
    exceptions="A key that a tool outside of the project reads, or that code reads under a name it puts together.",
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
    rationale="What it silenced has been mended, has moved, or was never there because the name is misspelt. It stays behind as a claim about "
    "the code that is not true, and silences the defect unseen when somebody brings it back.",
    cost="A later defect on that line is not reported.",
    exceptions="A comment that speaks to another configuration of the linter than the one of the project: a name is judged only "
    "where its rule is on, a comment without names only where all rules are (`--select ALL`, `--pedantic`).",
    versions="Independent of torch.",
    verification="Remove the comment and run the linter again: it says the same as before.",
    references=(_DOCS,),
    reads=("py", "sh", "cfg"),
    triggers=(b"",),
    default=False,
    applicability=Applicability.SAFE,
    fix_safety="Safe because only a comment changes: the code, token by token, and the values of a document are compared with those before. Other words "
    "of the comment stay, the reason that stood behind the names among them.",
)

CONFIGURATION_ERROR = _rule(
    "E6806",
    "ldlm-configuration-error",
    "invalid configuration, so ldlm-lint skips the files under it: %(error)s",
    "Settings of ldlm-lint that cannot be used: an unknown key, a wrong type, a value out of range, a file that is not TOML.",
    "The pylint plugin reports each error once, at its line in the configuration file. The command prints the same errors and ends with "
    "exit code 2.",
    "The files that the configuration holds for are not checked; pylint's own checks go on.",
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
