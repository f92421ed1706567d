"""What no training step comes to is not looked at closely; nothing that would be found is lost by it."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from ldlm_lint import batch, engine, linting
from ldlm_lint.budget import OverBudgetError, apart, available, limited
from ldlm_lint.config import Config
from ldlm_lint.linting import lint_file
from ldlm_lint.model import Report, RuledOut
from ldlm_lint.project import outlook
from ldlm_lint.projects import Projects
from ldlm_lint.shapes.prospects import ANYWHERE
from ldlm_lint.source import Kind, Source

FIXTURES = Path(__file__).parent / "fixtures"
RULE = "evaluation-with-gradients"
METRICS = "import torch\n\n\ndef norm(model, data):\n    for batch in data:\n        print(model(batch))\n"
STEP = """\
import torch
from torch.nn.parallel import DistributedDataParallel
from metrics import norm


def train(model, optimizer, data):
    torch.distributed.init_process_group("nccl")
    model = DistributedDataParallel(model.cuda())
    for step, batch in enumerate(data):
        loss = model(batch.cuda())
        loss.backward()
        optimizer.step()


if __name__ == "__main__":
    train(torch.nn.Linear(1, 1), None, [])
"""
READS = STEP
CALLS = STEP + "\n\ndef test(model, data):\n    model.eval()\n    norm(model, data)\n"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    for name, text in {"pyproject.toml": "", "metrics.py": METRICS, "train.py": READS}.items():
        (tmp_path / name).write_text(text)
    return tmp_path


def check(*paths: Path, jobs: int = 1) -> Report:
    return engine.run(paths, Config.load(paths[0]), base=paths[0], jobs=jobs)


def toggled(report: Report) -> list[str]:
    return [Path(one.span.path).name for one in report.findings if one.rule == RULE]


def linted(project: Path) -> tuple[RuledOut, ...]:
    path = project / "metrics.py"
    config = Config.load(project)
    projects = Projects([path.as_posix()], config, {})
    return lint_file(path, Kind.PYTHON, config, {}, {}, projects.may_hold).ruled_out


def test_a_file_whose_functions_no_step_calls_is_left(project: Path) -> None:
    assert linted(project) == ((RULE, ("mode norm",)),)
    assert not toggled(check(project))


def test_functions_that_no_step_calls_are_named_and_left_where_only_the_tree_tells_them(project: Path) -> None:
    (project / "metrics.py").write_text(METRICS + "# \f\n")
    assert linted(project) == ((RULE, ("mode norm",)),)
    (project / "train.py").write_text(CALLS)
    assert linted(project) == ()
    assert toggled(check(project)) == ["metrics.py"]


def test_a_function_that_a_step_calls_in_another_file_is_looked_at(project: Path) -> None:
    (project / "train.py").write_text(CALLS)
    assert linted(project) == ()
    assert toggled(check(project)) == ["metrics.py"]


@pytest.mark.parametrize("name", ["Meter", "meter"])
@pytest.mark.parametrize("call", ["metrics.{}.norm(model, step)", 'getattr(metrics, "{}").norm(model, step)'])
def test_a_method_that_a_step_takes_from_a_class_of_a_module_is_looked_at(name: str, call: str, project: Path) -> None:
    (project / "metrics.py").write_text(f"class {name}:\n    @staticmethod\n    def norm(model, step):\n        for p in model.parameters():\n            p.requires_grad_(step > 3)\n")
    text = CALLS.replace("from metrics import norm", "import metrics").replace("norm(model, data)", call.format(name).replace("step", "data"))
    (project / "train.py").write_text(text)
    for number in range(4):
        # So many methods of that name that it alone tells nothing.
        (project / f"other_{number}.py").write_text("class A:\n    def norm(self): ...\n")
    (project / "train.py").write_text("".join(f"import other_{number}\n" for number in range(4)) + text)
    assert linted(project) == ()


@pytest.mark.parametrize("error", [OverBudgetError, RecursionError, ValueError])
def test_without_an_answer_everything_is_looked_at(
    error: type[Exception], project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def never(*_: object) -> bool:
        raise error

    monkeypatch.setattr(outlook, "may_hold", never)
    assert linted(project) == ()


def test_a_condition_that_fails_is_named_and_the_other_files_go_on(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (project / "train.py").write_text(CALLS.replace("import torch\n", "import torch\ntorch.autograd.set_detect_anomaly(True)\n"))
    fails = linting._possible

    def possible(at_risk: frozenset[str], source: Source) -> frozenset[str]:
        if source.path.endswith("metrics.py"):
            raise ValueError("odd shape")
        return fails(at_risk, source)

    monkeypatch.setattr(linting, "_possible", possible)
    found = {(Path(one.span.path).name, one.rule) for one in check(project).findings}
    assert ("metrics.py", "ldlm-internal-error") in found
    assert ("train.py", "anomaly-detection-left-on") in found


@pytest.mark.parametrize(
    "text",
    [
        METRICS,
        "class Net(torch.nn.Module):\n    def forward(self, x):\n        self.requires_grad_(bool(x.sum() > 3))\n        return x\n",
        "def outer(model):\n    def norm():\n        model.requires_grad_(model.step > 3)\n    return norm\n",
        "if True:\n    def norm(model, step):\n        model.requires_grad_(step > 3)\n",
    ],
)
@pytest.mark.parametrize("train", [READS, CALLS, CALLS.replace("from metrics", "from .metrics"), ""])
def test_the_same_is_found_as_without_asking(
    project: Path, text: str, train: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (project / "metrics.py").write_text("import torch\n\n\n" + text)
    (project / "train.py").write_text(train)
    asked = toggled(check(project))
    monkeypatch.setattr(Projects, "may_hold", lambda *_: True)
    assert asked == toggled(check(project))


@pytest.mark.parametrize("folder", sorted(one for one in (FIXTURES / RULE).iterdir() if one.is_dir()), ids=lambda one: one.name)
def test_fixtures_say_the_same_as_without_asking(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = check(folder).findings
    monkeypatch.setattr(Projects, "may_hold", lambda *_: True)
    assert asked == check(folder).findings


def test_other_processes_ask_too(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Sequence[str]] = []
    plain = Projects.may_hold
    monkeypatch.setattr(Projects, "may_hold", lambda self, *asked: seen.append(asked[2]) or plain(self, *asked))
    assert check(project, jobs=2).findings == check(project).findings
    assert ANYWHERE in seen


@pytest.mark.parametrize("straight, asks", [(1, True), (2, False)])
def test_for_few_files_the_project_is_not_asked_ahead(
    straight: int, asks: bool, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (project / "train.py").write_text(CALLS)
    expected = check(project).findings
    seen: list[object] = []
    monkeypatch.setattr(batch, "MOST_UNASKED", straight)
    plain = Projects.may_hold
    monkeypatch.setattr(Projects, "may_hold", lambda self, *asked: seen.append(asked) or plain(self, *asked))
    assert check(project).findings == expected
    assert bool(seen) is asks
    assert toggled(check(project)) == ["metrics.py"]


@pytest.mark.skipif(not available(), reason="time of a process is not counted here")
def test_the_time_of_a_file_stands_still_while_the_project_is_asked() -> None:
    with limited(0.2):
        with apart():
            spin(0.4)
        spin(0.02)
    with pytest.raises(OverBudgetError), limited(0.2):
        with apart():
            spin(0.1)
        spin(0.6)


def spin(seconds: float) -> None:
    end = time.process_time() + seconds
    while time.process_time() < end:
        pass
