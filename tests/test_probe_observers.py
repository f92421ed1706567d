"""Observers of models, DDP and files in one process: what they see, and what they leave as it is."""

from __future__ import annotations

import copy
import io
import pickle
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from watched_runs import rank, verdicts

pytestmark = pytest.mark.torch

ROOT = str(Path(__file__).parent)
ROOMS = (
    *("compilation", "models", "activation_checkpointing", "parameters", "ddp"),
    *("process_groups", "loaders", "samplers", "copies", "checkpoint_files"),
)
WIDTH = 8


def _observers(rooms: Iterable[str]) -> list[Any]:
    from importlib import import_module

    from ldlm_lint.probe.observers import ROOMS as ALL

    chosen = [(room, name) for room, name in ALL if room in rooms]
    return [getattr(import_module(f"ldlm_lint.probe.observers.{room}"), name)() for room, name in chosen]


def _watched(program: Callable[[], Any], steps: int = 20, unseen: Iterable[str] = (), rooms: Iterable[str] = ROOMS) -> tuple[dict[str, Any], Any]:
    """The observations of a program, and what it returned; ``unseen`` are the topics that cannot be observed of it."""
    import torch

    from ldlm_lint.probe.watcher import Watcher

    watcher = Watcher(torch, ROOT, steps, observers=_observers(rooms))
    watcher.start()
    try:
        torch.manual_seed(0)
        returned = program()
    finally:
        seen = watcher.finish()
        watcher.release()
    assert watcher.session.unavailable.keys() - {"profiled step"} == set(unseen), watcher.session.unavailable
    return seen, returned


def _judged(seen: dict[str, Any], steps: int = 20) -> dict[str, str]:
    return {rule: verdict for rule, (verdict, _) in verdicts(rank(seen, steps=steps)).items()}


def _net(checkpointing: str = "none") -> Any:
    from torch import nn
    from torch.utils.checkpoint import checkpoint, checkpoint_sequential

    class Attention(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.mix = nn.Linear(WIDTH, WIDTH)

        def forward(self, x):
            return self.mix(x).tanh()

    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.attention = Attention()

        def forward(self, x):
            return x + self.attention(x)

    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.parts = nn.ModuleDict({"h": nn.Sequential(*(Block() for _ in range(4)))})
            self.head = nn.Linear(WIDTH, 1)

        @property
        def blocks(self):
            return self.parts["h"]

        def forward(self, x):
            if checkpointing == "sequential":
                x = checkpoint_sequential(self.blocks, 2, x, use_reentrant=False)
            elif checkpointing == "reentrant":
                x = checkpoint(self.blocks, x.requires_grad_(), use_reentrant=True)
            else:
                for block in self.blocks:
                    x = checkpoint(block, x, use_reentrant=False) if checkpointing == "each" else block(x)
            return self.head(x).mean()

    return Net()


def _train(model: Any, steps: int = 5, after: Callable[[int], None] = lambda step: None) -> list[float]:
    import torch

    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    losses = []
    for step in range(steps):
        loss = model(torch.randn(3, WIDTH))
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item())
        after(step)
    return losses


@pytest.mark.parametrize(
    ("checkpointing", "missing", "whole"),
    [
        ("none", "verified", None),
        ("each", "refuted", "refuted"),
        ("sequential", "refuted", "refuted"),
        ("reentrant", "refuted", "verified"),
    ],
)
def test_recomputed_blocks(checkpointing: str, missing: str, whole: str | None) -> None:
    import torch

    torch.manual_seed(0)
    plain = _train(_net(checkpointing))
    seen, losses = _watched(lambda: _train(_net(checkpointing)))
    judged = _judged(seen)
    assert losses == plain
    assert judged["missing-activation-checkpointing"] == missing
    assert judged.get("whole-model-checkpoint") == whole


def test_a_model_that_is_gone_at_the_end_is_remembered_and_found_in_the_source() -> None:
    seen, _ = _watched(lambda: _train(_net(), steps=2))
    (model,) = seen["models"]
    source = Path(__file__).read_text().splitlines()
    assert source[model["site"]["line"] - 1].strip() == "class Net(nn.Module):"
    assert source[model["construction"]["line"] - 1].strip().startswith("return Net()")
    assert model["stacks"][0] | {"site": 0, "forward": 0, "construction": 0} == {
        **{
            "name": "parts.h",
            "block": "_net.<locals>.Block",
            "count": 4,
            "attends": True,
            "called": 4,
            "recomputed": 0,
        },
        **{"owner": "_net.<locals>.Net", "site": 0, "forward": 0, "construction": 0},
    }


def test_a_model_that_the_collector_takes_between_two_looks_is_still_described() -> None:
    import torch

    from ldlm_lint.probe.observers.models import Models, Root
    from ldlm_lint.probe.observers.parameters import Parameters, _Watched
    from ldlm_lint.probe.session import Session

    net = torch.nn.Linear(2, 2)

    def seen_once() -> Callable[[], Any]:
        looks = iter([net])
        return lambda: next(looks, None)

    session = Session(torch, ROOT)
    models = Models()
    models.roots = [Root(seen_once(), [])]
    models.conclude(session)
    assert [one["parameters"] for one in models.collect(session)] == [6]
    parameters = Parameters()
    watched = parameters._watched[id(net)] = _Watched(net)
    watched.module = seen_once()
    parameters.conclude(session)
    assert [one["in_no_optimizer"] for one in parameters.collect(session)] == [["weight", "bias"]]


def test_parts_that_are_called_by_themselves_belong_to_their_model() -> None:
    def program() -> None:
        import torch

        net = _net()
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        for _ in range(4):
            x = torch.randn(3, WIDTH)
            for block in net.blocks:
                x = block(x)
            net.head(x).mean().backward()
            optimizer.step()

    seen, _ = _watched(program)
    assert [(one["class"], one["stacks"][0]["called"]) for one in seen["models"]] == [("_net.<locals>.Net", 4)]


def test_a_model_with_a_switch_that_is_off_is_left_open() -> None:
    net = _net()
    net.gradient_checkpointing = False
    seen, _ = _watched(lambda: _train(net))
    assert _judged(seen)["missing-activation-checkpointing"] == "inconclusive"
    assert "gradient_checkpointing" in seen["models"][0]["switches"]


@pytest.mark.slow
@pytest.mark.parametrize(("switched", "verdict"), [(False, "inconclusive"), (True, "refuted")])
def test_a_model_of_transformers_has_a_switch(switched: bool, verdict: str) -> None:
    def program() -> None:
        import torch
        from transformers import GPT2Config, GPT2LMHeadModel

        model = GPT2LMHeadModel(GPT2Config(vocab_size=16, n_positions=8, n_embd=8, n_layer=3, n_head=2))
        if switched:
            model.gradient_checkpointing_enable({"use_reentrant": False})
        model.train()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(4):
            ids = torch.randint(0, 16, (2, 8))
            model(input_ids=ids, labels=ids).loss.backward()
            optimizer.step()
            optimizer.zero_grad()

    seen, _ = _watched(program)
    assert _judged(seen)["missing-activation-checkpointing"] == verdict
    (model,) = seen["models"]
    assert model["site"] is None and model["construction"]["path"] == Path(__file__).name


def test_frozen_models_and_losses_are_no_trained_models() -> None:
    def program() -> None:
        import torch

        teacher, criterion = _net().requires_grad_(False), torch.nn.MSELoss()
        student = torch.nn.Linear(WIDTH, 1)
        optimizer = torch.optim.SGD(student.parameters(), lr=0.1)
        for _ in range(3):
            x = torch.randn(3, WIDTH)
            criterion(student(x).mean(), teacher(x)).backward()
            optimizer.step()

    seen, _ = _watched(program)
    assert [one["class"] for one in seen["models"]] == ["Linear"]


def test_a_compiled_model_keeps_its_graph_and_is_left_open() -> None:
    def program() -> int:
        import torch
        from torch._dynamo.utils import counters

        torch._dynamo.reset()
        counters.clear()
        _train(torch.compile(_net(), backend="aot_eager"), steps=6)
        return counters["stats"]["unique_graphs"]

    plain = program()
    seen, graphs = _watched(program)
    assert graphs == plain == 1
    assert _judged(seen)["missing-activation-checkpointing"] == "inconclusive"


def test_a_compiled_program_says_that_its_autocasts_were_not_seen() -> None:
    def program() -> None:
        import torch

        torch._dynamo.reset()
        compiled = torch.compile(_net(), backend="aot_eager")
        with torch.autocast("cpu", dtype=torch.bfloat16):
            _train(compiled, steps=3)

    seen, _ = _watched(program, unseen=["autocasts"], rooms=["compilation", "autocasts"])
    assert "autocasts" not in seen


def test_gradients_of_a_closure_are_looked_at_behind_the_step() -> None:
    def program() -> None:
        import torch

        net = _net()
        net.unused = torch.nn.Linear(1, 1)
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)

        def closure() -> Any:
            optimizer.zero_grad()
            loss = net(torch.randn(3, WIDTH))
            loss.backward()
            return loss

        for _ in range(4):
            optimizer.step(closure)

    seen, _ = _watched(program)
    assert seen["parameters"][0]["without_gradient"] == {"unused.bias": 4, "unused.weight": 4}


@pytest.fixture(scope="module")
def group() -> Iterator[None]:
    import torch.distributed as dist

    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    yield
    dist.destroy_process_group()


def _wrapped(model: Any, **options: Any) -> Any:
    from torch.nn.parallel import DistributedDataParallel

    return DistributedDataParallel(model, **options)


def test_a_wrapped_model_can_still_be_copied_and_pickled(group: None) -> None:
    def program() -> bytes:
        import torch

        model = _wrapped(torch.nn.Linear(WIDTH, 1), find_unused_parameters=True)
        model(torch.randn(2, WIDTH)).mean().backward()
        torch.optim.SGD(model.parameters(), lr=0.1).step()
        copy.deepcopy(model.module)
        buffer = io.BytesIO()
        torch.save(model.module, buffer)
        return buffer.getvalue() + pickle.dumps(model)

    seen, saved = _watched(program)
    assert saved and seen["ddp"][0]["checked_iterations"] == 1


def test_two_forward_passes_before_one_backward_are_one_iteration(group: None) -> None:
    def program() -> None:
        import torch

        model = _wrapped(_net(), find_unused_parameters=True)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for step in range(6):
            x = torch.randn(3, WIDTH)
            with torch.enable_grad():
                loss = model(x)
            (loss if step % 2 else loss + model(x)).backward()
            optimizer.step()
            optimizer.zero_grad(set_to_none=False)

    seen, _ = _watched(program)
    (ddp,) = seen["ddp"]
    assert (ddp["checked_iterations"], ddp["unused"]) == (6, {})


def test_random_buffers_have_a_checksum(group: None) -> None:
    def program() -> None:
        import torch

        net = _net()
        net.register_buffer("noise", torch.randn(4))
        _train(_wrapped(net), steps=3)

    first, _ = _watched(program)
    second, _ = _watched(program)
    assert list(first["ddp"][0]["buffers"]) == ["noise"]
    assert first["ddp"][0]["buffers"] == second["ddp"][0]["buffers"]


def test_files_are_followed_from_save_to_rename_and_removal(tmp_path: Path) -> None:
    import torch

    def after(step: int) -> None:
        path = tmp_path / f"model{step}.pt"
        torch.save({"step": step}, f"{path}.tmp")
        Path(f"{path}.tmp").replace(path)
        torch.load(path, weights_only=True)
        if step > 1:
            (tmp_path / f"model{step - 2}.pt").unlink()

    seen, _ = _watched(lambda: _train(_net(), 6, after))
    files = seen["checkpoint_files"]
    assert [Path(one["path"]).name for one in files["saves"]] == [f"model{step}.pt.tmp" for step in range(6)]
    assert [one["event"] for one in files["changes"]].count("os.rename") == 6
    assert [one["event"] for one in files["changes"]].count("os.remove") == 4
    assert len(files["loads"]) == 6 and all(one["weights_only"] for one in files["loads"])
    assert _judged(seen)["non-atomic-checkpoint"] == "refuted"


def test_a_file_that_becomes_a_checkpoint_by_its_name_is_a_save(tmp_path: Path) -> None:
    def after(step: int) -> None:
        (tmp_path / "download").write_bytes(b"weights")
        (tmp_path / "download").replace(tmp_path / f"epoch={step}.ckpt")

    # So many, since this very file has code that deletes checkpoints.
    seen, _ = _watched(lambda: _train(_net(), 102, after), steps=102)
    judged = _judged(seen, 102)
    assert (judged["unbounded-checkpoints"], judged["non-atomic-checkpoint"]) == ("verified", "refuted")


def test_a_save_into_memory_is_none_and_one_into_an_open_file_is_not_in_place(tmp_path: Path) -> None:
    import torch

    def after(step: int) -> None:
        torch.save({"step": step}, io.BytesIO())
        with (tmp_path / f"{step}.pt").open("wb") as file:
            for part in range(3):
                torch.save({"step": step, "part": part}, file)

    seen, _ = _watched(lambda: _train(_net(), 6, after))
    assert len(seen["checkpoint_files"]["saves"]) == 6
    assert "non-atomic-checkpoint" not in _judged(seen)


def test_files_of_safetensors_are_saves(tmp_path: Path) -> None:
    from safetensors.torch import save_file

    net = _net()

    def after(step: int) -> None:
        save_file({"weight": net.head.weight.detach()}, str(tmp_path / f"model{step}.safetensors"))

    seen, _ = _watched(lambda: _train(net, 102, after), steps=102)
    assert len(seen["checkpoint_files"]["saves"]) == 102
    assert _judged(seen, 102)["unbounded-checkpoints"] == "verified"


@pytest.mark.skipif(not Path("/proc/self/schedstat").exists(), reason="the scheduler's times of processes are Linux's")
def test_workers_that_wait_are_told_from_those_that_compute() -> None:
    import torch
    from torch.utils.data import DataLoader, Dataset

    class Rows(Dataset):
        def __init__(self, computes: bool) -> None:
            self.computes = computes

        def __len__(self) -> int:
            return 48

        def __getitem__(self, index: int) -> torch.Tensor:
            until = time.perf_counter() + 0.03
            if not self.computes:
                time.sleep(0.03)
            while self.computes and time.perf_counter() < until:
                pass
            return torch.ones(WIDTH)

    def program(computes: bool) -> None:
        net = _net()
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        for rows in DataLoader(Rows(computes), batch_size=1, num_workers=4):
            net(rows).backward()
            optimizer.step()

    loads = {}
    for computes in (True, False):
        seen, _ = _watched(lambda computes=computes: program(computes))
        loads[computes] = seen["loaders"][0]["worker_load"]
        assert loads[computes]["seconds"] > 0.2
    busy, asleep = ((one["computed"] + one["waited_for_cpu"]) / one["seconds"] for one in (loads[True], loads[False]))
    # Shares depend on what else the machine does; who computes does not.
    assert busy > asleep and loads[True]["computed"] > 2 * loads[False]["computed"]


def test_passes_of_a_loader_with_persistent_workers_are_told_apart() -> None:
    def program(persistent: bool) -> None:
        import torch
        from torch.utils.data import DataLoader, TensorDataset

        net = _net()
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        data = TensorDataset(torch.randn(6, WIDTH))
        loader = DataLoader(data, batch_size=2, num_workers=1, persistent_workers=persistent)
        for _ in range(2):
            for (rows,) in loader:
                net(rows).backward()
                optimizer.step()

    for persistent, starts in ((False, 2), (True, 1)):
        seen, _ = _watched(lambda persistent=persistent: program(persistent))
        (loader,) = seen["loaders"]
        assert (loader["iterators"], loader["worker_starts"], loader["batches"]) == (2, starts, 6)
        assert len(loader["first_waits"]) == 2
        first, second = loader["passes"]
        assert first["process_seconds"] > 0 and (second["process_seconds"] > 0) is not persistent
        for times in (first, second):
            assert 0 < times["first_wait"] < times["seconds"]
            assert times["process_seconds"] <= times["iter_seconds"] < times["seconds"]
            assert 0 < times["batch_at_most"] < times["seconds"]


def test_iterations_beside_each_other_have_no_length_and_unfinished_ones_end_with_the_next() -> None:
    def program() -> None:
        import torch
        from torch.utils.data import DataLoader, TensorDataset

        net = _net()
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        loader = DataLoader(TensorDataset(torch.randn(6, WIDTH)), batch_size=2)
        for _ in range(3):
            (rows,) = next(iter(loader))
            net(rows).backward()
            optimizer.step()
        for (rows,), _ in zip(loader, loader, strict=True):
            net(rows).backward()
            optimizer.step()

    seen, _ = _watched(program)
    lengths = [one["seconds"] for one in seen["loaders"][0]["passes"]]
    assert all(lengths[:3]) and lengths[3:] == [None, None]


def test_copies_are_told_by_the_names_of_the_trace(monkeypatch):
    """Not yet run on CUDA: the names are CUPTI's."""
    from types import SimpleNamespace

    from ldlm_lint.probe import traces
    from ldlm_lint.probe.observers.copies import Copies

    event = traces.Event("", 0, 0, 0, False, 0, 0)
    found = [
        event._replace(name="aten::mm", start=0, end=100, on_host=True),
        event._replace(name="Memcpy HtoD (Pageable -> Device)", start=10, end=30),
        event._replace(name="Memcpy HtoD (Pinned -> Device)", start=40, end=45),
        event._replace(name="Memcpy HtoD (Pageable -> Device)", start=60, end=65),
    ]
    monkeypatch.setattr(traces, "events", lambda profile: found)
    observer, session = Copies(), SimpleNamespace(device="cuda")
    observer.profiled(session, None)
    assert observer.collect(session) == {
        "pageable": {"count": 2, "time": 25},
        "pinned": {"count": 1, "time": 5},
        "step_time": 100,
    }
    other = Copies()
    other.profiled(SimpleNamespace(device="cpu"), None)
    assert other.collect(session) is None
