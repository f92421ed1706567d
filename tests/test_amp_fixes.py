"""Rewriting torch.cuda.amp is safe only where nothing else can tell the old classes from the new."""

from __future__ import annotations

from pathlib import Path

import pytest

from ldlm_lint import engine
from ldlm_lint.config import Config
from ldlm_lint.model import Applicability

TRAINING = "import torch\n\n\ndef main(model, fit):\n    scaler = torch.cuda.amp.GradScaler()\n    {use}\n"


def level(root: Path, code: str, target: str) -> Applicability | None:
    """The applicability of the only fix that a training gets."""
    (root / "pyproject.toml").write_text(f'[tool.ldlm-lint]\ntarget-torch = "{target}"\n')
    (root / "train.py").write_text(code)
    report = engine.run([root], Config.load(root), base=root)
    (found,) = [finding for finding in report.findings if finding.rule == "deprecated-amp-api"]
    return found.fix.applicability if found.fix else None


@pytest.mark.parametrize(
    "use, target, expected",
    [
        pytest.param("scaler.update()", "2.4", Applicability.SAFE, id="kept"),
        pytest.param("fit(model, scaler)", "2.4", Applicability.UNSAFE, id="handed-on"),
        pytest.param("model.scaler = scaler", "2.4", Applicability.UNSAFE, id="stored"),
        pytest.param("return scaler", "2.4", Applicability.UNSAFE, id="returned"),
    ],
)
def test_a_scaler_is_rewritten_safely_where_it_stays(
    tmp_path: Path, use: str, target: str, expected: Applicability
) -> None:
    assert level(tmp_path, TRAINING.format(use=use), target) is expected


def test_what_torchscript_compiles_is_not_rewritten_safely(tmp_path: Path) -> None:
    code = TRAINING.format(use="scaler.update()") + "\n\ncompiled = torch.jit.script(main)\n"
    assert level(tmp_path, code, "2.4") is Applicability.UNSAFE


def test_a_file_outside_of_all_trainings_is_a_program_of_its_own(tmp_path: Path) -> None:
    for number in range(101):
        (tmp_path / f"module_{number}.py").write_text(f"VALUE = {number}\n")
    code = "import torch\n\n\ndef run(model, x):\n    with torch.cuda.amp.autocast(dtype=torch.float16):\n        return model(x)\n"
    assert level(tmp_path, code, "2.4") is Applicability.SAFE


@pytest.mark.torch
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("device, dtype", [("cuda", "float16"), ("cpu", "bfloat16")])
def test_the_old_classes_are_the_new_ones_with_the_arguments_that_the_fix_writes(
    device: str, dtype: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    torch = pytest.importorskip("torch")
    # Where there is no GPU both would be switched off, and equal for that reason alone.
    monkeypatch.setattr(torch.cuda.amp.common, "amp_definitely_not_available", lambda: False)
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda: True)
    old, new = getattr(torch, device).amp, torch.amp
    default = getattr(torch, dtype)
    made = [
        (old.autocast(), new.autocast(device, dtype=default)),
        (old.autocast(enabled=False), new.autocast(device, enabled=False)),
        (
            old.autocast(True, torch.bfloat16, False),
            new.autocast(device, enabled=True, dtype=torch.bfloat16, cache_enabled=False),
        ),
        (old.GradScaler(), new.GradScaler(device)),
        (old.GradScaler(2.0, 3.0, enabled=True), new.GradScaler(device, 2.0, 3.0, enabled=True)),
        (old.GradScaler(enabled=False), new.GradScaler(device, enabled=False)),
    ]
    for first, second in made:
        assert attributes(first) == attributes(second)
        assert issubclass(type(first), type(second))
    assert attributes(new.autocast(device, dtype=default)) != attributes(new.autocast(device, dtype=torch.float32))
    assert attributes(new.GradScaler(device)) != attributes(new.GradScaler(device, enabled=False))


def attributes(made: object) -> dict[str, object]:
    """What an object holds, as text where it is a container."""
    return {name: value if isinstance(value, (int, float, str)) else repr(value) for name, value in vars(made).items()}
