"""What users of other linters write by habit, and hints that work from a clone."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from calling import Enter, Run

from ldlm_lint.extras import NEEDS, install
from ldlm_lint.habits import instead
from ldlm_lint.untrusted_toml import loads

ROOT = Path(__file__).parent.parent
BEAT = "export TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC=12000000\ntorchrun train.py\n"
TEXTS = [
    path
    for pattern in ("ldlm_lint/**/*.py", "docs/*.md", "*.md", "templates/*", "action.yml", ".pre-commit-hooks.yaml")
    for path in ROOT.glob(pattern)
    if path.name != "CHANGELOG.md"
]


@pytest.fixture
def project(enter: Enter) -> Path:
    return enter({"pyproject.toml": "", "run.sh": BEAT})


@pytest.mark.parametrize("option", ["--select", "--extend-select", "--ignore"])
@pytest.mark.parametrize("name", ["7201", "w7201", "W7201", "excessive-heartbeat-timeout"])
def test_a_rule_is_chosen_by_its_number_too(option: str, name: str, project: Path, run: Run) -> None:
    assert ("W7201" in run(option, name)[1]) is (option != "--ignore")


def test_the_number_works_in_the_configuration_and_in_a_comment(project: Path, run: Run) -> None:
    (project / "pyproject.toml").write_text('[tool.ldlm-lint]\nselect = ["7201"]\nper-file-ignores = { "x.sh" = ["7201"] }\n')
    (project / "x.sh").write_text(BEAT)
    (project / "y.sh").write_text(f"# ldlm-lint: ignore[7201] a reason\n{BEAT}")
    assert re.findall(r"^\w+\.sh:\d+", run("--format", "concise")[1], re.M) == ["run.sh:1"]
    (project / "pyproject.toml").write_text("")
    assert re.findall(r"^\w+\.sh:\d+", run("--format", "concise")[1], re.M) == ["run.sh:1", "x.sh:1"]
    assert "unused-suppression" not in run("y.sh", "--extend-select", "unused-suppression")[1]


def test_short_options(project: Path, run: Run) -> None:
    assert run("-q") == run("--quiet")
    run("-o", "report.txt")
    assert (project / "report.txt").read_text() == run("--no-cache")[1]
    run("--output-file", "other.txt")
    assert (project / "other.txt").read_bytes() == (project / "report.txt").read_bytes()
    assert run("-j", "1")[1] == run()[1]
    assert run("-V") == run("--version")
    assert run("check", "-h") == run("check", "--help")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--disable=W7201",), 'did you mean "--ignore"?'),
        (("-d", "W7201"), 'did you mean "--ignore"?'),
        (("-f", "json"), 'did you mean "--format"?'),
        (("-E",), 'did you mean "--level error"?'),
        (("--add-noqa",), 'did you mean "--add-ignores"?'),
        (("--explain", "W7201"), 'use the command "ldlm-lint explain NAME"'),
        (("--init",), 'use the command "ldlm-lint init"'),
        (("-v",), "`ldlm-lint doctor` prints the settings of a run"),
        (("--force-exclude",), "an excluded path is always excluded"),
    ],
)
def test_options_of_other_linters_are_answered_with_ours(arguments: tuple[str, ...], words: str, project: Path, run: Run) -> None:
    code, out, err = run(*arguments)
    assert (code, out) == (2, "")
    assert words in err
    assert err.count("\n") == 1


def test_an_option_that_a_command_does_not_have_is_not_proposed() -> None:
    assert instead("--disable", ["--format"]) == ""
    assert instead("--nothing", ["--ignore"]) == ""


@pytest.mark.parametrize("extra", sorted(NEEDS))
def test_every_extra_can_be_installed_from_a_clone(extra: str) -> None:
    project = loads((ROOT / "pyproject.toml").read_text())["project"]
    assert isinstance(project, dict)
    assert any(NEEDS[extra] in one for one in project["optional-dependencies"][extra])
    assert install(extra).startswith(f'python -m pip install ".[{extra}]"')


def test_no_hint_installs_from_a_registry() -> None:
    hint = re.compile(r"pip install [^\n`]*ldlm-lint(?:\[|==|\$)[^\n]*")
    assert {path.name: found for path in TEXTS if (found := hint.findall(path.read_text(encoding="utf-8")))} == {}


def test_a_noqa_with_our_code_silences_and_a_bare_one_is_answered(project: Path, run: Run) -> None:
    beat = BEAT.splitlines()[0]
    (project / "run.sh").write_text(f"{beat}  # noqa: W7201 a long first step\ntorchrun train.py\n")
    code, out, err = run()
    assert (code, err) == (0, "") and "1 finding suppressed" in out
    (project / "run.sh").write_text(f"{beat}  # noqa\ntorchrun train.py\n")
    code, out, err = run()
    assert code == 1
    assert err == "note: 1 finding is on a line with a bare `# noqa`, which does not silence ldlm-lint: write `# noqa: W7201`\n"
    assert run("--quiet")[2] == run("--format", "json")[2] == ""
    (project / "run.sh").write_text(f"{beat}  # noqa\nexport NCCL_TIMEOUT=1  # noqa\ntorchrun train.py\n")
    assert "2 findings are on lines" in (err := run()[2]) and "write `# noqa: W7201, W7204`" in err
    (project / "run.sh").write_text(f"{beat}  # noqa: E501\ntorchrun train.py\n")
    assert run()[::2] == (1, "")


def test_ignore_comments_and_fixes_go_with_a_noqa(project: Path, run: Run) -> None:
    beat = BEAT.splitlines()[0]
    (project / "run.sh").write_text(f"{beat}  # noqa: E501\n{beat}  # noqa: W7201\ntorchrun train.py\n")
    assert run("--add-ignores")[0] == 0
    lines = (project / "run.sh").read_text().splitlines()
    assert lines[0].startswith(f"{beat}  # noqa: E501  # ldlm-lint: ignore[excessive-heartbeat-timeout]") or lines[0].startswith("# ldlm-lint")
    assert f"{beat}  # noqa: W7201" in lines
    (project / "run.sh").write_text(f"{beat}  # noqa: W7201\ntorchrun train.py\n")
    assert run("--fix", "--unsafe-fixes")[0] == 0
    assert (project / "run.sh").read_text() == f"{beat}  # noqa: W7201\ntorchrun train.py\n"
