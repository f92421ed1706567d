"""Lines of training logs: what they say, however they are cut, numbered or repeated."""

from __future__ import annotations

import random
import time
import tracemalloc

import pytest
from collected import for_every
from hypothesis import given, settings
from hypothesis import strategies as st

from ldlm_lint.monitor import numbers, reader
from ldlm_lint.monitor.formats import bars
from ldlm_lint.monitor.lines import Framer, labelled
from ldlm_lint.monitor.numbers import MARK
from ldlm_lint.monitor.reader import LogReader
from ldlm_lint.monitor.records import UNITS, Record
from tests.monitor_samples import Score, records, samples, score, table

NAMES = (
    "samples.json",
    "heldout.json",
    "heldout6.json",
    "heldout7.json",
    "heldout8.json",
    "heldout9.json",
    "heldout10.json",
)
SAMPLES = [one for name in NAMES for one in samples(name)]


@for_every("name", NAMES)
def test_fields_of_public_log_lines(name):
    total = Score()
    for sample in samples(name):
        score(sample, total)
    assert not total.wrong
    assert total.right >= 0.95 * (total.right + len(total.missing)), total.missing
    assert total.right >= 100


def test_canonical_units_are_the_table_s():
    for sample in SAMPLES:
        for record in records(sample["text"]):
            for one in record.fields:
                assert not one.key or one.unit == UNITS[one.key] or (one.key == "accuracy" and one.unit == "%"), one


def _lines(record: Record) -> tuple[object, ...]:
    identity = record.template.identity
    return (
        record.line,
        record.rank,
        record.actor,
        identity,
        record.step,
        repr(record.epoch),
        repr(record.values),
        record.time,
    )


def _varied(text: str, rng: random.Random) -> str:
    """A line of the same print statement with other numbers, of any width and kind."""
    pieces = numbers.split(text)
    kinds = ("{:.4f}", "{:.2e}", "{:.0f}", "nan", "{:,.0f}", "inf", "{:.1f}", "-{:.3f}", "{:.1f}.3")
    for index in range(1, len(pieces), 2):
        if rng.random() < 0.7:
            before = " " if pieces[index].startswith(" ") else ""
            pieces[index] = before + rng.choice(kinds).format(10 ** rng.uniform(-3, 6))
    return "".join(pieces)


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 10**6))
def test_what_is_remembered_of_a_skeleton_changes_nothing(seed):
    rng = random.Random(seed)
    chosen = [sample["text"].split("\n")[0] for sample in rng.sample(SAMPLES, 4)]
    text = "".join(_varied(rng.choice(chosen), rng) + "\n" for _ in range(40))
    fast, slow = ([_lines(one) for one in records(text, fast=fast)] for fast in (True, False))
    assert fast == slow


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 10**6))
def test_the_borders_of_chunks_change_nothing(seed):
    rng = random.Random(seed)
    ends = rng.choice(["\n", "\r\n", "\r"])
    data = ends.join(sample["text"].replace("\n", ends) for sample in rng.sample(SAMPLES, 12)).encode() + ends.encode()
    whole, cut = LogReader(), LogReader()
    once = [_lines(one) for _, found in [*whole.read(data), *whole.close()] for one in found]
    pieces, start = [], 0
    while start < len(data):
        end = start + rng.randrange(1, 90)
        pieces += list(cut.read(data[start:end]))
        start = end
    assert [_lines(one) for _, found in [*pieces, *cut.close()] for one in found] == once


def test_a_known_line_is_understood_once(monkeypatch):
    calls = []
    understand = reader.plan
    monkeypatch.setattr(reader, "plan", lambda *arguments: calls.append(1) or understand(*arguments))
    text = "".join(
        f"iter {step}: loss {3 - step / 1e5:.4f}, time {60 + step % 7}.25ms, mfu 0.02%\n" for step in range(5000)
    )
    assert len(records(text)) == 5000
    assert len(calls) == 1


def test_a_bar_before_a_dictionary_leaves_its_series_as_they_are():
    row = "{'loss': 0.5, 'grad_norm': 1.0, 'learning_rate': 1e-05, 'epoch': 0.1}"
    bars = ["  1%|▏         | 10/900 [00:10<15:00,  1.02s/it]", "  2%|▏         | 20/900 [00:19<14:00,  1.05it/s]"]
    found = records("".join(f"{bar}{row}\n" for bar in bars) + row + "\n")
    rows = [one for one in found if one.get("loss") is not None]
    assert len({id(one.template) for one in rows}) == 1
    assert [one.step for one in rows] == [10, 20, None]
    assert [(one.step, one.get("step_time_s"), one.get("iterations_per_s")) for one in found if one not in rows] == [
        (10, 1.02, None),
        (20, None, 1.05),
    ]


@pytest.mark.parametrize(
    ("text", "step", "loss"),
    [
        ("loss at step 100: 0.5", 100, 0.5),
        ("Validation loss after epoch 3 = 1.25", None, 1.25),
        ("12:30:05 loss 0.5 step 7", 7, 0.5),
        ("Time at epoch 3: 12:30:05, loss: 0.5", None, 0.5),
    ],
)
def test_what_is_named_before_its_step(text, step, loss):
    (one,) = records(text)
    assert (one.step, one.get("loss")) == (step, loss)


def test_a_scale_in_a_name_is_no_value():
    (one,) = records("step:3 - actor/grad_norm:1.5 - actor/lr(1e-4):0.010")
    assert one.get("lr") is None


def test_minutes_and_their_seconds_make_the_time_that_all_numbers_make():
    lines = [
        f" [2025-05-27 15:{second // 60:02d}:{second % 60:02d}] iteration {second}/ 900 | lm loss: 2.5 |\n"
        for second in range(200)
    ]
    fast, slow = ([one.time for one in records("".join(lines), fast=fast)] for fast in (True, False))
    assert fast == slow
    assert fast == [fast[0] + second for second in range(200)]


def test_memory_does_not_grow_with_the_log():
    rng = random.Random(0)
    made = LogReader()
    peaks = []
    tracemalloc.start()
    for _ in range(2):
        tracemalloc.reset_peak()
        for _ in range(20):
            chunk = "".join(
                f"{rng.random()} words{rng.random()} loss {rng.random()} x{rng.random()} y\n" for _ in range(400)
            )
            for _ in made.read(chunk):
                pass
        peaks.append(tracemalloc.get_traced_memory()[1])
    tracemalloc.stop()
    assert peaks[1] < 1.3 * peaks[0] + 2**20


@for_every(
    ("text", "rank", "actor", "rest"),
    [
        ("[rank3]: boom", 3, "", "boom"),
        ("[rank0]:[titan] step: 1", 0, "", "[titan] step: 1"),
        ("[default7]: x", 7, "", "x"),
        ("[1,2]<stderr>:x", 2, "", "x"),
        ("\x1b[36m(TaskRunner pid=12, ip=10.0.0.1)\x1b[0m step:1", None, "TaskRunner pid=12, ip=10.0.0.1", "step:1"),
        ("worker-0: [2023-01-01] x", None, "worker-0", "[2023-01-01] x"),
        ("\x1b[32mloss\x1b[0m 1\x1b[K", None, "", "loss 1"),
        ("(step=10) Train Loss: 1", None, "", "(step=10) Train Loss: 1"),
        ("[2023] [Rank 0] x", None, "", "[2023] [Rank 0] x"),
    ],
)
def test_prefixes_of_launchers(text, rank, actor, rest):
    (line,) = Framer().feed(text + "\n")
    assert (line.rank, line.actor, line.text) == (rank, actor, rest)


def test_redraws_share_a_line_and_bytes_may_be_broken():
    made = Framer().feed(b" 1%\r 2%\r 3%\nab\xff\xe9\r\nlast\n")
    assert [(one.line, one.text, one.bar) for one in made] == [
        (1, " 1%", True),
        (1, " 2%", True),
        (1, " 3%", False),
        (2, "ab\ufffd\ufffd", False),
        (3, "last", False),
    ]


def test_task_numbers_come_back_and_counters_do_not():
    steps = "".join(f"{step}: loss {1 / (step + 1)}\n" for step in range(40))
    tasks = "".join(f"{step % 4}: iter {step // 4}: loss 2.5\n" for step in range(40))
    assert not labelled(steps)
    assert labelled(tasks)
    found = records(tasks, labels=True)
    assert {one.rank for one in found} == {0, 1, 2, 3}
    assert {one.step for one in found} == set(range(10))


@for_every(
    "text",
    [
        "Namespace(lr=0.1, loss_scale=128, epochs=3)",
        "TrainConfig(loss=0.5, lr=1e-4)",
        "python train.py --lr 0.1 --loss 0.5",
        '    "loss_weight": 0.5,',
        "loss = criterion(output, target) * 0.5",
        "number of parameters: 124.44M",
        "Loading checkpoint shards: 100%|██████████| 4/4 [00:02<00:00,  1.98it/s]",
        "Downloading: 100%|██████████| 1.2G/1.2G [00:10<00:00, 120MB/s]",
        "Map: 100%|██████████| 1000/1000 [00:01<00:00, 5000.1 examples/s]",
        '  File "train.py", line 10, in <module>',
        "Saved out/epoch=3-val_loss=0.312.ckpt after step 100",
        "2024-05-05 10:00:00 loaded 1000 samples in 3.2 s",
        "No NaN found in 3 gradients",
    ],
)
def test_settings_code_and_prose_say_nothing(text):
    assert records(text) == []


@for_every(
    ("text", "key", "value"),
    [
        ("step 5 | loss nan | lr 0.1", "loss", float("nan")),
        ("step 5 loss: -inf", "loss", float("-inf")),
        ("{'loss': tensor(0.5, device='cuda:0', grad_fn=<NllLossBackward0>), 'step': 3}", "loss", 0.5),
        ("{'loss': np.float64(1.5), 'step': 3}", "loss", 1.5),
        ('{"loss": "nan", "step": "3"}', "loss", float("nan")),
        ('{"train": {"loss": 1.5}, "step": 3}', "loss", 1.5),
        ("step: 3  loss: 1,234.5", "loss", 1234.5),
        ("step 3 loss 0,123", "loss", 0.123),
        ("step 3 loss 2,5 lr 1,5e-04", "lr", 1.5e-4),
        ("step 3 loss -0,25", "loss", -0.25),
        ("step 3 loss 1.234,5", "loss", 1234.5),
        ("loss 0,5 acc 0,875\nloss 1,234 acc 0,875", "loss", 0.5),
        ("step 3 loss 1.5 tps: 7,034", "tokens_per_s", 7034.0),
        ("step 1,200 loss 1.5", "step", 1200.0),
        ("| loss | 0,123 |\n| step | 1200 |\n", "loss", 0.123),
        ("Loss: 1.23 | {'lr': 0.5, 'step': 3}", "loss", 1.23),
        ("Loss: 1.23 | {'lr': 0.5, 'step': 3}", "lr", 0.5),
        ("Epoch 0: |    | 3/? [00:01<00:00,  2.05it/s, loss=4.5]", "step", 3.0),
        ("Epoch 0: |    | 3/? [00:01<00:00,  2.05it/s, loss=4.5]", "loss", 4.5),
        ("epoch 1 | loss 0.5 | 3.5 s/it", "step_time_s", 3.5),
        ("epoch 1 | loss 0.5 | 250 ms/step", "step_time_s", 0.25),
        ("step 1, loss 0.5, throughput: 12.5k tokens/s", "loss", 0.5),
        ("step=1 loss=1.5 gnorm=0.5 tokens/s=1.2e5", "grad_norm", 0.5),
        ("step=1 loss=1.5 gnorm=0.5 tokens/s=1.2e5", "tokens_per_s", 1.2e5),
        ("step 1 loss 1.5 lr 0.5 tok/s 250", "lr", 0.5),
        ("step 1 loss 1.5 lr 0.5 tok/s 250", "tokens_per_s", 250.0),
        ("step 1 | loss 1.5 | 250 tok/s", "tokens_per_s", 250.0),
    ],
)
def test_numbers_as_programs_write_them(text, key, value):
    got = table(records(text))[key][0]
    assert repr(got) == repr(value)


@for_every(
    ("text", "absent"),
    [
        ("step 5 | loss 1.0 | base_lr 0.1", "lr"),
        ("step 5 | loss 1,234 | lr 0.1", "loss"),
        ("step 5 | lr 0,01 | tps 7,034 | loss 2.5\n", "tokens_per_s"),
        ("step 5 | mtp_1 loss: 11.8 | aux loss: 0.3", "loss"),
        ("step:5 - critic/grad_norm:3.1 - critic/loss:0.5", "grad_norm"),
        ("step 5 | loss 1.0 | memory 12 quux", "memory_bytes"),
        ("epoch 3 | loss 0.5 | Time 2.45 min", "step_time_s"),
        ("Test set: accuracy: 9857/10000, loss: 0.04", "accuracy"),
        ("Epoch 8: val_loss improved from 7.3 to 7.2", "val.loss"),
        ("step 5 | G loss: 0.5, acc: 0.1 | D loss: 0.2, acc: 0.9", "accuracy"),
    ],
)
def test_a_qualified_key_is_a_quantity_of_its_own(text, absent):
    assert absent not in table(records(text))


@pytest.mark.parametrize(
    "text",
    [
        "[2024-01-01 00:00:00] [Rank 3] step 5 loss 1.5",
        "rank 3 step 5 loss 1.5",
        "2024-01-01 00:00:00,123 - [GPU 3] step 5 loss 1.5",
        "[INFO] [olmo.train:816, rank=3] step 5 loss 1.5",
    ],
)
def test_ranks_that_a_line_says_are_no_values(text):
    (record,) = records(text)
    assert (record.rank, record.step, record.get("loss")) == (3, 5, 1.5)
    assert "3" not in str([one.value for one in record.fields])


def test_two_prints_are_two_series_and_one_print_is_one():
    text = "".join(f"[A] step {n} loss {n}.5\n[B] step {n} loss {n}.25\n" for n in range(5))
    found = records(text)
    assert len({one.template for one in found}) == 2
    assert len(found) == 10


def test_times_of_lines():
    text = (
        "[2025-05-27 15:23:07,500] step 1 loss 0.5\n2025-05-27T15:24:07.250Z step 2 loss 0.5\n"
        "2022/08/22 15:51:56 step 3 loss 0.5\n12/13 08:03:57 step 4 loss 0.5\nstep 5 loss 0.5 eta 0:12:33\n"
    )
    times = [one.time for one in records(text)]
    assert times[0] == 1748359387.5
    assert times[1] == 1748359447.25
    assert times[2] == 1661183516.0
    assert times[3] is not None
    assert times[4] is None


@for_every("text", [" ", "\t", "-", "[", "{'a", "1 ", "1,", "%|", "nan ", " a", "loss: ", "a:)", "|"])
def test_no_line_takes_long(text):
    """Patterns that search from each character of a run would take minutes here; the bar is a hundred times the usual."""
    start = time.process_time()
    for count in (8000, 60000):
        records(f"{text * (count // len(text))} x loss: 5 it/s")
    assert time.process_time() - start < 5


BAR_PARTS = [MARK, f"{MARK}/{MARK} [{MARK}:{MARK}<{MARK}:{MARK}, {MARK}it/s]", "%||", "| |", *"|:) /[]<,?a\r", "it", "it/s", "Epoch ", "days"]


@settings(max_examples=500)
@given(st.lists(st.sampled_from(BAR_PARTS), max_size=30).map("".join))
def test_a_bar_is_found_where_a_search_from_each_character_finds_it(text):
    def told(found):
        return found and (found.span(), found.groupdict(), [found.span(name) for name in found.re.groupindex])

    assert told(bars._tqdm(text)) == told(bars._TQDM.search(text))
