"""The exit code of every command, in every case that its page names."""

from __future__ import annotations

from pathlib import Path

import pytest
from calling import Enter, Run

BEAT = "export TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC=12000000\ntorchrun train.py\n"


@pytest.fixture
def project(enter: Enter) -> Path:
    return enter({"pyproject.toml": "", "run.sh": BEAT})


@pytest.mark.parametrize(
    "arguments, expected",
    [
        (("check", "clean.sh"), 0),
        (("check", "run.sh"), 1),
        (("check", "--exit-zero", "run.sh"), 0),
        (("check", "--fail-level", "error", "run.sh"), 0),
        (("check", "--since", "no-such-revision"), 2),
        (("check", "--baseline", "no-such-file"), 2),
        (("check", "gone.sh"), 3),
        (("check", "--exit-zero", "run.sh", "gone.sh"), 3),
        (("check", "--diff", "clean.sh"), 0),
        (("check", "--diff", "--unsafe-fixes", "run.sh"), 1),
        (("check", "--show-files", "run.sh"), 0),
        (("check", "--show-files", "gone.sh"), 3),
        (("check", "--show-settings"), 0),
        (("check", "--show-settings", "--show-files"), 2),
        (("baseline",), 0),
        (("baseline", "--update"), 0),
        (("baseline", "--baseline", "run.sh"), 2),
        (("baseline", "gone.sh"), 3),
        (("undo",), 1),
        (("undo", "--list"), 0),
        (("undo", "--list", "--partial"), 2),
        (("undo", "gone"), 3),
        (("graph",), 0),
        (("graph", "--format", "xml"), 2),
        (("graph", "gone.sh"), 3),
        (("monitor", "good.log"), 0),
        (("monitor", "bad.log"), 1),
        (("monitor",), 2),
        (("monitor", "gone.log"), 3),
        (("bench",), 2),
        (("probe", "run"), 2),
        (("probe", "judge", "gone"), 2),
        (("probe", "memory"), 2),
        (("probe", "machine", "--only", "nothing"), 2),
        (("rules",), 0),
        (("rules", "nothing"), 2),
        (("explain", "W7201"), 0),
        (("explain", "nothing"), 2),
        (("completion", "bash"), 0),
        (("completion", "tcl"), 2),
    ],
    ids=str,
)
def test_exit_codes(project: Path, run: Run, arguments: tuple[str, ...], expected: int) -> None:
    (project / "clean.sh").write_text("echo training\n")
    steps = "".join(f'{{"step": {step}, "loss": {2 - step / 100}}}\n' for step in range(1, 60))
    (project / "good.log").write_text(steps)
    (project / "bad.log").write_text(steps + '{"step": 60, "loss": NaN}\n')
    assert run(*arguments)[0] == expected
