"""Files and folders of logs: what is found, in which order, and how it is read and followed."""

from __future__ import annotations

import errno
import gzip
import json
import os
import sys
import threading
from pathlib import Path

import pytest

from ldlm_lint.monitor import sources
from ldlm_lint.monitor.records import every
from ldlm_lint.monitor.sources import MissingExtra, Source, SourceError

LINES = "iter 0: loss 4.5, time 60.25ms, mfu 0.02%\niter 10: loss 4.25, time 61.50ms, mfu 0.02%\n"


def _read(source: Source, **options):
    return [record for read in sources.read(source, **options) if read for record in read[1]]


def test_a_folder_gives_its_structured_sources_first(tmp_path):
    state = {"log_history": [{"loss": 2.5, "grad_norm": 0.5, "learning_rate": 1e-4, "epoch": 0.5, "step": 10}]}
    for step in (10, 20):
        folder = tmp_path / f"checkpoint-{step}"
        folder.mkdir()
        state["log_history"].append({"eval_loss": 2.25, "eval_runtime": 1.5, "epoch": 1.0, "step": step})
        (folder / "trainer_state.json").write_text(json.dumps(state))
        (folder / "config.json").write_text('{"loss": 1}\n')
    (tmp_path / "train.log").write_text(LINES)
    (tmp_path / "metrics.csv").write_text("epoch,step,train_loss,val_loss\n0,49,1.5,\n0,49,,1.25\n")
    (tmp_path / "data.csv").write_text("name,age\nx,3\n")
    (tmp_path / "log.txt").write_text('{"train_loss": 1.5, "train_lr": 0.1, "epoch": 0, "n_parameters": 5}\n')
    (tmp_path / "requirements.txt").write_text("torch\n")
    found = sources.find(str(tmp_path))
    assert [(one.kind, one.name.replace(os.sep, "/")) for one in found] == [
        ("trainer_state", "checkpoint-20/trainer_state.json"),
        ("csv", "metrics.csv"),
        ("jsonl", "log.txt"),
        ("text", "train.log"),
    ]


def test_the_history_of_a_trainer(tmp_path):
    history = [
        {"loss": 2.5, "grad_norm": float("nan"), "learning_rate": 1e-4, "epoch": 0.5, "step": 10},
        {"eval_loss": 2.25, "eval_runtime": 1.5, "epoch": 1.0, "step": 20},
        {"train_runtime": 9.5, "train_loss": 2.4, "epoch": 1.0, "step": 20},
    ]
    file = tmp_path / "trainer_state.json"
    file.write_text(json.dumps({"log_history": history}))
    train, val, end = _read(*sources.find(str(file)))
    assert (train.template.name, train.split, train.step, train.epoch) == ("huggingface", "train", 10, 0.5)
    assert train.get("loss") == 2.5
    assert repr(train.get("grad_norm")) == "nan"
    assert (val.split, val.step, val.get("loss")) == ("val", 20, 2.25)
    assert end.get("loss") is None


def test_rows_of_lightning_are_of_their_own_split(tmp_path):
    file = tmp_path / "metrics.csv"
    file.write_text("epoch,lr-AdamW,step,train_loss,val_loss\n,0.1,49,1.5,\n0,,99,,1.25\n")
    train, val = _read(*sources.find(str(file)))
    assert (train.split, train.step, train.epoch, train.get("loss")) == ("train", 49, None, 1.5)
    assert train.get("lr") is None
    assert (val.split, val.step, val.epoch, val.get("loss")) == ("val", 99, 0.0, 1.25)


def test_a_missing_path_and_a_broken_state(tmp_path):
    with pytest.raises(SourceError, match="no such file"):
        sources.find(str(tmp_path / "nothing"))
    file = tmp_path / "trainer_state.json"
    file.write_text("{")
    with pytest.raises(SourceError, match="not the state of a trainer"):
        _read(*sources.find(str(file)))
    assert sources.find(str(tmp_path / "empty")) == [] if (tmp_path / "empty").mkdir() else True


def test_a_log_in_utf_16(tmp_path):
    file = tmp_path / "train.log"
    file.write_text(LINES, encoding="utf-16")
    assert [one.step for one in _read(*sources.find(str(file)))] == [0, 10]


def _follow(file, changes):
    """The records that are read of a file while it changes, one change each time there is nothing new."""
    pending = iter(changes)
    done = []

    def stop():
        change = next(pending, None)
        if change is None:
            return True
        change()
        return bool(done)

    return _read(Source(str(file), sources.kind_of(str(file))), follow=True, stop=stop, poll=0.0)


def _append(file, text):
    def change():
        with open(file, "a") as opened:
            opened.write(text)

    return change


def _line(step):
    return f"iter {step}: loss 2.5, time 60.25ms, mfu 0.02%\n"


def test_following_goes_on_through_rotation_and_truncation(tmp_path):
    file = tmp_path / "train.log"
    file.write_text(LINES)

    def rotate():
        os.replace(file, tmp_path / "train.log.1")
        file.write_text(_line(40))

    changes = [
        _append(file, _line(20)[:9]),
        _append(file, _line(20)[9:]),
        lambda: file.write_text(_line(30)),
        rotate,
        _append(file, _line(50)),
    ]
    assert [one.step for one in _follow(file, changes)] == [0, 10, 20, 30, 40, 50]


@pytest.mark.parametrize("replaced", ["folder", "pipe", "device", "unreadable"])
def test_following_waits_while_something_else_has_the_name(tmp_path, monkeypatch, replaced):
    file = tmp_path / "train.log"
    file.write_text(LINES)
    opened = Path.open

    def replace():
        file.unlink()
        if replaced == "folder":
            file.mkdir()
        elif replaced == "pipe":
            os.mkfifo(file)
        elif replaced == "device":
            file.symlink_to("/dev/zero")
        else:
            file.write_text(_line(30))
            monkeypatch.setattr(Path, "open", _refused)

    def restore():
        monkeypatch.setattr(Path, "open", opened)
        if replaced == "folder":
            file.rmdir()
        else:
            file.unlink()
        file.write_text(_line(40))

    assert [one.step for one in _follow(file, [replace, lambda: None, restore, lambda: None])] == [0, 10, 40]


def _refused(*_, **__):
    raise PermissionError(errno.EACCES, "Permission denied")


def test_a_pipe_is_read_as_a_log(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_text, args=(LINES,))
    writer.start()
    assert [one.step for one in _read(Source(str(pipe), "text"))] == [0, 10]
    writer.join()


def test_following_a_history_gives_only_what_is_new(tmp_path):
    file = tmp_path / "metrics.csv"
    file.write_text("epoch,step,train_loss\n0,1,2.5\n")
    changes = [_append(file, "0,2,2.25\n"), _append(file, "0,3,"), _append(file, "2.0\n"), lambda: None]
    found = _follow(file, changes)
    assert [(one.step, one.get("loss")) for one in found] == [(1, 2.5), (2, 2.25), (3, 2.0)]


def test_a_column_that_is_added_does_not_give_the_rows_again(tmp_path):
    file = tmp_path / "metrics.csv"
    file.write_text("epoch,step,train_loss\n0,1,2.5\n0,2,2.25\n")
    rewritten = "epoch,step,train_loss,val_loss\n0,1,2.5,\n0,2,2.25,\n0,2,,2.75\n"
    changes = [
        lambda: file.write_text(""),  # Lightning is writing it
        lambda: file.write_text(rewritten[:12]),
        lambda: file.write_text(rewritten[:48]),
        lambda: file.write_text(rewritten),
        _append(file, "1,3,2.0,\n"),
        lambda: file.write_text("epoch,step,loss\n0,1,3.5\n"),  # another run
        lambda: None,
    ]
    found = [(one.step, one.split, one.get("loss")) for one in _follow(file, changes)]
    assert found == [(1, "train", 2.5), (2, "train", 2.25), (2, "val", 2.75), (3, "train", 2.0), (1, "", 3.5)]


def test_task_numbers_of_srun_are_found_in_a_file(tmp_path):
    file = tmp_path / "job.out"
    file.write_text("".join(f"{step % 2}: {_line(step // 2 * 10)}" for step in range(10)))
    found = list(every(read for read in sources.read(Source(str(file), "text")) if read))
    assert {one.rank for one in found} == {0, 1}
    assert len(found) == 10


def test_event_files_need_a_package_that_is_named(tmp_path, monkeypatch):
    (tmp_path / "events.out.tfevents.1.host").write_bytes(b"")
    monkeypatch.setitem(sys.modules, "tensorboard.backend.event_processing.event_file_loader", None)
    monkeypatch.setitem(sys.modules, "tensorboard", None)
    with pytest.raises(MissingExtra, match=r"pip install .\.\[monitor\]"):
        _read(*sources.find(str(tmp_path)))


@pytest.mark.slow
def test_scalars_of_tensorboard(tmp_path):
    writers = pytest.importorskip("tensorboard.summary.writer.event_file_writer")
    from tensorboard.compat.proto import event_pb2, summary_pb2

    writer = writers.EventFileWriter(str(tmp_path))
    for step in range(3):
        values = [
            summary_pb2.Summary.Value(tag=tag, simple_value=step + 0.5) for tag in ("train/loss", "val/loss", "GPU/x")
        ]
        writer.add_event(event_pb2.Event(wall_time=10.0 + step, step=step, summary=summary_pb2.Summary(value=values)))
    writer.close()
    found = _read(*sources.find(str(tmp_path)))
    assert [(one.step, one.time) for one in found if one.get("loss") and one.split == "val"] == [
        (0, 10.0),
        (1, 11.0),
        (2, 12.0),
    ]
    assert len({one.template for one in found}) == 3


def test_a_compressed_log_is_read(tmp_path):
    for name, text in (("train.log.1.gz", LINES), ("metrics.jsonl.gz", '{"loss": 2.5, "step": 10}\n')):
        (tmp_path / name).write_bytes(gzip.compress(text.encode()))
    (tmp_path / "weights.bin.gz").write_bytes(gzip.compress(b"x"))
    found = sources.find(str(tmp_path))
    assert [(one.kind, one.name) for one in found] == [("jsonl", "metrics.jsonl.gz"), ("text", "train.log.1.gz")]
    assert [[record.get("loss") for record in _read(one)] for one in found] == [[2.5], [4.5, 4.25]]
    (alone,) = sources.find(str(tmp_path / "train.log.1.gz"))
    assert len(_read(alone, follow=True, stop=lambda: True)) == 2
    # A file that only has the name.
    (tmp_path / "train.log.1.gz").write_text(LINES)
    assert len(_read(alone)) == 2


def test_a_compressed_log_that_is_cut_off(tmp_path):
    path = tmp_path / "train.log.gz"
    path.write_bytes(gzip.compress(LINES.encode() * 5000)[:-20])
    with pytest.raises(SourceError, match="damaged gzip file"):
        _read(Source(str(path), "text"))
