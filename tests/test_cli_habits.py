"""Habits of a command line: help, completion, colours, files, questions, what was probably meant, exit codes, pages about it."""

from __future__ import annotations

import argparse
import io
import json
import os
import re
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import yaml
from jsonschema import Draft7Validator, Draft202012Validator

from ldlm_lint.autofix import disk
from ldlm_lint.cli import COMMANDS, main, parser_of
from ldlm_lint.commands import progress
from ldlm_lint.commands.completion import SHELLS, described
from ldlm_lint.config import Config
from ldlm_lint.parsing import did_you_mean
from ldlm_lint.report.console import console_of, wants_colour
from ldlm_lint.report.formats import FORMATS
from ldlm_lint.rules import ALL
from ldlm_lint.select import selected_by_layers
from ldlm_lint.settings import SETTINGS, config_schema

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
BEAT = "export TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC=12000000\ntorchrun train.py\n"
Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    root = tmp_path / "project"
    root.mkdir()
    (root / "pyproject.toml").write_text("")
    (root / "run.sh").write_text(BEAT)
    monkeypatch.chdir(root)
    for variable in ("NO_COLOR", "FORCE_COLOR", "GITHUB_WORKSPACE", "CI_PROJECT_DIR"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("COLUMNS", "80")
    return root


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    def call(*arguments: str) -> tuple[int, str, str]:
        code = main(arguments)
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return call


def schema(name: str) -> dict[str, object]:
    return json.loads((DOCS / f"{name}.schema.json").read_text(encoding="utf-8"))


def every_parser() -> Iterator[argparse.ArgumentParser]:
    """The parsers of all commands and of their forms."""
    waiting = [parser_of([command.name for command in COMMANDS])]
    while waiting:
        parser = waiting.pop()
        for action in parser._actions:
            if isinstance(action, argparse._SubParsersAction):
                waiting += action.choices.values()
        if parser.prog != "ldlm-lint":
            yield parser


# Help


def test_help_fits_a_screen(project: Path, run: Run) -> None:
    code, out, err = run("--help")
    assert (code, err) == (0, "")
    assert len(out.splitlines()) <= 24
    assert max(map(len, out.splitlines())) <= 80
    assert all(f"\n  {command.name} " in out for command in COMMANDS)


@pytest.mark.parametrize("parser", list(every_parser()), ids=lambda parser: parser.prog.removeprefix("ldlm-lint "))
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


def test_the_page_of_the_command_line_names_every_argument() -> None:
    page = (DOCS / "cli.md").read_text(encoding="utf-8")
    for parser in every_parser():
        section = page.partition(f"\n## {parser.prog}\n")[2].partition("\n## ")[0]
        assert section, parser.prog
        for action in parser._actions:
            assert all(option in section for option in action.option_strings if option not in ("-h", "--help"))


def test_pages_and_schema_are_up_to_date() -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "scripts" / "gen_cli_docs.py"), "--check"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")


# What was probably meant


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


# Files


def test_a_report_in_a_file_is_what_stdout_would_get(project: Path, run: Run) -> None:
    for form in FORMATS:
        code, out, err = run("--format", form, "--output", "report")
        assert (code, out) == (1, ""), form
        assert err == "Found 1 finding (1 warning). Written to report.\n"
        assert (project / "report").read_text(encoding="utf-8") == run("--format", form)[1]
    assert run("--quiet", "--output", "report")[1:] == ("", "")
    assert run("--output", "-", "--format", "concise") == run("--format", "concise")


def test_problems_of_a_report_in_a_file_are_seen_in_the_log(project: Path, run: Run) -> None:
    code, _, err = run("--format", "json", "--output", "report.json", ".", "gone")
    assert code == 3
    assert "error: gone: no such file or directory\n" in err


@pytest.mark.parametrize("place, words", [("none/report", "there is no directory none"), (".", "is a directory")])
def test_a_place_that_cannot_be_written_is_noticed_first(project: Path, run: Run, place: str, words: str) -> None:
    code, out, err = run("--output", place)
    assert (code, out) == (2, "")
    assert err == f"ldlm-lint: error: --output {place}: {words}\n"


def test_a_full_disk_leaves_the_old_report(project: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    (project / "report").write_text("old")

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(disk, "create", full)
    code, out, err = run("--output", "report")
    assert (code, out) == (3, "")
    assert err == "ldlm-lint: error: --output report: No space left on device\n"
    assert (project / "report").read_text() == "old"
    assert sorted(path.name for path in project.iterdir()) == ["pyproject.toml", "report", "run.sh"]


@pytest.mark.skipif(os.name == "nt", reason="named pipes of POSIX")
def test_a_report_for_a_pipe_goes_into_the_pipe(project: Path) -> None:
    command = f"{sys.executable} -m ldlm_lint --quiet --format concise --output >(cat) run.sh; wait"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False, cwd=project)
    assert done.stdout.startswith("run.sh:1:8: W7201 ")
    assert done.stderr == ""


@pytest.mark.skipif(os.name == "nt", reason="links and modes of POSIX")
def test_a_report_keeps_link_and_mode(project: Path, run: Run) -> None:
    real = project.parent / "real"
    real.write_text("old")
    real.chmod(0o640)
    (project / "report").symlink_to(real)
    run("--output", "report", "--format", "concise")
    assert (project / "report").is_symlink()
    assert real.read_text().startswith("run.sh:1:8: W7201 ")
    assert stat.S_IMODE(real.stat().st_mode) == 0o640


def test_a_patch_goes_into_a_file_too(project: Path, run: Run) -> None:
    patch = run("--diff", "--unsafe-fixes")[1]
    assert patch.startswith("diff --git a/run.sh b/run.sh\n")
    assert run("--diff", "--unsafe-fixes", "--output", "fixes.patch")[:2] == (1, "")
    assert (project / "fixes.patch").read_text() == patch


# Colours


@pytest.mark.parametrize(
    "choice, environ, terminal, expected",
    [
        ("auto", {}, True, True),
        ("auto", {}, False, False),
        ("auto", {"NO_COLOR": "1"}, True, False),
        ("auto", {"NO_COLOR": ""}, True, True),
        ("auto", {"FORCE_COLOR": "1"}, False, True),
        ("auto", {"FORCE_COLOR": "1", "NO_COLOR": "1"}, True, False),
        ("auto", {"TERM": "dumb"}, True, False),
        ("always", {"NO_COLOR": "1", "TERM": "dumb"}, False, True),
        ("never", {"FORCE_COLOR": "1"}, True, False),
    ],
)
def test_who_decides_about_colours(choice: str, environ: dict[str, str], terminal: bool, expected: bool) -> None:
    class Stream:
        def isatty(self) -> bool:
            return terminal

    assert wants_colour(Stream(), choice, environ) is expected


def test_colours_of_the_report(project: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "\x1b" not in run()[1]
    assert "\x1b[1;33mW7201\x1b[0m" in run("--color", "always")[1]
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert "\x1b" in run()[1]
    assert "\x1b" not in run("--color", "never")[1]
    assert "\x1b" not in run("--format", "concise")[1]
    assert console_of(sys.stdout).color_system == "standard"
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b" not in run()[1]


# Questions


def test_show_files_says_what_is_checked_and_as_what(project: Path, run: Run) -> None:
    (project / "train.py").write_text("import torch\n")
    (project / "notes.txt").write_text("")
    code, out, err = run("--show-files")
    assert (code, err) == (0, "")
    assert [line.split() for line in out.splitlines()] == [
        ["run.sh", "shell", "script"],
        ["train.py", "Python"],
        ["2", "files", "(1", "shell", "script,", "1", "Python)."],
    ]
    document = json.loads(run("--show-files", "--format", "json")[1])
    Draft202012Validator(schema("questions")).validate(document)
    assert document["schema"] == "ldlm-lint-files/1"
    assert {"path": "train.py", "kind": "py"} in document["files"]
    assert run("--show-files", "gone")[0] == 3
    assert run("--show-files", "--format", "sarif")[0] == 2
    (project / "pyproject.toml").write_text('[tool.ldlm-lint]\nexclude = ["run.sh"]\n')
    assert "run.sh" not in run("--show-files")[1]


def test_show_settings_says_where_each_value_comes_from(project: Path, run: Run) -> None:
    (project / "pyproject.toml").write_text(
        '[tool.ldlm-lint]\nselect = ["72"]\nheartbeat-limit = 60\nlevel = "warning"\n'
    )
    (project / "requirements.txt").write_text("torch==2.4.1\n")
    code, out, err = run("--show-settings", "--ignore", "W7201", "--level", "error")
    assert (code, err) == (0, "")
    for key, value, origin in (
        ("select", '["72"]', "pyproject.toml:2"),
        ("heartbeat-limit", "60", "pyproject.toml:3"),
        ("ignore", '["W7201"]', "command line"),
        ("level", '"error"', "command line"),
        ("fail-level", '"refactor"', "default"),
        ("target-torch", '"2.4"', "what the project's requirements allow"),
    ):
        assert re.search(rf"(?m)^{key} = {re.escape(value)} +# {re.escape(origin)}$", out), key
    assert "\nexcessive-heartbeat-timeout\n" not in out
    document = json.loads(run("--show-settings", "--format", "json")[1])
    Draft202012Validator(schema("questions")).validate(document)
    assert {"key": "heartbeat-limit", "value": 60, "origin": "pyproject.toml:3"} in document["settings"]
    assert "excessive-heartbeat-timeout" in document["rules"]
    assert {one["key"] for one in document["settings"]} == config_schema(ALL)["properties"].keys()


def test_rules_for_programs(project: Path, run: Run) -> None:
    document = json.loads(run("rules", "--format", "json")[1])
    Draft202012Validator(schema("rules")).validate(document)
    assert [one["name"] for one in document["rules"]] == [rule.symbol for rule in ALL]
    (only,) = json.loads(run("explain", "W7201", "--format", "json")[1])["rules"]
    assert only in document["rules"]
    assert json.loads(run("rules", "72", "--format", "json")[1])["rules"][0]["family"] == "72"
    assert '"72" is a family' in run("explain", "72")[2]


# Personas


def test_pedantic_applies_what_is_opt_in_and_nothing_else_changes(project: Path, run: Run) -> None:
    quiet, everything = selected_by_layers(ALL, ()), selected_by_layers(ALL, (), opt_in=True)
    assert everything == {rule.symbol for rule in ALL}
    assert everything - quiet == {rule.symbol for rule in ALL if not rule.default}
    settings = json.loads(run("--pedantic", "--show-settings", "--format", "json", "--ignore", "W7201")[1])
    assert set(settings["rules"]) == everything - {"excessive-heartbeat-timeout"}
    (project / "pyproject.toml").write_text('[tool.ldlm-lint]\npedantic = true\nignore = ["dead-config-key"]\n')
    settings = json.loads(run("--show-settings", "--format", "json")[1])
    assert set(settings["rules"]) == everything - {"dead-config-key"}
    settings = json.loads(run("--pedantic", "--select", "73", "--show-settings", "--format", "json")[1])
    assert set(settings["rules"]) >= {rule.symbol for rule in ALL if rule.family == "73"}


# Completion


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


# Exit codes


@pytest.mark.parametrize(
    "arguments, expected",
    [
        (("check", "clean.sh"), 0),
        (("check", "run.sh"), 1),
        (("check", "--exit-zero", "run.sh"), 0),
        (("check", "--fail-level", "error", "run.sh"), 0),
        (("check", "--since", "no-such-revision"), 2),
        (("check", "--baseline", "no-such-file"), 2),
        (("check", "gone.sh"), 3),
        (("check", "--exit-zero", "run.sh", "gone.sh"), 3),
        (("check", "--diff", "clean.sh"), 0),
        (("check", "--diff", "--unsafe-fixes", "run.sh"), 1),
        (("check", "--show-files", "run.sh"), 0),
        (("check", "--show-files", "gone.sh"), 3),
        (("check", "--show-settings"), 0),
        (("check", "--show-settings", "--show-files"), 2),
        (("baseline",), 0),
        (("baseline", "--update"), 0),
        (("baseline", "--baseline", "run.sh"), 2),
        (("baseline", "gone.sh"), 3),
        (("undo",), 1),
        (("undo", "--list"), 0),
        (("undo", "--list", "--partial"), 2),
        (("undo", "gone"), 3),
        (("graph",), 0),
        (("graph", "--format", "xml"), 2),
        (("graph", "gone.sh"), 3),
        (("monitor", "good.log"), 0),
        (("monitor", "bad.log"), 1),
        (("monitor",), 2),
        (("monitor", "gone.log"), 3),
        (("bench",), 2),
        (("probe", "run"), 2),
        (("probe", "judge", "gone"), 2),
        (("probe", "memory"), 2),
        (("probe", "machine", "--only", "nothing"), 2),
        (("rules",), 0),
        (("rules", "nothing"), 2),
        (("explain", "W7201"), 0),
        (("explain", "nothing"), 2),
        (("completion", "bash"), 0),
        (("completion", "tcl"), 2),
    ],
    ids=str,
)
def test_exit_codes(project: Path, run: Run, arguments: tuple[str, ...], expected: int) -> None:
    (project / "clean.sh").write_text("echo training\n")
    steps = "".join(f'{{"step": {step}, "loss": {2 - step / 100}}}\n' for step in range(1, 60))
    (project / "good.log").write_text(steps)
    (project / "bad.log").write_text(steps + '{"step": 60, "loss": NaN}\n')
    assert run(*arguments)[0] == expected


def test_the_page_of_exit_codes_has_every_command() -> None:
    page = (DOCS / "exit-codes.md").read_text(encoding="utf-8")
    rows = {name for row in re.findall(r"(?m)^\| (`[^|]*) \|", page) for name in re.findall(r"`([^`]+)`", row)}
    known = {parser.prog.removeprefix("ldlm-lint ") for parser in every_parser()}
    assert known - {"probe"} <= rows


# The configuration's schema


def test_the_schema_accepts_what_the_configuration_does(tmp_path: Path) -> None:
    validator = Draft7Validator(json.loads((DOCS / "config.schema.json").read_text(encoding="utf-8")))
    good = {
        "select": ["72", "W73", "optimizer-not-fused", "ALL"],
        "per-file-ignores": {"experiments/": ["W7601"]},
        "pedantic": True,
        "target-torch": "2.4",
        "output-format": "concise",
        "heartbeat-limit": 60,
        "fail-level": "warning",
    }
    assert list(validator.iter_errors(good)) == []
    loaded(tmp_path, good)
    wrong = (
        {"selct": ["72"]},
        {"select": ["no-such-rule"]},
        {"select": "72"},
        {"pedantic": "yes"},
        {"level": "note"},
        {"target-torch": "1.9"},
        {"output-format": "xml"},
        {"heartbeat-limit": "60"},
        {"per-file-ignores": {"!a": ["72"]}},
        {"per-file-ignores": {"a": ["no-such-rule"]}},
    )
    from ldlm_lint.tomlfile import ConfigError

    for one in wrong:
        assert list(validator.iter_errors(one)), one
        with pytest.raises(ConfigError):
            loaded(tmp_path, one)


def loaded(folder: Path, table: dict[str, object]) -> Config:
    lines = [f"{key} = {toml(value)}" for key, value in table.items()]
    (folder / "pyproject.toml").write_text("\n".join(["[tool.ldlm-lint]", *lines, ""]))
    return Config.load(folder)


def toml(value: object) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(key)} = {toml(one)}" for key, one in value.items()) + "}"
    return json.dumps(value)


def test_the_configurations_that_we_show_and_use_are_valid() -> None:
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib

    validator = Draft7Validator(config_schema(ALL))
    Draft7Validator.check_schema(config_schema(ALL))
    tables = [
        tomllib.loads((ROOT / name).read_text())
        for name in ("pyproject.toml", "examples/latent-captions/pyproject.toml")
    ]
    for page in (DOCS / "configuration.md", ROOT / "README.md"):
        tables += [
            tomllib.loads(text)
            for text in re.findall(r"(?ms)^```toml\n(.*?)^```$", page.read_text(encoding="utf-8"))
            # That of an editor is none of ours.
            if not text.startswith("[language-server.")
        ]
    assert len(tables) >= 4
    for table in tables:
        validator.validate(table["tool"]["ldlm-lint"])


def test_every_key_of_the_schema_is_a_setting_and_the_other_way_round() -> None:
    options = {option.name for rule in ALL for option in rule.options}
    assert config_schema(ALL)["properties"].keys() == {one.name for one in SETTINGS} | options


@pytest.mark.parametrize("path", sorted(DOCS.glob("*.schema.json")), ids=lambda path: path.name)
def test_published_schemas_are_schemas_with_an_address_of_their_own(path: Path) -> None:
    published = json.loads(path.read_text(encoding="utf-8"))
    (Draft7Validator if "draft-07" in published["$schema"] else Draft202012Validator).check_schema(published)
    assert published["$id"].endswith(f"/docs/{path.name}")
    assert published["title"]


# Pages


def test_the_page_of_formats_shows_what_is_printed(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    for variable in ("GITHUB_WORKSPACE", "CI_PROJECT_DIR", "FORCE_COLOR"):
        monkeypatch.delenv(variable, raising=False)
    page = (DOCS / "formats.md").read_text(encoding="utf-8")
    shown = re.findall(r"(?ms)^```console\n\$ ldlm-lint ([^\n]*)\n(.*?)^```$", page)
    assert {name for name in FORMATS if any(f"--format {name} " in command for command, _ in shown)} == FORMATS.keys()
    for command, output in shown:
        printed = run(*command.split())[1]
        rest = printed
        for piece in output.strip().split("\n...\n"):
            assert piece in rest, command
            rest = rest.partition(piece)[2]
        if "\n...\n" not in output:
            assert printed.strip() == output.strip()
    for block in re.findall(r"(?ms)^```yaml\n(.*?)^```$", page):
        assert yaml.safe_load(block)


# Start-up


def test_formats_for_programs_import_nothing_that_draws(project: Path) -> None:
    program = (
        "import sys\nfrom ldlm_lint.cli import main\n"
        "for name in ('concise', 'json', 'github', 'gitlab', 'sarif', 'junit', 'markdown'):\n"
        "    main(['--format', name, '--output', 'report'])\n"
        "for name in ('rich', 'torch', 'pygls', 'shtab', 'yaml'):\n    print(name, name in sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=project)
    assert done.stdout.split() == [
        "rich",
        "False",
        "torch",
        "False",
        "pygls",
        "False",
        "shtab",
        "False",
        "yaml",
        "False",
    ]


# Progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_bar_is_drawn_for_whoever_waits_at_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(progress, "DELAY", 0.0)
    terminal = Terminal()
    with progress.bar(quiet=False, stream=terminal) as tell:
        tell(1, 4)
        time.sleep(0.11)
        tell(2, 4)
    drawn = terminal.getvalue()
    assert "checking" in drawn and "2/4" in drawn
    # The cursor is shown again, and the line is empty.
    assert drawn.rstrip("\r\n").endswith(("\x1b[2K", "\x1b[?25h", "\x1b[1A\x1b[2K"))


def test_a_short_run_a_pipe_and_a_dumb_terminal_have_no_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    terminal = Terminal()
    with progress.bar(quiet=False, stream=terminal) as tell:
        tell(1, 1)
    assert terminal.getvalue() == ""
    monkeypatch.setattr(progress, "DELAY", 0.0)
    with progress.bar(quiet=True, stream=terminal) as tell:
        assert tell is None
    with progress.bar(quiet=False, stream=io.StringIO()) as tell:
        assert tell is None
    monkeypatch.setenv("TERM", "dumb")
    with progress.bar(quiet=False, stream=terminal) as tell:
        assert tell is None
