"""The watchdog's settings as one unit: whatever is suppressed, deselected or in another file, no part is fixed alone.

Turning monitoring on, or blocking wait off, brings the heartbeat timeout into force. With one that overflows 32 bits
the monitor spins or ends the job at its start, so neither may come out of a fix while such a heartbeat remains.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from collected import for_every

from ldlm_lint import engine
from ldlm_lint.autofix.apply import fix_files
from ldlm_lint.config import Config
from ldlm_lint.gate import EVERYTHING, Gate
from ldlm_lint.identity import Identifier
from ldlm_lint.model import Applicability
from ldlm_lint.rules.environment import RULES

LAUNCH = "torchrun --nproc_per_node=8 train.py"
HEARTBEAT, MONITORING = "TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC", "TORCH_NCCL_ENABLE_MONITORING"
OPTIONAL = (f"{MONITORING}=0", "TORCH_NCCL_BLOCKING_WAIT=1", "NCCL_BLOCKING_WAIT=1")
HEARTBEATS = ("", f"{HEARTBEAT}=600", f"{HEARTBEAT}=12000000", f'{HEARTBEAT}="$LIMIT"')
SUBSETS = [
    tuple(filter(None, (heartbeat, *some)))
    for heartbeat in HEARTBEATS
    for count in range(1, 4)
    for some in itertools.combinations(OPTIONAL, count)
]
SYMBOLS = [rule.symbol for rule in RULES if rule.symbol != "ineffective-environment-variable"] + ["deprecated-nccl-variable"]
_SET = re.compile(r"^(?:export |ENV |- )?(\w+)=(\S+)", re.M)


def fixed(root: Path, files: Mapping[str, str], select: Iterable[str] = ("72",), known: int | None = None) -> dict[str, str]:
    """The files after all unsafe fixes; ``known`` puts the finding of this number into the baseline."""
    for name, text in {"pyproject.toml": "[tool.ldlm-lint]\n", "train.py": "print()\n", **files}.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    config = replace(Config.load(root), select=tuple(select))
    contents = {(root / name).as_posix(): text.encode() for name, text in files.items()}
    gate = EVERYTHING
    if known is not None:
        report = engine.run([root], config, base=root)
        if known >= len(report.findings):
            return dict(files)
        gate = Gate({Identifier(report.sources, report.root).of(report.findings[known]): 1})

    def lint(overlay):
        return engine.run([root], config, base=root, overlay=overlay, gate=gate.after(contents, overlay)).findings

    result = fix_files(lint, contents, Applicability.UNSAFE)
    assert result.converged
    assert not result.rejected
    return {name: result.changed.get((root / name).as_posix(), text.encode()).decode() for name, text in files.items()}


def script(settings: Iterable[str], silenced: str = "") -> str:
    lines = (f"export {one}{'  # ldlm-lint: ignore' if one == silenced else ''}" for one in settings)
    return "\n".join(["#!/bin/bash", *lines, LAUNCH, ""])


def values(text: str) -> dict[str, str]:
    return {match[1]: match[2].strip('"') for match in _SET.finditer(text)}


def is_wrong(heartbeat: str | None) -> bool:
    return heartbeat is not None and not (heartbeat.isdigit() and int(heartbeat) <= 2147483)


def assert_nothing_is_armed(before: str, after: str, heartbeat: str | None = None) -> None:
    """With a wrong heartbeat in force, what keeps it from counting stays as it was."""
    old, new = values(before), values(after)
    if is_wrong(heartbeat if heartbeat is not None else new.get(HEARTBEAT)):
        assert [new.get(name) for name in NAMES] == [old.get(name) for name in NAMES], after


NAMES = tuple(one.partition("=")[0] for one in OPTIONAL)


@for_every("settings", SUBSETS, ids=lambda some: "+".join(some).replace("TORCH_NCCL_", ""))
def test_no_part_of_the_block_is_fixed_alone(tmp_path: Path, settings: tuple[str, ...]) -> None:
    plain = script(settings)
    whole = fixed(tmp_path, {"run.sh": plain})["run.sh"]
    assert_nothing_is_armed(plain, whole)
    if f'{HEARTBEAT}="$LIMIT"' not in settings:
        assert not {"TORCH_NCCL_BLOCKING_WAIT", "NCCL_BLOCKING_WAIT"} & values(whole).keys()
        assert values(whole).get(MONITORING) in (None, "1")
        assert values(whole).get(HEARTBEAT) in (None, "600", "1800")
    for one in settings:
        text = script(settings, one)
        assert_nothing_is_armed(text, fixed(tmp_path, {"run.sh": text})["run.sh"])
    for symbol in SYMBOLS:
        assert_nothing_is_armed(plain, fixed(tmp_path, {"run.sh": plain}, [symbol])["run.sh"])
    for known in range(len(settings)):
        assert_nothing_is_armed(plain, fixed(tmp_path, {"run.sh": plain}, known=known)["run.sh"])


@pytest.mark.parametrize("heartbeat", ["12000000", "5", "1e6", "${LIMIT}", "0"])
def test_a_heartbeat_that_is_wrong_in_another_way_arms_nothing_either(tmp_path: Path, heartbeat: str) -> None:
    text = script([f"{HEARTBEAT}={heartbeat}", *OPTIONAL], f"{HEARTBEAT}={heartbeat}")
    after = fixed(tmp_path, {"run.sh": text})["run.sh"]
    assert [values(after).get(name) for name in NAMES] == ["0", "1", "1"]


SILENCED = f"{HEARTBEAT}=12000000  # ldlm-lint: ignore"
BLOCK = script([*OPTIONAL])
# Where the heartbeat comes from, and the file that the other settings stand in.
ELSEWHERE = {
    "sourced": ({"env.sh": f"export {SILENCED}\n", "run.sh": BLOCK.replace(LAUNCH, f"source env.sh\n{LAUNCH}")}, "run.sh"),
    "sourcing": ({"env.sh": BLOCK.replace(LAUNCH, ""), "run.sh": f"source env.sh\nexport {SILENCED}\n{LAUNCH}\n"}, "env.sh"),
    "caller": ({"submit.sh": f"export {SILENCED}\nbash run.sh\n", "run.sh": BLOCK}, "run.sh"),
    "callers-caller": (
        {"all.sh": f"export {SILENCED}\nbash submit.sh\n", "submit.sh": "bash run.sh\n", "run.sh": BLOCK},
        "run.sh",
    ),
    "sourced-by-the-caller": (
        {"env.sh": f"export {SILENCED}\n", "submit.sh": "source env.sh\nbash run.sh\n", "run.sh": BLOCK},
        "run.sh",
    ),
    "called": ({"run.sh": f"export {SILENCED}\n{LAUNCH}\n", "submit.sh": BLOCK.replace(LAUNCH, "bash run.sh")}, "submit.sh"),
    "compose": (
        {
            "compose.yaml": f"services:\n  train:\n    image: torch\n    environment:\n      - {SILENCED}\n    command: bash run.sh\n",
            "run.sh": BLOCK,
        },
        "run.sh",
    ),
    "kubernetes": (
        {
            "job.yaml": "apiVersion: v1\nkind: Pod\nspec:\n  containers:\n    - name: train\n      command: [bash, run.sh]\n      env:\n"
            f'        - name: {HEARTBEAT}  # ldlm-lint: ignore\n          value: "12000000"  # ldlm-lint: ignore\n',
            "run.sh": BLOCK,
        },
        "run.sh",
    ),
    "image": ({"Dockerfile": f"FROM torch\n# ldlm-lint: ignore\nENV {HEARTBEAT}=12000000\nCMD bash run.sh\n", "run.sh": BLOCK}, "run.sh"),
    "dotenv": ({".env": f"{SILENCED}\n", "run.sh": BLOCK}, "run.sh"),
    "python": (
        {"train.py": f'import os\n\nos.environ["{HEARTBEAT}"] = "12000000"  # ldlm-lint: ignore\n', "run.sh": BLOCK},
        "run.sh",
    ),
}


@for_every(("files", "where"), ELSEWHERE.values(), ids=ELSEWHERE)
def test_a_wrong_heartbeat_in_another_file_keeps_the_block_as_it_is(tmp_path: Path, files: dict[str, str], where: str) -> None:
    after = fixed(tmp_path, files)
    assert [values(after[where]).get(name) for name in NAMES] == ["0", "1", "1"]
    # The same without the comment that silences it: all of it is put right in the end.
    loud = {name: text.replace("  # ldlm-lint: ignore", "").replace("# ldlm-lint: ignore\n", "") for name, text in files.items()}
    after = fixed(tmp_path / "loud", loud)
    assert "12000000" not in "".join(after.values())
    assert [values(after[where]).get(name) for name in NAMES] == ["1", None, None]


def test_a_wrong_heartbeat_of_another_job_is_its_own_matter(tmp_path: Path) -> None:
    files = {"other.sh": f"export {SILENCED}\n{LAUNCH}\n", "run.sh": BLOCK}
    assert [values(fixed(tmp_path, files)["run.sh"]).get(name) for name in NAMES] == ["1", None, None]


def test_monitoring_that_python_switches_off_waits_for_the_heartbeat_of_its_script(tmp_path: Path) -> None:
    files = {
        "train.py": f'import os\n\nos.environ["{MONITORING}"] = "0"\n',
        "run.sh": f"export {SILENCED}\n{LAUNCH}\n",
    }
    assert fixed(tmp_path, files)["train.py"] == files["train.py"]


def test_a_script_that_only_speaks_of_a_wrong_heartbeat_sets_none(tmp_path: Path) -> None:
    mend = f"sed -i 's/{HEARTBEAT}=12000000/{HEARTBEAT}=1800/' run.sh\n"
    assert [values(fixed(tmp_path, {"mend.sh": mend, "run.sh": BLOCK})["run.sh"]).get(name) for name in NAMES] == ["1", None, None]
