"""Rounds of samples: each runs every arm once, in another order; what CUDA adds is tried with a stand-in."""

from __future__ import annotations

import gc
import time
from collections import Counter
from types import SimpleNamespace

import pytest
from collected import for_every

from ldlm_lint.probe.machine import Gpu, Gpus
from ldlm_lint.probe.micro import child, profiles, sampling
from ldlm_lint.probe.micro.sampling import cuda_clock, sample, wall_clock

FAR = time.monotonic() + 1e6


class Arms:
    """Arms that only count, and a clock whose time passes by calls: ``costs`` are seconds per call."""

    def __init__(self, **costs: float) -> None:
        self.costs, self.now, self.order, self.built = costs, 0.0, [], Counter()

    def builds(self):
        return {name: self._build(name) for name in self.costs}

    def _build(self, name):
        def build():
            self.built[name] += 1

            def call():
                self.now += self.costs[name]
                self.order.append(name)

            return call

        return build

    def clock(self, call, inner):
        before = self.now
        for _ in range(inner):
            call()
        return {"process_time": (self.now - before) / inner}


def test_each_round_runs_each_arm_once_in_shuffled_order():
    arms = Arms(a=0.02, b=0.04)
    found = sample(arms.builds(), arms.clock, seed=1, end=FAR, rounds=20, inner=1)
    assert found.rounds == 20 and found.clock == "process_time" and found.inner == 1
    assert found.of("a") == pytest.approx([0.02] * 20) and found.of("b") == pytest.approx([0.04] * 20)
    rounds = arms.order[2 * sampling.WARM_UP :]
    pairs = [tuple(rounds[at : at + 2]) for at in range(0, len(rounds), 2)]
    assert len(pairs) == 20 and set(pairs) == {("a", "b"), ("b", "a")}


def test_the_fastest_arm_decides_how_many_repetitions_make_a_sample():
    arms = Arms(slow=0.1, fast=0.0021)
    assert sample(arms.builds(), arms.clock, seed=0, end=FAR, rounds=1).inner == 5


def test_new_state_counts_as_noise_where_that_is_asked_for():
    arms = Arms(a=0.02, b=0.02)
    sample(arms.builds(), arms.clock, seed=0, end=FAR, rounds=9, rebuild=4, inner=1)
    assert arms.built == {"a": 3, "b": 3}


def test_rounds_end_when_the_time_does(monkeypatch):
    arms = Arms(a=0.02)
    monkeypatch.setattr(sampling.time, "monotonic", lambda: arms.now)
    assert sample(arms.builds(), arms.clock, seed=0, end=-1, rounds=9, inner=1).rounds == 0
    # A round that would end later than that is not begun.
    found = sample(arms.builds(), arms.clock, seed=0, end=arms.now + sampling.WARM_UP * 0.02 + 0.11, rounds=9, inner=1)
    assert found.rounds == 5


def test_the_collector_is_off_during_rounds_and_on_again_after_an_error():
    seen = []

    def fails():
        seen.append(gc.isenabled())
        if len(seen) > sampling.WARM_UP:
            raise RuntimeError

    with pytest.raises(RuntimeError):
        sample({"a": lambda: fails}, wall_clock, seed=0, end=FAR, rounds=3, inner=1)
    assert seen[-1] is False and gc.isenabled()


class Cuda:
    """The calls that a clock makes of torch.cuda, in their order; an event pair is always 30 ms apart."""

    def __init__(self) -> None:
        self.calls = []

    def synchronize(self):
        self.calls.append("synchronize")

    def Event(self, enable_timing):
        assert enable_timing
        return SimpleNamespace(record=lambda: self.calls.append("record"), elapsed_time=lambda other: 30.0)


def test_cuda_is_timed_between_synchronisations_and_by_events():
    cuda = Cuda()
    found = cuda_clock(SimpleNamespace(cuda=cuda))(lambda: cuda.calls.append("call"), 3)
    assert cuda.calls == ["synchronize", "record", "call", "call", "call", "record", "synchronize"]
    assert found["cuda_event"] == pytest.approx(0.010) and found["perf_counter"] > 0


def event(name, moment, size):
    return SimpleNamespace(name=lambda: name, start_ns=lambda: moment, nbytes=lambda: size)


def test_the_peak_is_the_highest_prefix_sum_in_the_order_of_time(monkeypatch):
    events = [
        event("[memory]", 3, -100),
        event("[memory]", 1, 100),
        event("[memory]", 2, 50),
        event("aten::add", 2, 999),
    ]
    results = SimpleNamespace(events=lambda: events)
    profile = SimpleNamespace(profiler=SimpleNamespace(kineto_results=results))
    monkeypatch.setattr(profiles, "profiled", lambda *arguments, **options: profile)
    assert profiles.peak_bytes(None, None, "cpu") == 150
    events.clear()
    assert profiles.peak_bytes(None, None, "cpu") is None


@for_every(
    ("name", "fused", "foreach"),
    [
        ("aten::_fused_adamw_", True, False),
        ("aten::_fused_sgd_", True, False),
        ("aten::_foreach_add_", False, False),
        ("aten::_foreach_addcdiv_", False, True),
        (
            "void at::native::(anonymous namespace)::multi_tensor_apply_kernel<at::native::(anonymous namespace)::"
            "FusedOptimizerTensorListMetadata<4>, at::native::(anonymous namespace)::FusedAdamMathFunctor<float, 4, "
            "(at::native::(anonymous namespace)::ADAM_MODE)1, false> >",
            True,
            False,
        ),
        ("void at::native::(anonymous namespace)::multi_tensor_apply_kernel<TensorListMetadata<2>, ...>", False, True),
        ("aten::add_", False, False),
    ],
)
def test_names_of_kernels(name, fused, foreach):
    assert bool(profiles.FUSED.search(name)) is fused
    assert bool(profiles.FOREACH.search(name)) is foreach


@pytest.mark.parametrize(("uuid", "index"), [("b", 1), ("", None), ("c", None)])
def test_the_gpu_in_use_is_found_by_its_uuid(uuid, index):
    seen = Gpus((Gpu(0, "x", "GPU-a"), Gpu(1, "x", "GPU-b")))
    cuda = SimpleNamespace(current_device=lambda: 0, get_device_properties=lambda at: SimpleNamespace(uuid=uuid))
    assert child._index(SimpleNamespace(cuda=cuda), seen) == index
