"""Options of other linters that users write by habit, and what to write here; loaded for an unknown option."""

from __future__ import annotations

from collections.abc import Collection

_RENAMED = {
    "-f": "--format",
    "--msg-template": "--format",
    "-d": "--ignore",
    "--disable": "--ignore",
    "--extend-ignore": "--ignore",
    "--enable": "--extend-select",
    "-n": "--no-cache",
    "--rcfile": "--config",
    "--settings": "--config",
    "--add-noqa": "--add-ignores",
    "--errors-only": "--level error",
    "-E": "--level error",
    "--fail-on": "--fail-level",
    "--reports": "--statistics",
    "-r": "--statistics",
    "-s": "--quiet",
    "--silent": "--quiet",
    "-i": "--interactive",
    "--no-color": "--color never",
    "--colour": "--color",
    "--number": "--jobs",
    "--from-stdin": "--stdin-filename PATH",
    "--show-config": "--show-settings",
}
_COMMANDS = {
    "--explain": "explain NAME",
    "--rule": "explain NAME",
    "--help-msg": "explain NAME",
    "--list-msgs": "rules",
    "--list-rules": "rules",
    "--init": "init",
    "--generate-toml-config": "init",
    "--generate-rcfile": "init",
    "--doctor": "doctor",
    "--undo": "undo",
    "--clean": "clean",
    "--update-baseline": "baseline --update",
}
_TOLD = {
    "-v": "all findings and skipped paths are always printed; `ldlm-lint doctor` prints the settings of a run",
    "--verbose": "all findings and skipped paths are always printed; `ldlm-lint doctor` prints the settings of a run",
    "--recursive": "directories are always searched",
    "--force-exclude": "an excluded path is always excluded, even if you name it",
    "--preview": "use `--pedantic` for opt-in rules",
    "--show-source": "the formats text and full show source lines",
    "--target-version": "set the torch version of the project with `target-torch` in the configuration",
    "--per-file-ignores": "set `per-file-ignores` in the configuration (`ldlm-lint init` writes one)",
}


def instead(option: str, known: Collection[str]) -> str:
    """What to write instead of an unknown option, as the end of an error message; empty if unknown.

    ``known`` are the options of the command, only those are suggested.

    >>> instead("--disable", ["--ignore"])
    ', did you mean "--ignore"?'
    """
    if option in _COMMANDS:
        return f': use the command "ldlm-lint {_COMMANDS[option]}"'
    if option in _TOLD:
        return f": {_TOLD[option]}"
    new = _RENAMED.get(option)
    return f', did you mean "{new}"?' if new is not None and new.split()[0] in known else ""
