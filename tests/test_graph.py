"""``ldlm-lint graph``: the tree to the character, the JSON against its published schema, exit codes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from calling import Enter, Run, calling
from collected import for_every
from jsonschema import Draft202012Validator

from ldlm_lint.graph import is_spoken_of

SCHEMA = json.loads((Path(__file__).parents[1] / "docs" / "graph.schema.json").read_text(encoding="utf-8"))
FILES = {
    "pyproject.toml": "",
    "train.py": 'import hydra\n\n\n@hydra.main(config_path="configs", config_name="base", version_base="1.3")\ndef main(cfg):\n    pass\n',
    "configs/base.yaml": "data:\n  num_workers: 4\n  root: /data\nsave_steps: 100\n",
    "scripts/train.sh": """\
#!/bin/bash
export TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC=600
WORKERS="${WORKERS:-16}"
srun -N 2 torchrun --nproc_per_node 8 \\
    train.py data.num_workers="$WORKERS" "$@"
python prepare.py
""",
    "scripts/all.sh": "bash scripts/train.sh save_steps=5\n",
}
TREE = """\
scripts/train.sh
├── line 4: srun torchrun (processes 8, nodes 2)
│   ├── called from scripts/all.sh:1
│   ├── runs train.py
│   ├── reads configs/base.yaml  hydra.main
│   ├── data.num_workers = 16  scripts/train.sh:3
│   │   └── instead of 4  configs/base.yaml:2
│   ├── save_steps = 5  scripts/all.sh:1
│   │   └── instead of 100  configs/base.yaml:4
│   └── TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC = 600  scripts/train.sh:2
└── line 6: python
    ├── called from scripts/all.sh:1
    ├── runs prepare.py (not found in this project)
    └── TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC = 600  scripts/train.sh:2

2 launches: 1 with a program of this project, 1 with configuration files.
"""


@pytest.fixture
def project(enter: Enter) -> Path:
    return enter(FILES)


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    return calling(capsys, "graph")


def test_the_tree(project: Path, run: Run) -> None:
    assert run() == (0, TREE, "")
    assert run("scripts") == (0, TREE, "")
    assert run(str(project / "scripts" / "train.sh")) == (0, TREE, "")


def test_json_is_what_the_schema_says(project: Path, run: Run) -> None:
    Draft202012Validator.check_schema(SCHEMA)
    code, out, _ = run("--format", "json")
    document = json.loads(out)
    Draft202012Validator(SCHEMA).validate(document)
    assert (code, document["schema"]) == (0, "ldlm-lint-graph/1")
    assert document["summary"] == {"scripts": 2, "launches": 2, "entries": 1, "configured": 1}
    launch = document["launches"][0]
    assert launch["entry"] == {"text": "train.py", "path": "train.py"}
    assert launch["values"][0] == {
        "key": "data.num_workers",
        "values": ["16"],
        "source": "argument",
        "path": "scripts/train.sh",
        "line": 3,
        "shadows": [{"values": ["4"], "source": "config", "path": "configs/base.yaml", "line": 2}],
    }


def test_every_field_of_the_schema_is_written(project: Path, run: Run) -> None:
    document = json.loads(run("--format", "json")[1])
    launch = document["launches"][0]
    definitions = SCHEMA["$defs"]
    for name, made in (("launch", launch), ("config", launch["configs"][0]), ("value", launch["values"][0])):
        assert set(made) == set(definitions[name]["properties"]) == set(definitions[name]["required"])


def test_where_a_script_calls_nothing_its_own_arguments_are_unknown(project: Path, run: Run) -> None:
    (project / "scripts" / "all.sh").unlink()
    _, out, _ = run()
    assert "may get more arguments, which are unknown" in out
    assert json.loads(run("--format", "json")[1])["launches"][0]["complete"] is False


def test_no_launches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Run) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.sh").write_text("echo hello\n")
    assert run() == (0, "No launches found (1 script read).\n", "")
    document = json.loads(run("--format", "json")[1])
    Draft202012Validator(SCHEMA).validate(document)
    assert document["launches"] == []


def test_a_path_that_does_not_exist(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Run) -> None:
    monkeypatch.chdir(tmp_path)
    code, out, err = run("missing.sh")
    assert (code, out) == (3, "No launches found (0 scripts read).\n")
    assert err.startswith("error: missing.sh: ")
    Draft202012Validator(SCHEMA).validate(json.loads(run("--format", "json", "missing.sh")[1]))


def test_wrong_usage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Run) -> None:
    monkeypatch.chdir(tmp_path)
    assert run("--format", "xml")[0] == 2
    (tmp_path / "pyproject.toml").write_text("[tool.ldlm-lint]\nunknown = 1\n")
    (tmp_path / "a.sh").write_text("echo hello\n")
    assert run()[0] == 2
    assert run("--isolated")[0] == 0


def test_help_shows_an_example(run: Run) -> None:
    code, out, _ = run("--help")
    assert code == 0
    assert "  ldlm-lint graph scripts/train.sh" in out


def test_control_characters_do_not_reach_the_terminal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Run) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.sh").write_bytes(b"python 'tr\x1b[31main.py' --num_workers '\x1b]0;x\x07'\n")
    _, out, _ = run()
    assert "\x1b" not in out and "\x07" not in out


@for_every(
    ("name", "expected"),
    [
        ("num_workers", True),
        ("dataloader-num-workers", True),
        ("per_device_train_batch_size", True),
        ("gradient_accumulation_steps", True),
        ("ddp_timeout", True),
        ("save_total_limit", True),
        ("use_fused", True),
        ("learning_rate", False),
        ("hidden_size", False),
        ("seed", False),
    ],
)
def test_keys_that_rules_speak_of(name: str, expected: bool) -> None:
    assert is_spoken_of(name) is expected
