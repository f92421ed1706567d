"""Scripts that run in one shell: which file `source` names, what it leaves behind, and what rules make of both together."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from collected import for_every

from ldlm_lint import engine
from ldlm_lint.config import Config
from ldlm_lint.model import Applicability, Finding, Report
from ldlm_lint.project import Project
from ldlm_lint.project.sourcing import Sourcing
from ldlm_lint.source import Kind

ROOT = "/project"


def sourcing(files: Mapping[str, str]) -> Sourcing:
    overlay = {f"{ROOT}/{name}": text.encode() for name, text in files.items()}
    return Sourcing(Project(ROOT, (), overlay, None, dict.fromkeys(overlay, Kind.SHELL)))


COMMON = "scripts/common.sh"

PATHS = {
    "source common.sh": True,
    ". common.sh": True,
    "source ./common.sh": True,
    "source scripts/common.sh": True,
    'source "scripts/common.sh" || exit 1': True,
    '. "$(dirname "$0")/common.sh"': True,
    "source $(dirname $0)/common.sh": True,
    'source "$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)/common.sh"': True,
    'source "${BASH_SOURCE%/*}/common.sh"': True,
    'DIR="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"\nsource "${DIR}/common.sh"': True,
    'DIR=$(dirname "$(readlink -f "$0")")\n. $DIR/common.sh': True,
    'ROOT="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"\nsource "$ROOT/scripts/common.sh"': True,
    'ROOT=$(git rev-parse --show-toplevel)\nsource $ROOT/scripts/common.sh': True,
    'DIR="$(dirname "$0")"\nROOT="$DIR/.."\nsource "$ROOT/scripts/common.sh"': True,
    'source "$UNKNOWN/common.sh"': True,
    "source ../../common.sh": False,
    "source /etc/common.sh": False,
    "source ~/.bashrc": False,
    "source venv/bin/activate": False,
    "source $1": False,
    "source run.sh": False,
    "echo source common.sh": False,
    "# source common.sh": False,
    "cat <<EOF\nsource common.sh\nEOF": False,
}


@for_every(("script", "found"), PATHS.items(), ids=PATHS)
def test_which_file_is_sourced(script: str, found: bool) -> None:
    project = sourcing({"scripts/run.sh": script, COMMON: "A=1", "common.yaml": ""})
    expected = [f"{ROOT}/{COMMON}"] if found else []
    assert [one.path for one in project.sourced_by(f"{ROOT}/scripts/run.sh")] == expected
    assert project.sourcers(f"{ROOT}/{COMMON}") == ((f"{ROOT}/scripts/run.sh",) if found else ())


def values(files: Mapping[str, str], name: str = "A") -> list[str] | None:
    project = sourcing(files)
    path = f"{ROOT}/run.sh"
    found = project.script(path).variables.at(name, len(files["run.sh"]))
    return None if found is None else [value.text for value in found]


VISIBLE = {
    "behind": ({"run.sh": ". ./c.sh\n", "c.sh": "A=1\n"}, ["1"]),
    "own": ({"run.sh": ". ./c.sh\nA=2\n", "c.sh": "A=1\n"}, ["2"]),
    "through": ({"run.sh": ". ./c.sh\nA=$B\n", "c.sh": "B=1\n"}, ["1"]),
    "default": ({"run.sh": ". ./c.sh\nA=${A:-2}\n", "c.sh": "A=1\n"}, ["1"]),
    "both-default": ({"run.sh": ". ./c.sh\nA=${A:-2}\n", "c.sh": "A=${A:-1}\n"}, ["1", "2"]),
    "last": ({"run.sh": ". ./c.sh\n. ./d.sh\n", "c.sh": "A=1\n", "d.sh": "A=2\n"}, ["2"]),
    "chain": ({"run.sh": ". ./c.sh\n", "c.sh": ". ./d.sh\n", "d.sh": "A=1\n"}, ["1"]),
    "cycle": ({"run.sh": ". ./c.sh\n", "c.sh": ". ./run.sh\n"}, None),
    "unknown": ({"run.sh": ". ./c.sh\n", "c.sh": "A=$(nproc)\n"}, None),
    "subshell": ({"run.sh": ". ./c.sh\n", "c.sh": "(A=1)\n"}, None),
}


@for_every(("files", "expected"), VISIBLE.values(), ids=VISIBLE)
def test_what_a_sourced_file_leaves(files: Mapping[str, str], expected: list[str] | None) -> None:
    assert values(files) == expected


def test_a_value_is_written_where_the_sourced_file_sets_it() -> None:
    project = sourcing({"run.sh": ". ./c.sh\n", "c.sh": "export A=16\n"})
    (value,) = project.script(f"{ROOT}/run.sh").variables.at("A", 9) or ()
    assert value.home is not None
    assert (value.home.path, value.home.start, value.home.end) == (f"{ROOT}/c.sh", 7, 11)
    assert value.span is None


# Rules over several scripts


def lint(folder: Path, files: Mapping[str, str]) -> Report:
    for name, text in {"pyproject.toml": "", **files}.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    config = Config.load(folder)
    return engine.run([folder], config, base=folder)


def told(report: Report) -> list[tuple[str, str, str]]:
    return [(Path(one.span.path).name, one.rule, report.sources[one.span.path].slice(one.span)) for one in report.findings]


TRAIN = "torchrun --nproc_per_node=8 train.py"


def test_workers_of_a_sourced_file_are_found_once(tmp_path: Path) -> None:
    run = f'. "$(dirname "$0")/common.sh"\n{TRAIN} --num_workers $NUM_WORKERS\n'
    files = {"common.sh": "export NUM_WORKERS=32\n", "a.sh": run, "b.sh": run}
    report = lint(tmp_path, files)
    assert told(report) == [("common.sh", "dataloader-too-many-workers", "NUM_WORKERS=32")]
    (one,) = report.findings
    assert [Path(related.span.path).name for related in one.related] == ["a.sh", "b.sh"]
    assert one.fix is not None


@pytest.mark.parametrize(
    "run",
    [
        "python evaluate.py --num_workers $NUM_WORKERS",
        f"{TRAIN} --cpu_workers $NUM_WORKERS",
        f"NUM_WORKERS=4\n{TRAIN} --num_workers $NUM_WORKERS",
        f"{TRAIN} --num_workers 4",
    ],
)
def test_workers_that_no_training_gets_are_not_found(tmp_path: Path, run: str) -> None:
    assert told(lint(tmp_path, {"common.sh": "NUM_WORKERS=32\n", "run.sh": f". ./common.sh\n{run}\n"})) == []


def test_workers_of_a_file_that_nobody_sources_are_not_found(tmp_path: Path) -> None:
    assert told(lint(tmp_path, {"common.sh": "NUM_WORKERS=32\n", "run.sh": f"{TRAIN} --num_workers $NUM_WORKERS\n"})) == []


def test_a_default_that_a_sourced_file_replaces_is_not_found(tmp_path: Path) -> None:
    run = f". ./common.sh\nNUM_WORKERS=${{NUM_WORKERS:-32}}\n{TRAIN} --num_workers $NUM_WORKERS\n"
    assert told(lint(tmp_path, {"common.sh": "NUM_WORKERS=4\n", "run.sh": run})) == []
    assert told(lint(tmp_path, {"common.sh": "OTHER=4\n", "run.sh": run})) == [
        ("run.sh", "dataloader-too-many-workers", "NUM_WORKERS=${NUM_WORKERS:-32}")
    ]


ACCUMULATION = ". ./common.sh\ntorchrun --nproc_per_node=$NGPU train.py --gradient_accumulation_steps $ACCUM_STEPS\n"


def test_accumulation_is_fixed_only_where_the_number_of_gpus_varies(tmp_path: Path) -> None:
    assert told(lint(tmp_path, {"common.sh": "ACCUM_STEPS=4\nNGPU=8\n", "run.sh": ACCUMULATION})) == []
    found = told(lint(tmp_path, {"common.sh": "ACCUM_STEPS=4\n", "run.sh": ACCUMULATION}))
    assert found == [("common.sh", "gradient-accumulation-fixed", "ACCUM_STEPS=4")]
    run = ACCUMULATION.replace("$ACCUM_STEPS", "4")
    assert told(lint(tmp_path, {"common.sh": "NGPU=8\n", "run.sh": run})) == []


HEARTBEAT = "export TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC=600\n"
MONITORING = "export TORCH_NCCL_ENABLE_MONITORING=0\n"


@pytest.mark.parametrize(("common", "run"), [(HEARTBEAT, MONITORING), (MONITORING, HEARTBEAT)], ids=["up", "down"])
def test_a_heartbeat_that_another_script_makes_inert(tmp_path: Path, common: str, run: str) -> None:
    report = lint(tmp_path, {"common.sh": common, "run.sh": f". ./common.sh\n{run}{TRAIN}\n"})
    found = {rule: name for name, rule, _ in told(report)}
    home = "common.sh" if common == HEARTBEAT else "run.sh"
    assert found["ineffective-heartbeat-timeout"] == home
    one = next(one for one in report.findings if one.rule == "ineffective-heartbeat-timeout")
    assert len(one.related) == 1
    assert "MONITORING=0" in str(dict(one.args)["cause"])


def test_a_heartbeat_beside_a_script_of_its_own_counts(tmp_path: Path) -> None:
    report = lint(tmp_path, {"common.sh": HEARTBEAT, "run.sh": f"{MONITORING}{TRAIN}\n"})
    assert {rule for _, rule, _ in told(report)} == {"nccl-monitoring-disabled"}


def of_rule(report: Report, rule: str) -> list[Finding]:
    return [one for one in report.findings if one.rule == rule]


def test_a_variable_that_the_sourcing_script_reads_is_not_useless(tmp_path: Path) -> None:
    common = "export NCCL_TIMEOUT=1800\n"
    silent = lint(tmp_path, {"common.sh": common, "run.sh": f". ./common.sh\n{TRAIN} --timeout $NCCL_TIMEOUT\n"})
    assert not of_rule(silent, "ineffective-environment-variable")
    spoken = lint(tmp_path, {"common.sh": common, "run.sh": f". ./common.sh\n{TRAIN}\n"})
    assert len(of_rule(spoken, "ineffective-environment-variable")) == 1


def test_what_another_script_expands_is_not_safely_changed(tmp_path: Path) -> None:
    common = "export NCCL_DEBUG=INFO\n"
    levels = []
    for run in (f". ./common.sh\n{TRAIN}\n", f". ./common.sh\n[ $NCCL_DEBUG = INFO ] && echo\n{TRAIN}\n"):
        (one,) = of_rule(lint(tmp_path, {"common.sh": common, "run.sh": run}), "debug-environment-left-on")
        assert one.fix is not None
        levels.append(one.fix.applicability)
        assert bool(one.fix.reason) is (one.fix.applicability is not Applicability.SAFE)
    assert levels == [Applicability.SAFE, Applicability.UNSAFE]
