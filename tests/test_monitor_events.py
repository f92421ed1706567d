"""Events: lines of public logs are what they are, look-alikes are nothing, and the rank that held the others up."""

from __future__ import annotations

import pytest
from collected import for_every
from monitor_event_lines import CHILD_FAILED, EVENTS, NOTHING
from monitor_heldout_events import HELD_OUT, SPOKEN_OF

from ldlm_lint.monitor.alarms import KINDS, Alarm, Level
from ldlm_lint.monitor.events import PATTERNS, TRIGGERS, Event, eventful
from ldlm_lint.monitor.failures import Failures
from ldlm_lint.monitor.health import Health
from ldlm_lint.monitor.reader import LogReader


def events(text: str) -> list[Event]:
    failures = Failures()
    reader = LogReader()
    lines = [*reader.read(text + "\n"), *reader.close()]
    return [event for line, _ in lines if (event := failures.read(line)) is not None]


def health(text: str, **options: int) -> Health:
    judged = Health(**options)
    reader = LogReader()
    for line, records in (*reader.read(text), *reader.close()):
        judged.take("train.log", line, records)
    judged.close()
    return judged


def alarms(text: str) -> list[Alarm]:
    return health(text).book.alarms


@for_every(("kind", "rank", "line"), [one[:3] for one in (*EVENTS, *HELD_OUT)])
def test_a_line_of_a_public_log(kind: str, rank: int | None, line: str) -> None:
    (found,) = events(line)
    assert (found.kind, found.rank) == (kind, rank)


@for_every("line", (*NOTHING, *SPOKEN_OF))
def test_a_line_that_only_looks_like_one(line: str) -> None:
    assert events(line) == []


def test_each_kind_of_event_has_a_line() -> None:
    assert {pattern.kind for pattern in PATTERNS} == {one[0] for one in EVENTS}
    assert {pattern.kind for pattern in PATTERNS} <= set(KINDS)


def test_a_block_that_holds_an_event_is_read_line_by_line() -> None:
    ordinary = "iter 5: loss 2.5, time 60.00ms, mfu 0.02%\n" * 40
    assert not eventful(ordinary)
    assert [one for one in TRIGGERS if not eventful(f"{ordinary}x{one}y\n{ordinary}")] == []
    assert eventful(f"{ordinary}Traceback (most recent call last):\n")


def test_an_event_in_a_line_with_numbers_is_seen() -> None:
    text = "".join(f"iter {step}: loss 2.5, time 60.00ms, mfu 0.02%\n" for step in range(200))
    bar = " 14%|#4        | 378/2724 [13:58:09<86:18:35, 132.44s/it]torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB\n"
    assert [(one.kind, one.line) for one in alarms(text + bar)] == [("oom", 201)]


def test_the_report_of_torchrun() -> None:
    (found,) = events(CHILD_FAILED)
    assert (found.kind, found.rank, found.details["signal"]) == ("child-failed", 0, "SIGKILL")
    assert "exit code -9" in found.text


def test_what_ends_a_program_is_an_exception_and_no_warning() -> None:
    raised = (
        'Traceback (most recent call last):\n  File "a.py", line 1, in <module>\n    load()\n'
        "RuntimeError: PytorchStreamReader failed reading zip archive: failed finding central directory\n"
    )
    assert [(one.kind, one.level) for one in alarms(raised)] == [("exception", Level.CRITICAL)]


TRACEBACK = """\
[rank1]: Traceback (most recent call last):
[rank0]: Traceback (most recent call last):
[rank1]:   File "train.py", line 7, in <module>
[rank0]:   File "train.py", line 9, in <module>
[rank0]:     raise ValueError("CUDA out of memory. Tried to allocate nothing")
[rank1]:     model(batch)
[rank1]: RuntimeError: The size of tensor a (3) must match the size of tensor b (4)
[rank0]: ValueError: bad data
"""


def test_tracebacks_of_ranks_that_write_into_each_other() -> None:
    assert [(one.kind, one.rank, one.text) for one in events(TRACEBACK)] == [
        ("exception", 1, "RuntimeError: The size of tensor a (3) must match the size of tensor b (4)"),
        ("exception", 0, "ValueError: bad data"),
    ]


def test_a_chained_traceback_is_one_exception() -> None:
    text = (
        'Traceback (most recent call last):\n  File "a.py", line 1, in <module>\n    f()\nKeyError: 1\n\n'
        "During handling of the above exception, another exception occurred:\n\n"
        'Traceback (most recent call last):\n  File "a.py", line 3, in <module>\n    g()\nOSError: [Errno 28] No space left on device\n'
    )
    assert [one.kind for one in events(text)][-1] == "disk-full"


def test_leaving_on_purpose_is_no_exception() -> None:
    assert events('Traceback (most recent call last):\n  File "a.py", line 1\nSystemExit: 0') == []
    assert [
        one.kind for one in events('Traceback (most recent call last):\n  File "a.py", line 1\nKeyboardInterrupt')
    ] == ["interrupted"]


def test_an_exception_after_which_the_training_goes_on_is_no_end() -> None:
    lines = "".join(f"iter {step}: loss 2.5{step}, time 60.00ms, mfu 0.02%\n" for step in range(20))
    raised = 'Traceback (most recent call last):\n  File "data.py", line 1, in get\nValueError: bad image\n'
    assert [one.level for one in alarms(lines + raised)] == [Level.CRITICAL]
    assert [one.level for one in alarms(raised + lines)] == [Level.WARNING]


def waiting(
    rank: int,
    *,
    seq: int = 808,
    op: str = "ALLREDUCE",
    enqueued: int = 811,
    completed: int = 807,
    pg: str = "PG ID 0 PG GUID 0(default_pg)",
) -> str:
    """What a rank's watchdog prints, as torch 2.6 does (XPixelGroup/BasicSR#737)."""
    return (
        f"[rank{rank}]:[E626 06:24:44.903881913 ProcessGroupNCCL.cpp:616] [Rank {rank}] Watchdog caught collective operation "
        f"timeout: WorkNCCL(SeqNum={seq}, OpType={op}, NumelIn=9801523, NumelOut=9801523, Timeout(ms)=600000) ran for "
        f"600020 milliseconds before timing out.\n"
        f"[rank{rank}]:[E626 06:24:44.906457629 ProcessGroupNCCL.cpp:1785] [{pg} Rank {rank}] Exception (either an error or "
        f"timeout) detected by watchdog at work: {seq}, last enqueued NCCL work: {enqueued}, last completed NCCL work: {completed}.\n"
    )


def culprits(text: str) -> tuple[object, str]:
    (found,) = [one for one in alarms(text) if one.kind == "nccl-timeout"]
    return found.numbers["culprits"], found.message


def test_all_ranks_in_one_collective_point_at_none() -> None:
    found, message = culprits("".join(waiting(rank) for rank in range(4)))
    assert found == [] and "no rank is behind" in message and "ALLREDUCE number 808" in message


def test_the_rank_that_had_not_enqueued_it() -> None:
    text = waiting(0) + waiting(1) + waiting(3)
    dumped = (
        "[rank2]:[E626 06:24:45.1 ProcessGroupNCCL.cpp:684] [Rank 2] Received a dump signal due to a collective timeout "
        "from  rank 0 and we will try our best to dump the debug info. Last enqueued NCCL work: 806, last completed NCCL "
        "work: 806.\n"
    )
    found, message = culprits(text + dumped)
    assert found == [2] and "last enqueued work 806, while the others wait in 808" in message


def test_the_rank_that_says_nothing() -> None:
    said = "".join(f"[rank{rank}]: step {step} loss 2.{step}\n" for step in range(5) for rank in range(4))
    found, message = culprits(said + waiting(0) + waiting(1) + waiting(3))
    assert found == [2] and "rank 2 reported no timeout" in message


def test_the_rank_that_had_failed_before() -> None:
    failed = (
        '[rank2]: Traceback (most recent call last):\n[rank2]:   File "train.py", line 7, in <module>\n'
        "[rank2]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 2 has a total capacity of 79 GiB\n"
    )
    found, message = culprits(failed + waiting(0) + waiting(1) + waiting(2) + waiting(3))
    assert found == [2] and "had failed before: torch.OutOfMemoryError" in message


def test_ranks_in_different_operations() -> None:
    found, message = culprits(waiting(0) + waiting(1) + waiting(2, op="BROADCAST") + waiting(3))
    assert found == [2] and "rank 2: BROADCAST" in message
    found, message = culprits(waiting(0) + waiting(1, op="BROADCAST"))
    assert found == [] and "different operations" in message


def test_a_desync_report_names_the_ranks() -> None:
    report = (
        "\t - To our best knowledge, the lagging/dead/mismatched ranks that caused the desync are:\n"
        "\t     [1, 5] finished collective #807, but didn't join collective #808 (count from 1)\n"
    )
    found, _ = culprits(waiting(0) + report + waiting(2))
    assert found == [1, 5]


def test_counters_that_were_never_set_are_no_evidence() -> None:
    found, _ = culprits(waiting(0, enqueued=-1, completed=-1) + waiting(1, completed=76280750235782912))
    assert found == []


def test_one_rank_alone_is_too_few() -> None:
    found, message = culprits(waiting(0))
    assert found == [] and "too few ranks" in message


def test_the_overflows_of_a_start_are_normal_and_a_streak_is_not() -> None:
    def log(first: int) -> str:
        lines = []
        for step in range(400):
            if step < 6 or first <= step < first + 8:
                lines.append(
                    f"[2023-04-28 06:51:30,648] [INFO] [loss_scaler.py:181:update_scale] [deepspeed] OVERFLOW! Rank 0 Skipping step. Attempted loss scale: {2.0 ** (40 - len(lines) % 30):.0f}, reducing to 1"
                )
            lines.append(f"step: {step} loss: 2.{step % 7}31 lr: 0.001")
        return "\n".join(lines) + "\n"

    assert [one.kind for one in alarms(log(1000))] == []
    (found,) = alarms(log(300))
    assert found.kind == "skipped-steps" and found.level is Level.WARNING and 300 <= (found.step or 0) <= 308


def test_the_same_overflow_of_all_ranks_counts_once() -> None:
    """DeepSpeed prints a line per rank without its number (DeepSpeed-Chat's own training logs)."""
    text = "".join(
        f"step: {step} loss: 2.{step % 7}31 lr: 0.001\n" + "Grad overflow on iteration 76\n" * (8 if step == 76 else 0)
        for step in range(200)
    )
    assert alarms(text) == []


def test_only_one_rank() -> None:
    text = "[rank1]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n"
    assert [one.kind for one in health(text, rank=1).book.alarms] == ["oom"]
    assert health(text, rank=0).book.alarms == []


@pytest.mark.parametrize("after", ("", "train.py FAILED\nFailures:\n  <NO_OTHER_FAILURES>\n"))
def test_a_report_of_torchrun_that_the_log_cuts_off_is_an_event(after: str) -> None:
    text = "step 1 loss 2.0\ntorch.distributed.elastic.multiprocessing.errors.ChildFailedError: \n" + after
    (alarm,) = alarms(text)
    assert (alarm.kind, alarm.level, alarm.line) == ("child-failed", Level.CRITICAL, 2)
    assert "before the report names the rank" in alarm.message


@pytest.mark.parametrize("line", ("best_val_loss: inf", "epoch: 1 | best loss inf | loss 0.5"))
def test_the_best_loss_so_far_begins_at_infinity(line: str) -> None:
    assert alarms(line + "\n") == []


def test_ranks_that_no_line_names_are_told_as_the_silent_ones() -> None:
    found, message = culprits(waiting(0) + "".join(waiting(rank) for rank in range(9, 12)))
    assert found == [] and "ranks 1-8 said nothing" in message and "network" not in message
    assert "or their output is not in this log" in message
    # Their lines are in the log, and they are more than those that report.
    said = "".join(f"[rank{rank}]: step {step} loss 2.{step}\n" for step in range(5) for rank in range(9))
    found, message = culprits(said + waiting(0))
    assert found == [] and "ranks 1-8 said nothing: each of them hung, ended, or ran other code; look" in message
    # A rank of another group need not take part, and the numbers of a group are its own.
    group = "PG ID 2 PG GUID 5(tensor)"
    found, message = culprits("".join(waiting(rank, pg=group, enqueued=808) for rank in (0, 9)))
    assert found == [] and "said nothing" not in message
