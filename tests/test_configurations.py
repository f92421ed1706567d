"""Which configuration holds for a file."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest
from configured import BEAT, level, write

from ldlm_lint.config import Config, Overrides, Patterns
from ldlm_lint.configurations import Configurations
from ldlm_lint.discover import discover
from ldlm_lint.engine import run as lint
from ldlm_lint.model import Severity
from ldlm_lint.requirements import TorchRange
from ldlm_lint.rules import ALL
from ldlm_lint.select import Layer
from ldlm_lint.tomlfile import ConfigError


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
    found = {name: configured.of(f"{tmp_path.as_posix()}/{name}/x.py").target_torch.oldest for name in "abcd"}
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


def test_one_configuration_may_stand_for_all_files(tmp_path: Path) -> None:
    write(tmp_path, {"a/ldlm-lint.toml": "ignore = ['ALL']\n", "a/run.sh": BEAT, "run.sh": BEAT})
    everywhere = Configurations(tmp_path, isolated=True, overrides=Overrides(Layer(select=("W7201",)))).run
    limited = {**everywhere.options, "heartbeat-limit": 4000}
    fixed = Config(root=tmp_path.as_posix(), select=("W7201",), options=limited)
    assert [Path(one.span.path).parent.name for one in lint([tmp_path], fixed, base=tmp_path).findings] == ["a", tmp_path.name]
