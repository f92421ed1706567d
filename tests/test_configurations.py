"""Which configuration holds for a file, what is wrong with one, and what of it reaches whoever runs the linter."""

from __future__ import annotations

import json
import pickle
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
from calling import Enter, Run
from jsonschema import Draft7Validator

from ldlm_lint.config import Config, Overrides, Patterns
from ldlm_lint.config_reader import MOST_ERRORS
from ldlm_lint.configurations import Configurations
from ldlm_lint.discover import discover
from ldlm_lint.engine import run as lint
from ldlm_lint.model import Severity
from ldlm_lint.requirements import TorchRange
from ldlm_lint.rules import ALL
from ldlm_lint.select import Layer
from ldlm_lint.settings import config_schema
from ldlm_lint.tomlfile import ConfigError

BEAT = "export TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC=5000\ntorchrun train.py\n"
LINKS = pytest.mark.skipif(sys.platform == "win32", reason="links need a privilege on Windows")


def write(root: Path, files: Mapping[str, str]) -> Path:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


def level(configured: Configurations, path: Path) -> str:
    return configured.of(path.as_posix()).level.label


def errors(root: Path, name: str, text: str) -> list[str]:
    """The errors of a configuration, each with the line and the key, without the path."""
    write(root, {name: text})
    with pytest.raises(ConfigError) as caught:
        Configurations(root).run.selected(ALL)
    lines = str(caught.value).splitlines()
    assert [str(one) for one in caught.value.errors[1:]] == lines[1:]
    place = (root / name).as_posix() + ":"
    assert all(line.startswith(place) for line in lines)
    return [line.removeprefix(place) for line in lines]


def test_the_nearest_folder_decides_and_nothing_is_inherited(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "pyproject.toml": "[tool.ldlm-lint]\nlevel = 'error'\nignore = ['W7604']\n",
            "a/ldlm-lint.toml": "level = 'warning'\n",
            "a/b/pyproject.toml": "[tool.other]\n",
            "a/b/c/.ldlm-lint.toml": "",
        },
    )
    configured = Configurations(tmp_path)
    assert level(configured, tmp_path / "x.py") == "error"
    assert level(configured, tmp_path / "other" / "deep" / "x.py") == "error"
    assert level(configured, tmp_path / "a" / "b" / "x.py") == "warning"
    assert level(configured, tmp_path / "a" / "b" / "c" / "d" / "x.py") == "info"
    assert configured.of(f"{tmp_path.as_posix()}/a/b/x.py").ignore == ()
    assert configured.of(f"{tmp_path.as_posix()}/a/b/x.py").root == f"{tmp_path.as_posix()}/a"
    assert configured.run.path == f"{tmp_path.as_posix()}/pyproject.toml"


@pytest.mark.parametrize(
    "files, holds",
    [
        ({".ldlm-lint.toml": "", "ldlm-lint.toml": "", "pyproject.toml": "[tool.ldlm-lint]\n"}, ".ldlm-lint.toml"),
        ({"ldlm-lint.toml": "", "pyproject.toml": "[tool.ldlm-lint]\n"}, "ldlm-lint.toml"),
        ({"pyproject.toml": "[tool.ldlm-lint]\n", "in/pyproject.toml": ""}, "pyproject.toml"),
        ({"pyproject.toml": "", "in/pyproject.toml": "[project]\nname = 'x'\n"}, ""),
    ],
)
def test_the_files_of_a_folder_have_an_order(tmp_path: Path, files: dict[str, str], holds: str) -> None:
    found = Config.load(write(tmp_path, files), overrides=None)
    assert found.path == (f"{tmp_path.as_posix()}/{holds}" if holds else "")
    assert found.root == tmp_path.as_posix()


def test_a_file_of_ours_is_no_configuration_of_a_training(tmp_path: Path) -> None:
    write(tmp_path, {"ldlm-lint.toml": "num-workers = 8\n", "train.py": ""})
    assert [path.name for path, _ in discover([tmp_path], Configurations(tmp_path), tmp_path).files] == ["train.py"]


def test_equal_settings_are_one_configuration_that_another_process_has_too(tmp_path: Path) -> None:
    write(tmp_path, {"ldlm-lint.toml": "level = 'error'\n", "a/b/x.py": "", "bad/ldlm-lint.toml": "x = 1\n"})
    configured = Configurations(tmp_path)
    assert configured.of_folder(f"{tmp_path.as_posix()}/a") is configured.of_folder(f"{tmp_path.as_posix()}/a/b")
    with pytest.raises(ConfigError):
        configured.of_folder(f"{tmp_path.as_posix()}/bad")
    copy = pickle.loads(pickle.dumps(configured))
    assert copy.run == configured.run
    assert copy.of(f"{tmp_path.as_posix()}/new/x.py") == configured.run
    with pytest.raises(ConfigError, match="unknown key"):
        copy.of_folder(f"{tmp_path.as_posix()}/bad")


def test_the_torch_of_a_file_is_that_of_the_nearest_requirements_that_bound_it(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "pyproject.toml": "[tool.ldlm-lint]\n[project]\nname = 'x'\ndependencies = ['torch==2.4.*']\n",
            "a/pyproject.toml": "[project]\nname = 'a'\ndependencies = ['torch==2.6.*']\n",
            "b/pyproject.toml": "[project]\nname = 'b'\ndependencies = ['numpy']\n",
            "c/ldlm-lint.toml": "target-torch = '2.1'\n",
            "d/pyproject.toml": "[project]\nname = 'd'\ndependencies = ['numpy']\n",
        },
    )
    (tmp_path / "d" / ".git").mkdir()
    configured = Configurations(tmp_path)
    found = {name: configured.of_folder(f"{tmp_path.as_posix()}/{name}").target_torch.oldest for name in "abcd"}
    assert found == {"a": (2, 6), "b": (2, 4), "c": (2, 1), "d": (2, 4)}
    assert configured.run.target_torch == TorchRange((2, 4), (2, 4))


def test_the_command_line_is_above_every_file(tmp_path: Path) -> None:
    write(tmp_path, {"ldlm-lint.toml": "level = 'error'\nexclude = ['x.py']\n", "a/ldlm-lint.toml": "exclude = ['y.py']\n"})
    place = tmp_path.as_posix()
    more = Configurations(tmp_path, overrides=Overrides(level=Severity.WARNING, exclude=Patterns(place, ("a/z.py",))))
    assert more.of(f"{place}/a/b.py").level is more.run.level is Severity.WARNING
    names = ("x.py", "y.py", "a/x.py", "a/y.py", "a/z.py", "a/b/z.py")
    assert [name for name in names if more.excludes(f"{place}/{name}", False)] == ["x.py", "a/y.py", "a/z.py"]
    instead = Configurations(tmp_path, overrides=Overrides(exclude=Patterns(place, ("z.py",)), replace=True))
    assert [name for name in names if instead.excludes(f"{place}/{name}", False)] == ["a/z.py", "a/b/z.py"]


def test_what_is_excluded_with_its_folder_does_not_come_back(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "ldlm-lint.toml": "exclude = ['gen/', '!gen/kept.py', '/b/']\n",
            "gen/kept.py": "",
            "b/pyproject.toml": "[tool.ldlm-lint]\n",
            "b/x.py": "",
            "c/gen/x.py": "",
            "x.py": "",
        },
    )
    walked = [path for path, _ in discover([tmp_path], Configurations(tmp_path), tmp_path).files]
    assert [path.relative_to(tmp_path).as_posix() for path in walked] == ["x.py"]
    for path in sorted(tmp_path.rglob("*.py")):
        alone = discover([path], Configurations(path), tmp_path)
        assert [one for one, _ in alone.files] == [path] * (path in walked), path


def test_explicit_file_in_either_form(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "repo/.git/HEAD": "",
            "repo/ldlm-lint.toml": "level = 'error'\n",
            "repo/ci/top.toml": "level = 'warning'\nexclude = ['/gen/']\n",
            "repo/ci/table.toml": "[tool.ldlm-lint]\nlevel = 'warning'\n",
            "repo/a/ldlm-lint.toml": "",
            "elsewhere.toml": "exclude = ['/gen/']\n",
            "none/pyproject.toml": "[project]\n",
            "near/other.toml": "[tool.ldlm_lint]\n",
        },
    )
    repo = tmp_path / "repo"
    for name in ("ci/top.toml", "ci/table.toml"):
        assert level(Configurations(repo, explicit=repo / name), repo / "a" / "x.py") == "warning"
    # Wherever the run begins, patterns are relative to the project of the file.
    for start in (repo, repo / "a", repo / "a" / "x.py"):
        top = Configurations(start, explicit=repo / "ci" / "top.toml")
        assert top.excludes(f"{repo.as_posix()}/gen/x.py", False)
        assert not top.excludes(f"{repo.as_posix()}/a/gen/x.py", False)
        outside = Configurations(start, explicit=tmp_path / "elsewhere.toml")
        assert outside.excludes(f"{repo.as_posix()}/gen/x.py", False)
    with pytest.raises(ConfigError, match=r"pyproject.toml: has no \[tool.ldlm-lint\] table"):
        Configurations(repo, explicit=tmp_path / "none" / "pyproject.toml").run.selected(ALL)
    with pytest.raises(ConfigError, match=r"has no .* table; line 1: \[tool.ldlm_lint\] is not read"):
        Configurations(repo, explicit=tmp_path / "near" / "other.toml").run.selected(ALL)


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


@pytest.mark.parametrize(
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


NESTED = {
    "pyproject.toml": "[tool.ldlm-lint]\n",
    "run.sh": BEAT,
    "a/ldlm-lint.toml": "heartbeat-limit = 4000\nlevels = 'info'\nworkers-limit = 0\n",
    "a/run.sh": BEAT,
    "a/deep/run.sh": BEAT,
    "b/pyproject.toml": "[tool.ldlm-lint]\nheartbeat-limit = 4000\n",
    "b/run.sh": BEAT,
    "c/pyproject.toml": "[tool\n",
    "c/README.md": "",
}


@pytest.mark.parametrize("words", [(".",), ("--no-cache", "--jobs", "2"), ("b", "a")])
def test_a_broken_configuration_of_a_nested_project_costs_its_own_files_alone(
    enter: Enter, run: Run, words: tuple[str, ...]
) -> None:
    enter(NESTED)
    for _ in range(2):
        code, out, err = run("--format", "concise", *words)
        assert code == 2
        assert [line.partition(":")[0] for line in out.splitlines()][:2] == ["b/run.sh", "Found 1 finding"]
        assert sorted(err.splitlines()) == [
            "error: a/ldlm-lint.toml: 2 files are not checked, since this configuration cannot be used",
            'error: a/ldlm-lint.toml:2: levels: unknown key, did you mean "level"?',
            "error: a/ldlm-lint.toml:3: workers-limit: must be 2 or more, not 0",
        ]


def test_a_broken_configuration_matters_only_where_the_run_has_files_below(enter: Enter, run: Run) -> None:
    root = enter(NESTED)
    assert run("b", "c/README.md", "--no-cache")[2].count("c/pyproject.toml") == 0
    assert run("b/run.sh", "run.sh")[:1] == (1,)
    write(root, {"c/train.py": ""})
    code, _, err = run(".")
    assert code == 2
    assert "error: c/pyproject.toml:1: is not valid TOML" in err


def test_the_configuration_of_the_run_ends_it_with_all_of_its_errors(enter: Enter, run: Run) -> None:
    root = enter(NESTED)
    code, out, err = run("a/run.sh")
    assert (code, out) == (2, "")
    assert [line.partition("a/ldlm-lint.toml")[2].partition(": ")[0] for line in err.splitlines()] == [":2", ":3"]
    assert all(line.startswith("ldlm-lint: error: ") for line in err.splitlines())
    for words in (("graph", "a"), ("baseline", "a"), ("--fix", "a"), ("--show-settings", "a"), ("--show-files", "a")):
        assert run(*words)[0] == 2
    assert not (root / "a" / ".ldlm-lint-baseline.json").exists()


def test_a_broken_nested_configuration_is_above_other_failures_and_exit_zero(enter: Enter, run: Run) -> None:
    enter(NESTED)
    assert run(".", "gone", "--exit-zero")[0] == 2
    assert run(".", "--show-files")[0] == 2
    assert run("graph", ".")[0] == 2
    document = json.loads(run(".", "--format", "json")[1])
    assert {"path": "a/ldlm-lint.toml", "line": 3, "message": "workers-limit: must be 2 or more, not 0"}.items() <= next(
        one for one in document["errors"] if one["line"] == 3
    ).items()


def test_fixes_ignores_and_baseline_leave_the_files_of_a_broken_project_alone(enter: Enter, run: Run) -> None:
    root = enter(NESTED)
    assert run("--add-ignores", ".")[0] == 2
    assert "ldlm-lint: ignore" in (root / "b" / "run.sh").read_text()
    assert (root / "a" / "run.sh").read_text() == BEAT
    (root / "b" / "run.sh").write_text(BEAT)
    assert run("--fix", "--unsafe-fixes", ".")[0] == 2
    assert "SEC=1800" in (root / "b" / "run.sh").read_text()
    assert (root / "a" / "run.sh").read_text() == BEAT


def test_a_fix_takes_the_options_of_its_own_file(enter: Enter, run: Run) -> None:
    root = enter(
        {
            "ldlm-lint.toml": "heartbeat-limit = 4000\n",
            "run.sh": BEAT,
            "a/ldlm-lint.toml": "heartbeat-limit = 4000\nheartbeat-timeout = 900\n",
            "a/run.sh": BEAT,
            "b/ldlm-lint.toml": "heartbeat-limit = 1000\n",
            "b/run.sh": BEAT,
        }
    )
    run("--fix", "--unsafe-fixes", ".")
    lengths = [(root / name).read_text().splitlines()[0].rpartition("=")[2] for name in ("run.sh", "a/run.sh", "b/run.sh")]
    assert lengths == ["1800", "900", "1000"]


def test_a_finding_counts_by_the_fail_level_of_its_own_file(enter: Enter, run: Run) -> None:
    enter(
        {
            "ldlm-lint.toml": "heartbeat-limit = 4000\nfail-level = 'error'\n",
            "run.sh": BEAT,
            "a/ldlm-lint.toml": "heartbeat-limit = 4000\nfail-level = 'warning'\n",
            "a/run.sh": BEAT,
        }
    )
    assert run("run.sh")[0] == 0
    assert run("a")[0] == run(".")[0] == run("run.sh", "a/run.sh")[0] == 1
    assert run(".", "--fail-level", "error")[0] == 0


def test_format_and_baseline_are_those_of_the_run(enter: Enter, run: Run) -> None:
    root = enter(
        {
            "ldlm-lint.toml": "heartbeat-limit = 4000\noutput-format = 'concise'\n",
            "run.sh": BEAT,
            "a/ldlm-lint.toml": "heartbeat-limit = 4000\noutput-format = 'json'\nbaseline = 'known.json'\n",
            "a/run.sh": BEAT,
        }
    )
    assert run("a")[0] == 2
    assert run("baseline", ".")[0] == 0
    assert (root / ".ldlm-lint-baseline.json").exists() and not (root / "a" / "known.json").exists()
    code, out, _ = run(".")
    assert (code, out.splitlines()[0]) == (0, "No findings.")
    assert run("a", "--no-baseline")[1].startswith("{")


def test_a_stale_entry_of_the_baseline_is_told_where_its_own_file_applies_the_rule(enter: Enter, run: Run) -> None:
    root = enter(
        {
            "ldlm-lint.toml": "heartbeat-limit = 4000\n",
            "run.sh": BEAT,
            "a/ldlm-lint.toml": "heartbeat-limit = 4000\n",
            "a/run.sh": BEAT,
        }
    )
    run("baseline", ".")
    write(root, {"run.sh": "echo\n", "a/run.sh": "echo\n", "a/ldlm-lint.toml": "ignore = ['72']\n"})
    assert [line for line in run(".")[2].splitlines() if "is in the baseline" in line] == [
        "note: run.sh: excessive-heartbeat-timeout is in the baseline, but gone"
    ]


def test_comments_that_silence_nothing_are_asked_for_by_each_project(enter: Enter, run: Run) -> None:
    idle = "x = 1  # ldlm-lint: ignore[W7604]\n"
    enter({"ldlm-lint.toml": "", "x.py": idle, "a/ldlm-lint.toml": "extend-select = ['unused-suppression']\n", "a/x.py": idle})
    found = [line for line in run("--format", "concise")[1].splitlines() if "unused-suppression" in line]
    assert [line.partition(":")[0] for line in found] == ["a/x.py"]


def test_the_cache_notices_every_change_of_a_configuration(enter: Enter, run: Run) -> None:
    root = enter({"pyproject.toml": "", "a/deep/run.sh": BEAT, "b/run.sh": BEAT})

    def found() -> list[str]:
        return [line.partition(":")[0] for line in run("--format", "concise", ".")[1].splitlines() if "W7201" in line]

    for name, text, files in (
        ("", "", []),
        ("a/ldlm-lint.toml", "heartbeat-limit = 4000\n", ["a/deep/run.sh"]),
        ("a/ldlm-lint.toml", "heartbeat-limit = 6000\n", []),
        ("ldlm-lint.toml", "heartbeat-limit = 4000\n", ["b/run.sh"]),
        ("a/deep/pyproject.toml", "[tool.ldlm-lint]\nheartbeat-limit = 4000\n", ["a/deep/run.sh", "b/run.sh"]),
        ("a/deep/.ldlm-lint.toml", "exclude = ['*']\n", ["b/run.sh"]),
        ("b/ldlm-lint.toml", "heartbeat-limit = 4000\nignore = ['W7201']\n", []),
    ):
        if name:
            write(root, {name: text})
        assert found() == found() == files, name
    (root / "b" / "ldlm-lint.toml").unlink()
    (root / "a" / "deep" / ".ldlm-lint.toml").unlink()
    assert found() == found() == ["a/deep/run.sh", "b/run.sh"]


def test_the_cache_notices_a_configuration_above_a_named_file(enter: Enter, run: Run) -> None:
    root = enter({"a/deep/run.sh": BEAT, "b/run.sh": BEAT})

    def found() -> int:
        return run("--format", "concise", "a/deep/run.sh", "b/run.sh")[1].count("W7201")

    assert found() == found() == 0
    for name in ("a/ldlm-lint.toml", "b/.ldlm-lint.toml"):
        write(root, {name: "heartbeat-limit = 4000\n"})
        assert found() == found()
    assert found() == 2
    write(root.parent, {"ldlm-lint.toml": "heartbeat-limit = 4000\n"})
    (root / "a" / "ldlm-lint.toml").unlink()
    assert found() == 2


def test_the_cache_keeps_apart_what_flags_change_in_a_nested_project_alone(enter: Enter, run: Run) -> None:
    enter({"ldlm-lint.toml": "heartbeat-limit = 4000\n", "run.sh": BEAT, "a/ldlm-lint.toml": "heartbeat-limit = 4000\nignore = ['72']\n", "a/run.sh": BEAT})
    counts = [run("--format", "concise", *words)[1].count("W7201") for words in ((), ("--extend-select", "W7201"), ())]
    assert counts == [1, 2, 1]


def test_exclude_on_the_command_line(enter: Enter, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    root = enter({"ldlm-lint.toml": "exclude = ['a/']\n", "a/x.py": "", "b/x.py": "", "b/gen/y.py": "", "c.py": ""})

    def files(*words: str) -> list[str]:
        document = json.loads(run("--show-files", "--format", "json", *words)[1])
        return [one["path"] for one in document["files"]]

    assert files() == ["b/gen/y.py", "b/x.py", "c.py"]
    assert files("--extend-exclude", "gen,c.py") == ["b/x.py"]
    assert files("--exclude", "gen/", "--exclude", "/c.py") == ["a/x.py", "b/x.py"]
    assert files("--exclude", "gen/", "--extend-exclude", "b/x.py") == ["a/x.py", "c.py"]
    assert files("--extend-exclude", "b/gen", "b/gen/y.py", "c.py") == ["c.py"]
    monkeypatch.chdir(root / "b")
    assert files("--extend-exclude", "/gen/") == ["x.py"]
    monkeypatch.chdir(root / "a")
    # What does not lie below where the command runs is matched from the root of its project.
    assert [Path(one).name for one in files("--exclude", "/c.py", "../b", "../c.py")] == ["y.py", "x.py"]
    for pattern in ("!", "[z-a]"):
        assert "not a gitignore pattern" in run("--exclude", pattern)[2]


def test_show_settings_tells_those_of_a_file_and_names_the_others(enter: Enter, run: Run) -> None:
    root = enter(
        {
            "pyproject.toml": "[tool.ldlm-lint]\nlevel = 'warning'\n",
            "x.py": "",
            "a/ldlm-lint.toml": "# Ours.\nlevel = 'error'\nexclude = ['gen/']\n",
            "a/x.py": "",
            "a/y.py": "",
        }
    )
    _, out, _ = run("--show-settings")
    assert f"# configuration: {root.as_posix()}/pyproject.toml\n# not for the 2 files of {root.as_posix()}/a/ldlm-lint.toml\n" in out
    _, out, _ = run("--show-settings", "a/x.py", "--extend-exclude", "new/")
    assert f"# configuration: {root.as_posix()}/a/ldlm-lint.toml\nselect" in out
    rows = [" ".join(line.split()) for line in out.splitlines()]
    assert 'level = "error" # ldlm-lint.toml:2' in rows
    assert 'exclude = ["gen/"] # ldlm-lint.toml:3' in rows and 'exclude = ["new/"] # command line' in rows
    document = json.loads(run("--show-settings", "--format", "json")[1])
    assert document["others"] == [{"file": f"{root.as_posix()}/a/ldlm-lint.toml", "files": 2}]


def test_one_configuration_may_stand_for_all_files(tmp_path: Path) -> None:
    write(tmp_path, {"a/ldlm-lint.toml": "ignore = ['ALL']\n", "a/run.sh": BEAT, "run.sh": BEAT})
    everywhere = Configurations(tmp_path, isolated=True, overrides=Overrides(Layer(select=("W7201",)))).run
    limited = {**everywhere.options, "heartbeat-limit": 4000}
    fixed = Config(root=tmp_path.as_posix(), select=("W7201",), options=limited)
    assert [Path(one.span.path).parent.name for one in lint([tmp_path], fixed, base=tmp_path).findings] == ["a", tmp_path.name]
