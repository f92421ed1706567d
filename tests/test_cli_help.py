"""Whoever asks the command for help: screens, examples, completion, and what was probably meant."""

from __future__ import annotations

import argparse
import os
import re
import subprocess
from pathlib import Path

import pytest
from calling import Enter, Run, every_parser
from collected import for_every

from ldlm_lint.commands.completion import SHELLS, described
from ldlm_lint.commands.table import COMMANDS, parser_of
from ldlm_lint.parsing import did_you_mean

BEAT = "export TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC=12000000\ntorchrun train.py\n"


@pytest.fixture
def project(enter: Enter) -> Path:
    return enter({"pyproject.toml": "", "run.sh": BEAT})


def test_help_fits_a_screen(project: Path, run: Run) -> None:
    code, out, err = run("--help")
    assert (code, err) == (0, "")
    assert len(out.splitlines()) <= 24
    assert max(map(len, out.splitlines())) <= 80
    assert all(f"\n  {command.name} " in out for command in COMMANDS)


@for_every("parser", list(every_parser()), ids=lambda parser: parser.prog.removeprefix("ldlm-lint "))
def test_every_command_shows_an_example_that_parses_and_says_what_each_argument_is_for(
    parser: argparse.ArgumentParser,
) -> None:
    assert all(action.help for action in parser._actions if not isinstance(action, argparse._SubParsersAction))
    text = parser.format_help()
    examples = re.findall(r"(?m)^  ldlm-lint ([^#\n]+)", text.partition("example")[2])
    assert examples
    for example in examples:
        words = example.partition(" > ")[0].split()
        names = [command.name for command in COMMANDS]
        words = words if words[0] in names else ["check", *words]
        if words[:1] != ["probe"]:
            assert parser_of(words[:1]).parse_known_args(words)[1] == []


@pytest.mark.parametrize(
    "arguments, words",
    [
        (("chekc",), 'no command, file or directory is called "chekc", did you mean "check"?'),
        (("explian", "W7201"), 'did you mean "explain"?'),
        (("--formt", "json"), 'unrecognized arguments: --formt, did you mean "--format"?'),
        (("check", "--colour"), 'did you mean "--color"?'),
        (("graph", "--isolate"), 'did you mean "--isolated"?'),
        (("probe", "run", "--step", "--", "x"), 'did you mean "--steps"?'),
        (("--format", "jsno"), 'did you mean "json"?'),
        (("--level", "warn"), 'did you mean "warning"?'),
        (("monitor", "--fail-on", "criticl"), 'did you mean "critical"?'),
        (("completion", "zhs"), 'did you mean "zsh"?'),
        (("explain", "optimiser-not-fused"), 'did you mean "optimizer-not-fused"?'),
        (("--ignore", "dataloader-without-prefech"), 'did you mean "dataloader-without-prefetch"?'),
        (("rules", "W7021"), "did you mean"),
    ],
)
def test_typing_errors_are_answered_with_what_exists(
    project: Path, run: Run, arguments: tuple[str, ...], words: str
) -> None:
    code, out, err = run(*arguments)
    assert (code, out) == (2, "")
    assert words in err
    assert err.count("\n") == 1


def test_keys_too(project: Path, run: Run) -> None:
    (project / "pyproject.toml").write_text("[tool.ldlm-lint]\noutput-fromat = 'json'\n")
    assert 'unknown key, did you mean "output-format"?' in run()[2]


def test_what_is_close_to_nothing_is_answered_with_nothing(project: Path, run: Run) -> None:
    assert did_you_mean("--zzz", ["--format", "--fix"]) == ""
    assert "did you mean" not in run("--zzz")[2]
    code, _, err = run("data")
    assert (code, err) == (3, "error: data: no such file or directory\n")


@pytest.mark.parametrize("shell", SHELLS)
def test_completion_is_printed_for_every_shell(project: Path, run: Run, shell: str) -> None:
    code, out, err = run("completion", shell)
    assert (code, err) == (0, "")
    assert "extend-select" in out and "optimizer-not-fused" in out


@pytest.mark.skipif(os.name == "nt", reason="bash")
def test_bash_completes_commands_options_values_and_rules(project: Path, run: Run) -> None:
    script = project.parent / "completion.bash"
    script.write_text(run("completion", "bash")[1])
    (project / "folder").mkdir()
    asked = {
        "ldlm-lint expl": "explain",
        "ldlm-lint check --stat": "--statistics",
        "ldlm-lint check --format conc": "concise",
        "ldlm-lint --format conc": "concise",
        "ldlm-lint explain optimizer-not-f": "optimizer-not-fused",
        "ldlm-lint check --select dataloader-without-pre": "dataloader-without-prefetch",
        "ldlm-lint completion fi": "fish",
        "ldlm-lint check fol": "folder",
        "ldlm-lint check --output ru": "run.sh",
    }
    lines = [f"source {script}"]
    for words in asked:
        lines += [
            f"COMP_WORDS=({words}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); COMPREPLY=()",
            '_shtab_ldlm_lint ldlm-lint "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD-1]}"',
            'echo "${COMPREPLY[*]}"',
        ]
    lines.append("complete -p ldlm-lint")
    done = subprocess.run(["bash", "-c", "\n".join(lines)], capture_output=True, text=True, check=True, cwd=project)
    *answers, registered = done.stdout.splitlines()
    assert dict(zip(asked, answers, strict=True)) == asked
    assert "-o default" in registered
    assert done.stderr == ""


def test_completion_knows_every_option() -> None:
    known = {option for parser in every_parser() for option in parser._option_string_actions}
    waiting, seen = [described()], set()
    while waiting:
        parser = waiting.pop()
        seen |= parser._option_string_actions.keys()
        waiting += [
            sub
            for one in parser._actions
            if isinstance(one, argparse._SubParsersAction)
            for sub in one.choices.values()
        ]
    assert known <= seen
