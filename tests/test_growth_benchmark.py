"""The growth benchmark: its repository is the same each time, parses, trains in the linter's eyes, and grows evenly."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parent.parent / "benchmarks"
posix_only = pytest.mark.skipif(sys.platform == "win32", reason="Windows does not account for child processes")
FAKE_LINTER = """
import json, sys
from pathlib import Path
folder = Path(sys.argv[-1])
held = b"x" * (2**20 * sum(1 for _ in folder.rglob("*")))
print(json.dumps({"summary": {"findings": sum(1 for _ in folder.rglob("train_*.py"))}}))
"""


@pytest.fixture
def synthetic(monkeypatch: pytest.MonkeyPatch) -> object:
    """The module that writes the repository."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    import synthetic

    return synthetic


def test_the_repository_is_the_same_each_time(synthetic: object, tmp_path: Path) -> None:
    written = [synthetic.write(tmp_path / name, 3) for name in ("a", "b")]
    first, second = (sorted(path for path in (tmp_path / name).rglob("*") if path.is_file()) for name in ("a", "b"))
    assert written == [len(first), len(second)]
    assert [path.read_bytes() for path in first] == [path.read_bytes() for path in second]
    for path in first:
        if path.suffix == ".py":
            ast.parse(path.read_text(encoding="utf-8"))


def test_a_larger_repository_holds_the_smaller_one(synthetic: object) -> None:
    small, large = dict(synthetic.files(2)), dict(synthetic.files(4))
    assert small.keys() < large.keys()
    changed = {name for name, text in small.items() if large[name] != text}
    assert changed == {"zoo/models/__init__.py", "zoo/data/__init__.py"}
    assert "import normalized_0" in large["zoo/layers/layer_1.py"]


def test_each_experiment_has_findings(synthetic: object, tmp_path: Path) -> None:
    synthetic.write(tmp_path, 3)
    command = [sys.executable, "-m", "ldlm_lint", "check", "--format", "json", "--no-cache", "."]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    rules = Counter(finding["rule"] for finding in json.loads(done.stdout)["findings"])
    for rule in ("host-sync-in-training-loop", "unbounded-checkpoints", "debug-environment-left-on"):
        assert rules[rule] >= 3
    assert rules["unparsable-file"] == 0


def growth(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the benchmark to its end."""
    command = [sys.executable, str(BENCHMARKS / "growth.py"), *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


@posix_only
def test_prints_a_row_for_each_size(tmp_path: Path) -> None:
    linter = tmp_path / "linter.py"
    linter.write_text(FAKE_LINTER, encoding="utf-8")
    arguments = ("--units", "2", "--runs", "1", "--command", f"{sys.executable} {linter}")

    done = growth(*arguments, "--sizes", "1,2,8", "--json")

    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert [(row["size"], row["findings"]) for row in report["rows"]] == [(1, 2), (2, 4), (8, 16)]
    assert report["rows"][0]["per_doubling"] is None
    # Its memory is that of one byte string for all files: linear, and two doublings lie between the last sizes.
    assert 1.2 < report["rows"][2]["per_doubling"][1] < 2.5
    table = growth(*arguments, "--sizes", "1,2").stdout.splitlines()
    assert len(table) == 4
    assert len({len(line) for line in table}) == 1


@posix_only
@pytest.mark.parametrize("sizes", ["2,1", "0", "one"])
def test_sizes_rise(sizes: str) -> None:
    assert growth("--sizes", sizes).returncode == 2
