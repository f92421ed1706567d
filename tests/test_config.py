"""The configuration: what each key takes, and the line, key and hint of every mistake."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest
from collected import for_every

from ldlm_lint.config import Config, Overrides, common_directory, project_root
from ldlm_lint.model import Consequence, Option, Rule, Severity
from ldlm_lint.requirements import TorchRange
from ldlm_lint.select import Layer, SelectorError
from ldlm_lint.tomlfile import ConfigError, line_of

LIMIT = Option("heartbeat-limit", 7200, "seconds")
RATIO = Option("ratio", 0.5, "share", float)
FLAG = Option("strict", False, "whether", bool)
WORDS = Option("launchers", ["torchrun"], "commands", list)


def _rule(code: str, symbol: str, *options: Option) -> Rule:
    texts = dict.fromkeys(("message", "summary", "rationale", "cost", "exceptions", "versions", "verification"), "x")
    return Rule(code=code, symbol=symbol, consequence=Consequence.SLOW, references=(), reads=("sh",), triggers=(), options=options, **texts)


RULES = (
    _rule("W7201", "excessive-heartbeat-timeout", LIMIT, FLAG),
    _rule("R7301", "optimizer-not-fused", RATIO, WORDS),
)


def load(directory: Path, text: str | bytes | None = None, **arguments: object) -> Config:
    if text is not None:
        data = text if isinstance(text, bytes) else text.encode()
        (directory / "pyproject.toml").write_bytes(data)
    return Config.load(directory, rules=RULES, **arguments)


def test_every_key(tmp_path: Path) -> None:
    config = load(
        tmp_path,
        """
        [tool.ldlm-lint]
        select = ["ALL"]
        extend-select = ["W72"]
        ignore = ["R7301"]
        exclude = ["third_party/", "*.bak.py"]
        level = "refactor"
        fail-level = "warning"
        target-torch = "2.13"
        required-version = ">=0.0.1"
        heartbeat-limit = 60
        ratio = 1
        strict = true
        launchers = ["srun"]
        [tool.ldlm-lint.per-file-ignores]
        "tests/**" = ["W72"]
        """,
    )
    assert (config.select, config.extend_select, config.ignore) == (("ALL",), ("W72",), ("R7301",))
    assert config.exclude == ("third_party/", "*.bak.py")
    assert (config.level, config.fail_level) == (Severity.REFACTOR, Severity.WARNING)
    assert config.target_torch == TorchRange((2, 13), (2, 13))
    assert config.options == {"heartbeat-limit": 60, "ratio": 1, "strict": True, "launchers": ("srun",)}
    assert config.root == tmp_path.as_posix()
    assert config.path == (tmp_path / "pyproject.toml").as_posix()
    assert config.selected(RULES) == {"excessive-heartbeat-timeout"}
    assert config.ignored_at(f"{config.root}/tests/a/b.py", RULES) == {"excessive-heartbeat-timeout"}
    assert config.ignored_at(f"{config.root}/src/b.py", RULES) == frozenset()
    assert config.ignored_at("/elsewhere/tests/b.py", RULES) == frozenset()
    assert pickle.loads(pickle.dumps(config)) == config
    assert hash(config) == hash(pickle.loads(pickle.dumps(config)))


def test_defaults(tmp_path: Path) -> None:
    config = load(tmp_path, "[project]\nname = 'x'\n")
    assert (config.level, config.fail_level) == (Severity.INFO, Severity.REFACTOR)
    assert config.options == {"heartbeat-limit": 7200, "ratio": 0.5, "strict": False, "launchers": ("torchrun",)}
    assert config.option(LIMIT) == 7200
    assert config.select is None
    assert config.selected(RULES) == {"excessive-heartbeat-timeout", "optimizer-not-fused"}


@for_every(
    "text, line, key, words",
    [
        pytest.param("heartbeat-limits = 1", 3, "heartbeat-limits", 'did you mean "heartbeat-limit"', id="unknown-key"),
        pytest.param("colour = 1", 3, "colour", "unknown key", id="unknown-key-without-a-near-one"),
        pytest.param("level = 'info'\nselct = []", 4, "selct", 'did you mean "select"', id="second-key"),
        pytest.param(
            "heartbeat-limit = '2 h'", 3, "heartbeat-limit", 'must be an integer, not "2 h"', id="not-an-integer"
        ),
        pytest.param("heartbeat-limit = true", 3, "heartbeat-limit", "not true", id="bool-is-no-integer"),
        pytest.param("heartbeat-limit = 1.5", 3, "heartbeat-limit", "not 1.5", id="float-is-no-integer"),
        pytest.param("ratio = 'x'", 3, "ratio", "must be a number", id="not-a-number"),
        pytest.param("strict = 1", 3, "strict", "must be true or false", id="integer-is-no-bool"),
        pytest.param("launchers = [1]", 3, "launchers", "must be a list of strings", id="list-of-integers"),
        pytest.param("select = 'ALL'", 3, "select", "must be a list of strings", id="select-is-a-string"),
        pytest.param("select = [\n  'W7201',\n  'W7210',\n]", 5, "select", 'did you mean "W7201"', id="unknown-rule"),
        pytest.param("ignore = ['optimizer-not-fuse']", 3, "ignore", '"optimizer-not-fused"', id="unknown-in-ignore"),
        pytest.param("extend-select = ['99']", 3, "extend-select", 'unknown rule "99"', id="unknown-family"),
        pytest.param("per-file-ignores = []", 3, "per-file-ignores", "must be a table", id="per-file-list"),
        pytest.param(
            "per-file-ignores = {'a.py' = ['nix']}", 3, 'per-file-ignores."a.py"', "unknown rule", id="inline"
        ),
        pytest.param("per-file-ignores = {'!a' = []}", 3, "per-file-ignores.!a", "negated", id="negated-pattern"),
        pytest.param(
            "[tool.ldlm-lint.per-file-ignores]\n'b/*' = 'W72'", 4, "per-file-ignores.b/*", "list", id="sub-table"
        ),
        pytest.param("exclude = ['[z-a]']", 3, "exclude", "is not a gitignore pattern", id="range-the-wrong-way-round"),
        pytest.param("exclude = ['/a', '!']", 3, "exclude", "is not a gitignore pattern", id="bad-pattern"),
        pytest.param("level = 'note'", 3, "level", 'one of error, warning, refactor, info, not "note"', id="level"),
        pytest.param("fail-level = 3", 3, "fail-level", "must be a string", id="fail-level-number"),
        pytest.param("target-torch = 2.4", 3, "target-torch", 'from "2.0" to "2.13", not 2.4', id="torch-float"),
        pytest.param("target-torch = '1.13'", 3, "target-torch", "from", id="torch-too-old"),
        pytest.param("target-torch = '2.14'", 3, "target-torch", "from", id="torch-unknown"),
        pytest.param("required-version = '>=99'", 3, "required-version", "needs ldlm-lint >=99, but this is", id="too-old"),
        pytest.param("required-version = '>9'\nnew-key = 1", 3, "required-version", "needs", id="version-before-keys"),
        pytest.param("required-version = 'new'", 3, "required-version", "not a version specifier", id="no-specifier"),
        pytest.param("required-version = 1", 3, "required-version", "must be a string", id="version-number"),
        pytest.param("level = ", 3, "", "is not valid TOML", id="not-toml"),
    ],
)
def test_mistakes_name_file_line_and_key(tmp_path: Path, text: str, line: int, key: str, words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load(tmp_path, f"\n[tool.ldlm-lint]\n{text}\n")
    error = caught.value
    assert (error.path, error.line, error.key) == ((tmp_path / "pyproject.toml").as_posix(), line, key)
    assert words in error.message
    assert str(error).startswith(f"{error.path}:{line}: ")
    assert "\n" not in str(error)


def test_table_of_another_type(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="must be a table") as caught:
        load(tmp_path, "[tool]\nldlm-lint = 3\n")
    assert caught.value.line == 2


def test_not_utf_8(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="not valid UTF-8") as caught:
        load(tmp_path, b"[tool.ldlm-lint]\n# \xff\n")
    assert caught.value.line == 2


def test_toml_error_at_the_end_of_the_file(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        load(tmp_path, "[tool.ldlm-lint]\nselect = [\n")
    assert caught.value.line in (2, 3)


def test_nearest_file_wins_and_is_the_root_of_patterns(tmp_path: Path) -> None:
    inner = tmp_path / "a"
    (inner / "b").mkdir(parents=True)
    load(tmp_path, "[tool.ldlm-lint]\nlevel = 'error'\n")
    assert load(inner / "b").level is Severity.ERROR
    assert load(inner / "b").root == tmp_path.as_posix()
    (inner / "pyproject.toml").write_text("[tool.other]\n")
    assert load(inner / "b").root == tmp_path.as_posix()
    (inner / "pyproject.toml").write_text("[tool.ldlm-lint]\n")
    assert load(inner / "b").level is Severity.INFO
    assert load(inner / "b").root == inner.as_posix()


def test_isolated_reads_nothing(tmp_path: Path) -> None:
    assert load(tmp_path, "nonsense", isolated=True).path == ""


def test_explicit_file(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("[tool.ldlm-lint]\nlevel = 'error'\n")
    other = tmp_path / "conf" / "lint.toml"
    other.parent.mkdir()
    other.write_text("[tool.ldlm-lint]\nlevel = 'warning'\n")
    config = load(tmp_path, explicit=other)
    assert config.level is Severity.WARNING
    assert config.root == tmp_path.as_posix()
    other.write_text("[tool.other]\n")
    with pytest.raises(ConfigError, match=r"has no \[tool.ldlm-lint\] table"):
        load(tmp_path, explicit=other)
    with pytest.raises(ConfigError, match="cannot be read: No such file"):
        load(tmp_path, explicit=tmp_path / "missing.toml")


def test_overrides_come_last(tmp_path: Path) -> None:
    text = "[tool.ldlm-lint]\nselect = ['W7201']\nlevel = 'error'\n"
    layer = Layer(select=("optimizer-not-fused",))
    config = load(tmp_path, text, overrides=Overrides(layer, Severity.INFO, Severity.ERROR))
    assert (config.level, config.fail_level) == (Severity.INFO, Severity.ERROR)
    assert config.selected(RULES) == {"optimizer-not-fused"}
    with pytest.raises(SelectorError, match='unknown rule "nix"'):
        load(tmp_path, text, overrides=Overrides(Layer(ignore=("nix",))))


def test_project_root(tmp_path: Path) -> None:
    deep = tmp_path / "a" / "b"
    deep.mkdir(parents=True)
    (tmp_path / ".git").mkdir()
    (deep / "x.py").write_text("")
    assert project_root(deep / "x.py") == tmp_path
    (tmp_path / "a" / "pyproject.toml").write_text("")
    assert project_root(deep) == tmp_path / "a"


def test_common_directory(tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    assert common_directory([tmp_path / "a" / "b", tmp_path / "a" / "x.py"]) == tmp_path / "a"
    assert common_directory([tmp_path / "a" / "x.py"]) == tmp_path / "a"


@for_every(
    "text, line",
    [
        ("[tool.ldlm-lint]\nlevel = 1\n", 2),
        ("[tool]\nldlm-lint.level = 1\n", 2),
        ("tool.ldlm-lint.level = 1\n", 1),
        ('[tool."ldlm-lint"]\n"level" = 1\n', 2),
        ("[tool.other]\nlevel = 1\n[ tool . ldlm-lint ] # x\n\nlevel=1\n", 5),
        ("[tool]\nldlm-lint = {level = 1}\n", 2),
        ("[tool.ldlm-lint]\n[[tool.x]]\nlevel = 1\n", 1),
    ],
)
def test_line_of_a_key(text: str, line: int) -> None:
    assert line_of(text, ("tool", "ldlm-lint", "level")) == line
