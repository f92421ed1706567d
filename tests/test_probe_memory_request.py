"""What the words of `ldlm-lint probe memory` stand for, and what it says of figures. Needs no torch."""

from __future__ import annotations

import io
import subprocess
import sys

import pytest
from collected import for_every

from ldlm_lint.probe.memory.request import (
    Request,
    RequestError,
    Shape,
    batch,
    dtype,
    floating,
    from_plain,
    size,
    to_plain,
)
from ldlm_lint.report.memory import answer, write_memory


@for_every(
    ("text", "expected"),
    [("80GB", 80 * 10**9), ("80 GiB", 80 * 2**30), ("0.5tb", 5 * 10**11), ("1024", 1024), ("1.5kib", 1536), ("7b", 7)],
)
def test_sizes(text, expected):
    assert size(text) == expected


@for_every("text", ["", "80 gigabytes", "GB", "-1GB", "0GB", "80G", "nan", "1e3GB"])
def test_what_is_no_size(text):
    with pytest.raises(RequestError):
        size(text)


def test_rows_and_shapes():
    assert batch([]) == (0, ())
    assert batch(["16"]) == (16, ())
    assert batch(["8x1024:int64", "8:bf16"])[1] == (Shape("", (8, 1024), "int64"), Shape("", (8,), "bfloat16"))
    assert batch(["pixel_values:2x3X8x8"])[1] == (Shape("pixel_values", (2, 3, 8, 8)),)
    assert batch(["16", "16"])[1] == (Shape("", (16,)), Shape("", (16,)))


@for_every(
    "words", [["0"], ["8x"], ["x8"], ["8x1024:int65"], ["a:b:c:d"], ["input_ids"], ["8:8"], ["-3"], ["1.5"], ["a b:3"]]
)
def test_what_is_no_batch(words):
    with pytest.raises(RequestError):
        batch(words)


def test_element_types():
    assert [dtype(one) for one in ("bf16", "torch.float16", "LONG", "bool")] == ["bfloat16", "float16", "int64", "bool"]
    assert floating("half") == "float16"
    for text in ("int64", "bfloat", ""):
        with pytest.raises(RequestError):
            floating(text)


def test_a_request_travels_as_plain_values():
    request = Request("a:b", shapes=(Shape("x", (1, 2), "int64"),), dtype="bfloat16")
    assert from_plain(to_plain(request)) == request


def test_the_answer_is_about_the_model_as_it_is_and_names_what_would_fit():
    as_is, blocks = _variant("as it is", 100), _variant("each block checkpointed", 40)
    assert answer({"variants": [as_is, blocks], "loss": True}, 200).startswith("It fits into 200 B as it is: 100 B (50%) are left")
    assert answer({"variants": [as_is, blocks], "loss": True}, 100).startswith("It fits")
    assert answer({"variants": [as_is, blocks], "loss": True}, 60) == (
        "It does not fit into 60 B: 40 B too much as it is; with each block checkpointed it fits, and 20 B are left."
    )
    assert answer({"variants": [as_is, blocks], "loss": True}, 10).endswith("and also with checkpoints.")
    assert answer({"variants": [as_is], "loss": True}, 10) == "It does not fit into 10 B: 90 B too much as it is."
    failed = _variant("each block checkpointed", 0, error="boom")
    assert answer({"variants": [as_is, failed], "loss": True}, 60).endswith("and also with checkpoints.")


def test_the_table_shows_every_variant_and_the_reason_of_one_that_failed():
    memory = {
        "request": {"optimizer": "adamw", "device": "cuda", "autocast": "bfloat16", "real": False},
        "device": "fake tensors",
        "model": "a.Model",
        "blocks": {"Block": 3},
        "parameter_types": {"float32": 1234},
        "parameters_frozen": 0,
        "batch": ["(8, 3) int64"],
        "variants": [_variant("as it is", 2**30), _variant("whole model checkpointed", 0, error="boom\x1b[31m")],
    }
    stream = io.StringIO()
    write_memory(memory, stream, notes=("something assumed",), capacity=2**30)
    text = stream.getvalue()
    assert "1.00 GiB" in text and "3 Block" in text and "autocast bfloat16" in text
    assert "whole model checkpointed: the step failed: boom" in text and "\x1b" not in text
    assert "something assumed" in text and "not in these figures" in text
    assert text.endswith("are left for everything that is not counted.\n")


def test_the_command_without_its_work_imports_no_torch():
    code = (
        "import sys; import ldlm_lint.commands.probe_memory, ldlm_lint.probe.memory.launch, ldlm_lint.report.memory;"
        "sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize(
    "words",
    [
        ["m:f", "--fits", "80G"],
        ["m:f", "--batch", "x"],
        ["m:f", "--dtype", "int8"],
        ["m:f", "--autocast", "bf17"],
        ["m:f", "--optimizer", "lion"],
        ["m:f", "--max-seconds", "0"],
        [],
    ],
)
def test_wrong_words_end_with_2_before_anything_runs(words, capsys):
    from ldlm_lint.cli import main

    try:
        code = main(["probe", "memory", *words])
    except SystemExit as error:
        code = error.code
    assert code == 2
    assert "Traceback" not in capsys.readouterr().err


def _variant(name, peak, error=""):
    kinds = ("parameters", "gradients", "optimizer state", "activations", "temporaries", "inputs", "buffers")
    return {
        "name": name,
        "peak_bytes": peak,
        "peak_phase": "backward",
        "bytes_at_peak": dict.fromkeys(kinds, 0) | {"activations": peak},
        "kept_for_backward_bytes": 0,
        "saved_by_autograd_bytes": 0,
        "recomputed_in_backward": {},
        "error": error,
    }
