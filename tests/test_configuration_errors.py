"""What is wrong with a configuration, and how it is told."""

from __future__ import annotations

from pathlib import Path

import pytest
from calling import Enter, Run
from collected import for_every
from configured import LINKS, errors, write
from jsonschema import Draft7Validator

from ldlm_lint.config import Config
from ldlm_lint.config_reader import MOST_ERRORS
from ldlm_lint.configurations import Configurations
from ldlm_lint.rules import ALL
from ldlm_lint.settings import config_schema
from ldlm_lint.tomlfile import ConfigError


def test_all_errors_of_a_configuration_are_told_at_once(tmp_path: Path) -> None:
    text = """\
workers-limits = 8
workers-limit = -3
select = ["72", "W9999", "optimizer-not-fusd"]
exclude = ["ok/", "!"]
level = "note"
output-format = "xml"
target-torch = 2.4
baseline = "../known.json"
pedantic = "yes"

[per-file-ignores]
"!a" = []
"b/" = "W72"
"c.py" = ["nix"]
"""
    found = errors(tmp_path, "ldlm-lint.toml", text)
    assert [line.partition(": ")[0] for line in found] == [*"12334567", "8", "9", "12", "13", "14"]
    for line, words in zip(
        found,
        (
            'workers-limits: unknown key, did you mean "workers-limit"?',
            "workers-limit: must be 2 or more, not -3",
            'select: unknown rule "W9999"',
            'did you mean "optimizer-not-fused"?',
            'exclude: "!" is not a gitignore pattern',
            "level: must be one of error, warning, refactor, info",
            "output-format: must be one of ",
            'target-torch: must be a string from "2.0" to',
            "baseline: must be a path inside the project",
            'pedantic: must be true or false, not "yes"',
            "per-file-ignores.!a: a negated pattern",
            "per-file-ignores.b/: must be a list of strings",
            'per-file-ignores."c.py": unknown rule "nix"',
        ),
        strict=True,
    ):
        assert words in line


@for_every(
    "text, message",
    [
        *(
            pytest.param(f"{option.name} = {wrong}", f"{option.name}: must be {option.allowed}, not {wrong}", id=f"{option.name}={wrong}")
            for option in {option.name: option for rule in ALL for option in rule.options}.values()
            for wrong in (
                *((option.minimum - 1, -(10**9)) if option.minimum is not None else ()),
                *((option.maximum + 1,) if option.maximum is not None else ()),
            )
        ),
        pytest.param(
            "heartbeat-limit = 600\nheartbeat-timeout = 601", "must be at most heartbeat-limit (600), not 601", id="two-set"
        ),
        pytest.param("collective-timeout = 7201", "must be at most collective-limit (7200), not 7201", id="one-set"),
        pytest.param("collective-minimum = 1801", "must be at most collective-timeout (1800)", id="minimum"),
        pytest.param("num-workers = 16", "must be less than workers-limit (16), not 16", id="below"),
    ],
)
def test_numbers_have_a_range(tmp_path: Path, text: str, message: str) -> None:
    (found,) = errors(tmp_path, "ldlm-lint.toml", text + "\n")
    assert message in found


def test_every_number_has_a_range_that_the_schema_tells() -> None:
    schema = config_schema(ALL)["properties"]
    for option in (option for rule in ALL for option in rule.options if option.kind is int):
        assert option.minimum is not None, option.name
        assert schema[option.name]["minimum"] == option.minimum
        assert schema[option.name].get("maximum") == option.maximum
        assert list(Draft7Validator(schema[option.name]).iter_errors(option.minimum - 1))
        assert not list(Draft7Validator(schema[option.name]).iter_errors(option.default))


def test_a_default_follows_what_it_must_not_exceed(tmp_path: Path) -> None:
    write(tmp_path, {"ldlm-lint.toml": "heartbeat-limit = 60\ncollective-limit = 20\nworkers-limit = 2\n"})
    options = Config.load(tmp_path).options
    names = ("heartbeat-timeout", "collective-timeout", "collective-minimum", "num-workers")
    assert [options[name] for name in names] == [60, 20, 20, 1]


def test_the_page_shows_errors_as_they_are_printed(tmp_path: Path) -> None:
    found = errors(tmp_path, "ldlm-lint.toml", "# Ours.\n\nworkers-limit = -3\nheartbeat-limits = 7200\n")
    page = (Path(__file__).resolve().parent.parent / "docs" / "configuration.md").read_text(encoding="utf-8")
    assert "```text\n" + "".join(f"ldlm-lint.toml:{line}\n" for line in found) + "```" in page


def test_a_header_in_a_file_of_ours_is_answered(tmp_path: Path) -> None:
    for header in ("tool.ldlm-lint", "ldlm-lint", "tool.other"):
        (found,) = errors(tmp_path, "ldlm-lint.toml", f"# Ours.\n[{header}]\nlevel = 'info'\n")
        assert found.startswith("2: ") and "at the top of this file, without [tool.ldlm-lint]" in found


def test_an_error_is_one_line_without_control_characters(tmp_path: Path) -> None:
    for text in ('level = "a\\u001b[31m\\nb"', '"k\\u001b[31m" = 1', 'select = ["\\u202e"]', 'exclude = ["!\\u0007", "!"]'):
        found = errors(tmp_path, "ldlm-lint.toml", text + "\n")
        assert all(line.isprintable() for line in found), found


def test_a_hostile_configuration_costs_no_more_than_its_size(tmp_path: Path) -> None:
    many = errors(tmp_path, "ldlm-lint.toml", "".join(f"heartbeat-limit{number} = 1\n" for number in range(20_000)))
    assert len(many) == MOST_ERRORS + 1
    assert many[-1].endswith("and 19950 more errors")
    near = errors(tmp_path, "ldlm-lint.toml", "".join(f"[{'_' * (number % 40)}ldlm-lint{'_' * (number // 40)}]\n" for number in range(1_000)))
    assert len(near) == 10
    (huge,) = errors(tmp_path, "ldlm-lint.toml", f"workers-limit = -1\nselect = [0x{'F' * 9_000}]\n")[1:]
    assert "must be a list of strings, not a value that is too long to show" in huge
    (negative,) = errors(tmp_path, "ldlm-lint.toml", f"heartbeat-limit = 0x{'F' * 9_000}\n")
    assert "from 30 to 2147483" in negative
    (nothing,) = errors(tmp_path, "ldlm-lint.toml", 'output-format = ""\n')
    assert "must be one of text" in nothing


@LINKS
@pytest.mark.parametrize("name", ["pyproject.toml", "ldlm-lint.toml", ".ldlm-lint.toml"])
def test_a_link_that_leads_out_of_the_project_is_refused(tmp_path: Path, name: str) -> None:
    write(tmp_path, {"secret": "token = 1\n", "repo/.git/HEAD": "", "repo/a/x.py": ""})
    (tmp_path / "repo" / "a" / name).symlink_to(tmp_path / "secret")
    configured = Configurations(tmp_path / "repo")
    with pytest.raises(ConfigError, match="leads out of the project") as caught:
        configured.of(f"{tmp_path.as_posix()}/repo/a/x.py")
    assert "token" not in str(caught.value)
    assert configured.run.path == ""


@pytest.mark.parametrize(
    "header, near",
    [
        ("[tool.ldlm_lint]", True),
        ("[tool.ldlmlint]", True),
        ("[tool.ldlm-Lint]", True),
        ("[tool.LDLM_LINT]", True),
        ("[tool.ldml-lint]", True),
        ("[tool.ldlm-linter]", True),
        ("[ldlm-lint]", True),
        ("[ldlm_lint]", True),
        ("[tools.ldlm-lint]", True),
        ("[tool.ldlm]", False),
        ("[tool.pylint.main]", False),
        ("[tool.sqlint]", False),
        ("[tool.sdlc-lint]", False),
        ("[tool.ldlm-lint]", False),
        ("[project]\nldlm-lint = 1", False),
        ("[tool]\nldlm_lint = 1", False),
    ],
)
def test_a_table_whose_name_is_nearly_ours_is_answered(enter: Enter, run: Run, header: str, near: bool) -> None:
    enter({"pyproject.toml": f"# Ours.\n\n{header}\n", "x.py": ""})
    code, _, err = run("--no-cache")
    shown = header.splitlines()[0]
    assert code == 0
    assert err == (f"warning: pyproject.toml:3: {shown} is not read; the table is called [tool.ldlm-lint]\n" if near else "")


def test_a_warning_is_told_of_the_files_of_the_run_alone_and_again_by_the_cache(enter: Enter, run: Run) -> None:
    enter({"a/pyproject.toml": "[tool.ldlm_lint]\n", "a/x.py": "", "b/pyproject.toml": "[tool.ldlm-lint]\n", "b/x.py": ""})
    warning = "warning: a/pyproject.toml:1: [tool.ldlm_lint] is not read"
    for words in ((".",), (".",), (".", "--statistics"), ("a/x.py",), ("--show-files",), ("--diff",), ("graph",), ("--format", "json")):
        assert warning in run(*words)[2], words
    assert run("b")[2] == ""
