"""The dated tables of other libraries' interfaces, and the script that refreshes them."""

from __future__ import annotations

import datetime
import importlib.util
import inspect
import json
from pathlib import Path

import pytest

from ldlm_lint import tables
from ldlm_lint.requirements import TORCH_VERSIONS

SCRIPT = Path(__file__).parent.parent / "scripts" / "refresh_tables.py"


@pytest.fixture
def script():
    spec = importlib.util.spec_from_file_location("refresh_tables", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def wheel(tmp_path):
    """A directory with a torch of this version and this optimizer module."""

    def make(version: str, optimizer: str = "", loader: str = "") -> Path:
        site = tmp_path / version
        (site / f"torch-{version}.dist-info").mkdir(parents=True)
        (site / "torch" / "optim").mkdir(parents=True)
        (site / "torch" / "optim" / "adamw.py").write_text(optimizer or "class AdamW:\n    def __init__(self, params): ...\n")
        if loader:
            (site / "torch" / "utils" / "data").mkdir(parents=True)
            (site / "torch" / "utils" / "data" / "dataloader.py").write_text(loader)
        return site

    return make


def test_the_table_is_dated_and_names_what_was_read():
    assert datetime.date.fromisoformat(tables.as_of()) <= datetime.date.today()
    assert tuple(map(int, tables.newest_torch().split("."))) == TORCH_VERSIONS[-1]


def test_what_rules_ask_for():
    assert tables.positional("torch.utils.data.DataLoader")[:6][-1] == "num_workers"
    assert tables.positional("torch.nn.parallel.DistributedDataParallel")[-1] == "broadcast_buffers"
    assert tables.fused_since("AdamW") == (2, 0)
    assert tables.fused_since("RMSprop") is None
    assert "TORCH_NCCL_BLOCKING_WAIT" in tables.nccl_variables()
    with pytest.raises(KeyError):
        tables.positional("torch.no.such")


def table() -> dict:
    return {"read": {}, "positional": {}, "defaults": {}, "fused_since": {}, "nccl_variables": []}


def test_positional_parameters_are_the_beginning_that_versions_share(script, wheel):
    found = table()
    for version, rest in (("2.0.0", "process_group"), ("2.13.0", "init_sync")):
        text = f"class AdamW:\n    def __init__(self, params, lr=1, {rest}=None, *, fused=None): ...\n"
        script.read(wheel(version, text), found)
    assert found["positional"]["torch.optim.AdamW"] == ["params", "lr"]
    assert found["fused_since"] == {"AdamW": "2.0"}
    assert found["read"] == {"torch": ["2.0.0", "2.13.0"]}


def test_versions_are_ordered_by_number(script, wheel):
    found = table() | {"fused_since": {"AdamW": "2.10"}}
    script.read(wheel("2.9.1", "class AdamW:\n    def __init__(self, params, fused=None): ...\n"), found)
    assert found["fused_since"] == {"AdamW": "2.9"}


def test_a_default_that_changed_is_dropped_aloud(script, wheel, capsys):
    found = table()
    for version, default in (("2.0.0", "0"), ("2.13.0", "2")):
        script.read(wheel(version, loader=f"class DataLoader:\n    def __init__(self, dataset, num_workers={default}): ...\n"), found)
    assert "num_workers" not in found["defaults"]["torch.utils.data.DataLoader"]
    assert "num_workers" in capsys.readouterr().err


def test_check_writes_nothing_and_fails_where_the_table_would_change(script, wheel, tmp_path, monkeypatch, capsys):
    path = tmp_path / "interfaces.json"
    path.write_text(json.dumps(table()))
    monkeypatch.setattr(script, "TABLE", path)
    monkeypatch.setattr(script, "ROOT", tmp_path)
    site = wheel("2.13.0")
    before = path.read_bytes()
    assert script.main([str(site), "--check"]) == 1
    assert path.read_bytes() == before
    assert script.main([str(site)]) == 0
    assert script.main([str(site), "--check"]) == 0
    assert "changed" in capsys.readouterr().out


@pytest.mark.torch
def test_the_table_holds_for_the_torch_at_hand(script, capsys):
    import torch

    site = Path(inspect.getfile(torch)).parent.parent
    assert script.main([str(site), "--check"]) == 0
    assert "holds" in capsys.readouterr().out
