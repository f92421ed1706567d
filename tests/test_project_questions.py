"""What findings ask of the rest of the project; unknown is no finding."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from collected import for_every
from snippets import ROOT, ask, context

import ldlm_lint
from ldlm_lint.model import Claim, Finding, Span
from ldlm_lint.project import QUESTIONS
from ldlm_lint.project.configured import TOPICS
from ldlm_lint.project.questions import decide

TRAIN = "import torch\nfor x in y:\n    loss.backward()\n"


@for_every(
    "code, unread",
    [
        pytest.param("x = 1", True, id="not-mentioned"),
        pytest.param("os.environ['NCCL_TIMEOUT'] = '1'", True, id="set"),
        pytest.param("os.environ['NCCL_TIMEOUT']", False, id="item"),
        pytest.param("os.environ.get('NCCL_TIMEOUT', 1)", False, id="get"),
        pytest.param("int(os.getenv('NCCL_TIMEOUT'))", False, id="getenv"),
        pytest.param("if 'NCCL_TIMEOUT' in os.environ: ...", False, id="in"),
        pytest.param("os.getenv('NCCL_TIMEOUT_MS')", True, id="longer-name"),
    ],
)
def test_variable_that_the_project_reads(code: str, unread: bool) -> None:
    files = {"scripts/train.sh": "", "pkg/launch.py": f"import os\n{code}\n"}
    assert ask("environment-variable-unread", files, "NCCL_TIMEOUT").holds is unread


SAVE = "import torch\ndef save(model, step):\n    torch.save(model, f'step{step}.pt')\n"
CALL = "from helper import save\nfor step in x:\n    loss.backward()\n    save(m, step)\n"


@for_every(
    "files, unbounded",
    [
        pytest.param({}, True, id="nothing"),
        pytest.param({"other.py": "import os\nos.remove(checkpoint)"}, True, id="in-a-file-nobody-imports"),
        pytest.param({"train.py": CALL + "import os\nos.remove(checkpoints[0])"}, False, id="in-the-training-file"),
        pytest.param({"train.py": CALL + "import keep", "keep.py": "import os\nos.remove(ckpt)"}, False, id="imported"),
        pytest.param(
            {"helper.py": "from keep import prune\n" + SAVE, "keep.py": "def prune(ckpt): ckpt.unlink()"},
            False,
            id="by-the-helper",
        ),
        pytest.param({"train.py": CALL + "ckpt_lock.unlink()"}, True, id="lock-file"),
        pytest.param({"train.py": CALL + "# os.remove(checkpoint)"}, True, id="comment"),
        pytest.param({"train.py": CALL + "rotate_checkpoints(3)"}, False, id="rotation-by-name"),
    ],
)
def test_who_prunes_checkpoints(files: dict[str, str], unbounded: bool) -> None:
    project = {"helper.py": SAVE, "train.py": CALL} | files
    about = context(project).project
    assert about.any_skim(about.around(f"{ROOT}/{next(iter(project))}"), "prunes") is not unbounded


MODEL = "import torch.nn as nn\nclass Net(nn.Module): ...\n"


@pytest.mark.parametrize(
    "train, expected",
    [
        pytest.param("import model\nnet = model.Net()\nloss.backward()", True, id="trained"),
        pytest.param("import model\nnet = model.Net()", False, id="not-trained"),
        pytest.param("import model\nloss.backward()", False, id="not-built"),
        pytest.param("net = Net()\nloss.backward()", False, id="not-imported"),
    ],
)
def test_model_trains(train: str, expected: bool) -> None:
    trainings = [context({"model.py": MODEL, path: train}).view.trainings for path in ("train.py", "tests/train.py")]
    assert [one.train_model(f"{ROOT}/model.py", "Net") for one in trainings] == [expected, False]


def test_file_trains() -> None:
    files = {"train.py": TRAIN, "tests/train.py": TRAIN, "other.py": "x = 1"}
    assert [one for one in files if context(files).view.trainings.train_in(f"{ROOT}/{one}")] == ["train.py"]


@pytest.mark.parametrize(
    "before, related", [pytest.param("", 0, id="at-the-finding"), pytest.param("x = 1\n", 1, id="elsewhere")]
)
def test_the_loop_is_not_shown_twice(before: str, related: int) -> None:
    loop = "while y:\n    for b in iter(loader): step(b).backward()\n"
    code = f"{before}{loop}from torch.utils.data import DataLoader\nloader = DataLoader(x)\n"
    at = Span(f"{ROOT}/train.py", 13, 20)
    asked = Finding("some-rule", "W7101", at)
    position = f"{code.count(chr(10))}:9"
    verdict = QUESTIONS["loader-feeds-training"](context({"train.py": code}), asked, position)
    assert verdict.holds
    assert len(verdict.related) == related


def test_belongs_to_training() -> None:
    training = {"run.py": "import optim, engine", "engine.py": TRAIN}
    assert ask("belongs-to-training", {"optim.py": ""} | training).holds
    assert not ask("belongs-to-training", {"optim.py": ""} | training | {"run.py": "import engine"}).holds
    assert not ask("belongs-to-training", {"optim.py": "", "run.py": "import optim"}).holds
    assert not ask("belongs-to-training", {"tests/optim.py": TRAIN}).holds


@pytest.mark.parametrize("line", [1, 2, 3])
def test_line_span_is_the_text_of_the_line(line: int) -> None:
    lines = ["a = 1", "    é = 2  ", "b"]
    text = "\r\n".join(lines)
    span = context({"a.py": text}).line_span(f"{ROOT}/a.py", line)
    assert text.encode()[span.start : span.end].decode() == lines[line - 1].strip()


def finding(*claims: Claim) -> Finding:
    return Finding("some-rule", "W7101", Span(f"{ROOT}/train.py", 0, 0), args=(("kept", 1),), claims=claims)


def test_a_finding_needs_all_its_claims() -> None:
    project = context({"train.py": TRAIN})
    trains, unread = Claim("belongs-to-training"), Claim("environment-variable-unread", "X")
    decided = decide(finding(trains, unread), project)
    assert decided is not None
    assert (decided.claims, decided.args) == ((), (("kept", 1),))
    assert decide(finding(trains, Claim("runs-many-ranks")), project) is None


def test_every_question_says_no_of_a_file_that_is_not_there() -> None:
    # What forbids a finding when it is seen cannot be seen there either.
    absences = {
        "accumulation-is-not-divided",
        "dataset-works-per-item",
        "each-rank-has-its-loader",
        "environment-variable-unread",
        "launches-do-not-shard",
        "no-heartbeat-elsewhere-is-wrong",
        "process-group-takes-timeout",
        "program-needs-no-rank-argument",
        "stands-outside-tests",
        "trainer-setting-is-in-force",
        "trainer-default-is-left",
        "trainer-setting-is-unset",
        "variable-is-read-nowhere-else",
    }
    subjects = {"every-rank-saves": "1:0||"}
    held = {kind for kind in QUESTIONS if ask(kind, {"other.py": ""}, subjects.get(kind, "1:0"), at="gone.py").holds}
    # What only says at which level forbids nothing.
    absences |= {"may-need-newer-python"}
    # Nothing sets a static graph, and no child overrides a setting, where there is nothing.
    absences |= {"some-child-keeps-setting"}
    assert held == absences | {"timeout-may-be-lowered"}


def test_every_claim_in_the_package_has_an_answer():
    package = Path(ldlm_lint.__file__).parent
    asked = {
        kind
        for path in package.rglob("*.py")
        for kind in re.findall(r'\bClaim\(\s*"([a-z-]+)"', path.read_text(encoding="utf-8"))
    }
    # What configurations give is asked about where it goes.
    asked |= {kind for topic in TOPICS.values() for kind in topic.asks}
    assert asked == set(QUESTIONS)
