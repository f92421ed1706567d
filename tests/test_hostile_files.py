"""Files made to cost time, memory or the stack: each ends soon, with an answer, and the files beside it are linted."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from test_bad_input import BEAT, WRAP

from ldlm_lint import budget, linting
from ldlm_lint.cli import main
from ldlm_lint.source import Kind

SECONDS = 5.0
"""Processor seconds, for what takes a tenth of one here and took minutes, or for ever, before it was mended."""
NINES = "9" * 5000
LAUNCH = "torchrun --nproc_per_node $N train.py --num_workers 0\n"
LOADER = "from torch.utils.data import DataLoader\nfrom datetime import timedelta\nimport torch.distributed as dist\nimport os\n"

HOSTILE = {
    "parentheses": ("a.py", WRAP + "x = " + "(" * 20_000 + ")" * 20_000 + "\n"),
    "sums": ("a.py", WRAP + "x = " + "1 + " * 20_000 + "1\n"),
    "attributes": ("a.py", WRAP + "x = y" + ".a" * 10_000 + "\n"),
    "calls": ("a.py", WRAP + "x = y" + ".a()" * 5_000 + "\n"),
    "elifs": ("a.py", WRAP + "if a:\n    pass\n" + "elif b:\n    loss.backward()\n" * 5_000),
    "a name bound to itself": (
        "a.py",
        WRAP + "class M:\n  def __init__(self):\n" + "    self.a = B()\n" * 2_000 + "  def f(self, x):\n" + "    x = self.a(x)\n" * 2_000,
    ),
    "sums of losses": ("a.py", WRAP + "for x in xs:\n    loss = m(x)\n    loss.backward()\n" + "    c += loss\n" * 2_000),
    "loops of a script": ("a.sh", BEAT + "for i in 1 2; do\npython train.py --num_workers 0 --seed $i\ndone\n" * 1_500),
    "decorators": ("a.py", WRAP + "@a\n" * 10_000 + "def f():\n    pass\n"),
    "f-strings": ("a.py", WRAP + "x = " + "f'{" * 200 + "}'" * 200 + "\n"),
    "brackets left open": ("a.py", WRAP + "f(\n" * 20_000),
    "big integer": ("a.py", WRAP + f"x = 0x{'f' * 9000}\ny = {NINES}\n"),
    "worker numbers": ("a.py", LOADER + f"DataLoader(d, num_workers=0x{'f' * 9000})\nDataLoader(d, num_workers=int('{NINES}'))\n"),
    "timeouts": ("a.py", LOADER + f"os.environ['NCCL_TIMEOUT'] = '{NINES}'\ndist.init_process_group('nccl', timeout=timedelta(days=1e308))\n"),
    "huge powers": ("a.py", LOADER + "n = 10 ** 10 ** 10 ** 10\nDataLoader(d, num_workers=n << n)\ns = 'a' * n\n"),
    "superscript digits": ("a.py", LOADER + "dist.init_process_group('nccl', timeout='\u00b2')\nDataLoader(d, num_workers='\u00b2')\n"),
    "doubled variable": ("a.sh", BEAT + "N=$N$N\n" * 1_000 + LAUNCH),
    "squared variable": ("a.sh", BEAT + "N=$((N*N))\n" * 1_000 + LAUNCH),
    "substitutions": ("a.sh", BEAT + "x=" + "$( " * 2_000 + ")" * 2_000 + "\n" + LAUNCH),
    "defaults": ("a.sh", BEAT + "N=" + "${A:-" * 2_000 + "}" * 2_000 + "\n" + LAUNCH),
    "quoted substitutions": ("a.sh", BEAT + "N=" + '"$(' * 90 + "a" + ')"' * 90 + "\n" + LAUNCH.replace("$N", '"$(' * 20 + "a" + ')"' * 20)),
    "long numbers": ("a.sh", f"export NCCL_TIMEOUT={NINES}\n{BEAT[:-1]}{NINES}\ntorchrun --nproc_per_node={NINES} t.py --num_workers {NINES}\n"),
    "open quotes": ("a.sh", BEAT + "'a\n" * 2_000 + LAUNCH),
    "open heredocs": ("a.sh", BEAT + "cat <<EOF\n" * 2_000 + LAUNCH),
    "closed and never opened": ("a.sh", ")" * 100_000 + "\n" + BEAT + "echo a b --c d\n"),
    "pipes": ("a.sh", BEAT + "a|" * 100_000 + "\n" + LAUNCH),
    "pipes in lines": ("a.sh", BEAT + "a |\n# of\n\n" * 20_000 + "b\n" + LAUNCH),
    "opened and never closed": ("a.sh", BEAT + 'echo "$(' * 20_000 + "\n" + LAUNCH),
    "decorators of nothing": ("a.py", WRAP + "@a\n" * 50_000),
    "a long word": ("launch.json", '{"env": {"NCCL_DEBUG": "INFO"}, "name": "' + "\u00e9" * 200_000 + '"}'),
    "flow": ("a.yaml", "num_workers: 0\na: " + "[" * 20_000),
    "flow maps": ("a.yaml", "num_workers: 0\na: " + "{{ " * 20_000),
    "anchors": ("a.yaml", "num_workers: 0\na: &a [x]\n" + "".join(f"{b}: &{b} [{','.join([f'*{a}'] * 9)}]\n" for a, b in zip("abcdefghij", "bcdefghijk", strict=True))),
    "merges": ("a.yaml", "num_workers: 0\nm0: &m0 {x: 1}\n" + "".join(f"m{n + 1}: &m{n + 1} {{<<: *m{n}}}\n" for n in range(3_000))),
    "tags": ("a.yaml", "num_workers: !!python/object/apply:os.system ['touch pwned']\n"),
    "open templates": ("a.yaml", "num_workers: 0\na: " + "{% " * 20_000),
    "arrays": ("a.json", '{"num_workers": 0, "zero_optimization": ' + "[" * 50_000),
    "dotted key": ("a.toml", "num_workers = 0\n" + "a." * 20_000 + "a = 1\n"),
    "dotted table": ("a.toml", "num_workers = 0\n[" + "a." * 20_000 + "a]\n"),
    "nested arrays": ("a.toml", "num_workers = 0\na = " + "[" * 20_000),
    "long variable": (".env", f"TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC={NINES}\nNCCL_TIMEOUT={NINES}\n"),
}


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with one script that has a finding."""
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "beside.sh").write_text(BEAT)
    monkeypatch.chdir(tmp_path)
    return tmp_path


Lint = Callable[[], tuple[int, list[dict[str, object]]]]


@pytest.fixture
def lint(capsys: pytest.CaptureFixture[str]) -> Lint:
    """Every rule over the project: the exit code and the findings."""

    def call() -> tuple[int, list[dict[str, object]]]:
        code = main(["check", "--no-cache", "--select", "ALL", "--format", "json", "."])
        return code, json.loads(capsys.readouterr().out)["findings"]

    return call


@pytest.mark.parametrize("name", HOSTILE)
def test_a_file_that_would_cost_too_much(name: str, project: Path, lint: Lint) -> None:
    file, text = HOSTILE[name]
    (project / file).write_bytes(text.encode())
    began = time.process_time()
    code, findings = lint()
    assert time.process_time() - began < SECONDS
    assert code in (1, 3)
    assert not [one["message"] for one in findings if one["rule"] == "ldlm-internal-error"]
    assert any(one["path"] == "beside.sh" for one in findings)
    assert not (project / "pwned").exists()


@pytest.mark.parametrize("file", ["pyproject.toml", "requirements.txt", "poetry.lock", "Pipfile", "Pipfile.lock", "environment.yml"])
@pytest.mark.parametrize("text", ["a." * 20_000 + "a = 1\n", "a = " + "[" * 20_000, "torch==" + NINES, '[tool.poetry.dependencies]\ntorch = "^2x"\n'])
def test_what_names_the_torch_version(file: str, text: str, project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / file).write_text(text)
    began = time.process_time()
    code = main(["check", "--no-cache", "."])
    assert time.process_time() - began < SECONDS
    # A configuration of ours that is no TOML is wrong usage, with the place.
    assert code == 1 or (code == 2 and "pyproject.toml:" in capsys.readouterr().err)


def busy(*_: object) -> Iterator[None]:
    """A rule that never ends, and takes no exception for its own but swallows all it may."""
    while True:
        try:
            sum(range(1000))
        except Exception:
            continue


@pytest.fixture
def little_time(monkeypatch: pytest.MonkeyPatch) -> None:
    if not budget.available():
        pytest.skip("this system or thread has no timer of processor time")
    monkeypatch.setattr(budget, "FILE_SECONDS", 0.3)
    monkeypatch.setattr(linting, "FILE_SECONDS", 0.3)


@pytest.mark.usefixtures("little_time")
def test_a_file_over_its_budget_is_one_finding_and_the_others_go_on(
    project: Path, lint: Lint, monkeypatch: pytest.MonkeyPatch
) -> None:
    genuine = linting._lint
    monkeypatch.setattr(linting, "_lint", lambda source, *rest: busy() or next(busy()) if source.path.endswith("slow.py") else genuine(source, *rest))
    (project / "slow.py").write_text("import os\nos.environ['CUDA_LAUNCH_BLOCKING'] = '1'\n")
    (project / "zz.py").write_text(WRAP)
    code, findings = lint()
    assert code == 3
    assert [one["message"] for one in findings if one["path"] == "slow.py"] == ["cannot be read: gave up after 0.3 s of processor time"]
    assert any(one["path"] == "zz.py" for one in findings) and any(one["path"] == "beside.sh" for one in findings)


@pytest.mark.usefixtures("little_time")
def test_a_question_over_its_budget_names_the_rule(project: Path, lint: Lint, monkeypatch: pytest.MonkeyPatch) -> None:
    from ldlm_lint import project as package

    monkeypatch.setattr(package, "decide", lambda *_: next(busy()))
    (project / "asks.py").write_text("import os\nos.environ['CUDA_LAUNCH_BLOCKING'] = '1'\n")
    code, findings = lint()
    assert code == 3
    told = [str(one["message"]) for one in findings if one["rule"] == "ldlm-internal-error"]
    assert any("debug-environment-left-on: gave up after" in one for one in told)


@pytest.mark.usefixtures("little_time")
def test_a_budget_ends_with_its_work() -> None:
    with pytest.raises(budget.OverBudgetError, match=r"gave up after 0\.05 s"), budget.limited(0.05):
        next(busy())
    with budget.limited(0.05), budget.limited(10):
        assert budget.available()
    deadline = time.process_time() + 0.2
    while time.process_time() < deadline:
        pass


def test_each_question_that_is_given_up_leaves_less_for_those_that_follow() -> None:
    clock = budget.Clock()
    for share in (0.5, 0.25):
        with pytest.raises(budget.OverBudgetError), clock.running(0):
            raise budget.OverBudgetError
        assert clock.share == share


@pytest.mark.parametrize("error", [ValueError, RecursionError, MemoryError])
def test_a_rule_that_raises_is_one_finding_and_the_others_go_on(
    error: type[Exception], project: Path, lint: Lint, monkeypatch: pytest.MonkeyPatch
) -> None:
    from ldlm_lint.checkers.configurations import own_keys
    from ldlm_lint.shell import launch_batch

    def fails(*_: object) -> Iterator[None]:
        raise error("on purpose")
        yield

    monkeypatch.setattr(launch_batch, "drifting", fails)
    monkeypatch.setattr(own_keys, "findings", fails)
    (project / "train.yaml").write_text("env:\n  TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC: '12000000'\nnum_workers: 0\n")
    code, findings = lint()
    assert code == 3
    failed = [str(one["message"]) for one in findings if one["rule"] == "ldlm-internal-error"]
    assert sorted(failed) == sorted({*failed}) and all("on purpose" in one for one in failed)
    assert {"beside.sh", "train.yaml"} == {one["path"] for one in findings if one["rule"] == "ldlm-internal-error"}
    assert any(one["path"] == "beside.sh" and one["rule"] == "excessive-heartbeat-timeout" for one in findings)


def test_a_result_of_too_little_time_or_memory_is_not_remembered(tmp_path: Path) -> None:
    from ldlm_lint.batch import may_be_kept
    from ldlm_lint.config import Config
    from ldlm_lint.source import MAX_BYTES

    path = tmp_path / "large.py"
    path.write_bytes(b"#" * (MAX_BYTES + 1))
    assert not may_be_kept(linting.lint_file(path, Kind.PYTHON, Config(), {}, {}))
