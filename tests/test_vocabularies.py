"""The dated vocabularies of training frameworks, and the script that refreshes them."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parent.parent / "scripts" / "refresh_vocabularies.py"


@pytest.fixture
def script(monkeypatch):
    monkeypatch.setattr(sys, "path", [*sys.path])
    spec = importlib.util.spec_from_file_location("refresh_vocabularies", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def site(tmp_path):
    """A directory with a transformers of this version and these fields."""

    def make(version: str, *lines: str) -> Path:
        site = tmp_path / version
        (site / f"transformers-{version}.dist-info").mkdir(parents=True)
        (site / "transformers").mkdir()
        body = "\n".join(f"    {line}" for line in lines)
        (site / "transformers" / "training_args.py").write_text(f"class TrainingArguments:\n{body}\n")
        return site

    return make


def table(script) -> dict:
    return json.loads(script.TABLE.read_text())["frameworks"]


def test_a_new_field_is_added_and_nothing_is_lost(script, site):
    found = table(script)
    before = set(found["transformers"]["fields"])
    assert script.read(site("9.1.0", "brand_new: int = 1"), found) == []
    assert set(found["transformers"]["fields"]) == before | {"brand_new"}
    assert found["transformers"]["read"][-1] == "9.1.0"


def test_the_first_version_is_the_oldest_one_that_was_read(script, site):
    found = table(script)
    script.read(site("4.35.0", "dataloader_persistent_workers: bool = False"), found)
    assert found["transformers"]["since"]["dataloader_persistent_workers"] == "4.35"
    script.read(site("6.0.0", "dataloader_persistent_workers: bool = False"), found)
    assert found["transformers"]["since"]["dataloader_persistent_workers"] == "4.35"


def test_a_default_that_changed_is_said_aloud(script, site):
    notes = script.read(site("9.0.0", "save_steps: float = field(default=1000)"), table(script))
    assert notes == ["transformers: save_steps was 500 and is 1000"]


def test_a_name_that_is_gone_is_said_aloud(script, tmp_path):
    path = tmp_path / "lightning" / "pytorch" / "trainer"
    path.mkdir(parents=True)
    names = ", ".join(set(table(script)["lightning"]["distinctive"]) - {"accumulate_grad_batches"})
    (path / "trainer.py").write_text(f"class Trainer:\n    def __init__(self, *, {names}): ...\n")
    notes = script.read(tmp_path, table(script))
    assert notes == ["lightning: accumulate_grad_batches is no parameter of Trainer any more"]


def test_packages_that_are_not_there_change_nothing(script, tmp_path):
    found = table(script)
    assert script.read(tmp_path, found) == []
    assert found == table(script)


def test_check_writes_nothing(script, site, tmp_path, monkeypatch, capsys):
    path = tmp_path / "vocabularies.json"
    path.write_bytes(script.TABLE.read_bytes())
    monkeypatch.setattr(script, "TABLE", path)
    monkeypatch.setattr(script, "ROOT", tmp_path)
    place, before = site("9.1.0", "brand_new: int = 1"), path.read_bytes()
    assert script.main([str(place), "--check"]) == 1
    assert path.read_bytes() == before
    assert script.main([str(place)]) == 0
    assert script.main([str(place), "--check"]) == 0
    assert "changed" in capsys.readouterr().out
