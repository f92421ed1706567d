"""How messages, related notes and fixes read: what happens, why it costs, what to do, in plain words with exact names."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from collected import for_every
from harness import PROJECTS, Case, cases, lint, materialize

from ldlm_lint import engine
from ldlm_lint.config import Config
from ldlm_lint.model import Finding, Report
from ldlm_lint.rules import by_symbol
from ldlm_lint.wording import LONGEST, begins_loop, function_begun, listed, located, quoted

# A message is read at a terminal and in an annotation; an expression of the user's may make it longer.
LONGEST_MESSAGE = 310
LONGEST_NOTE = 120
# Personifications, riddles and words that the field does not use.
ARCHAIC = (
    *("speaks", "heard", "stands in", "stands there", "lives in", "lies on", "says nothing", "without a word", "of course"),
    *("is none", "nobody", "whoever", "anew", "meanwhile", "is for the author", "is the author's to say", "comes into force"),
    *("come into force", "may be", "may not", "(it holds", "and here", "goes to this call", "hangs on", "behind it"),
)
CODE = re.compile(r"`` .*? ``|`[^`]*`")


class Text(NamedTuple):
    """A text of a finding: of which rule, and what part of it."""

    symbol: str
    part: str
    text: str


def texts_of(finding: Finding) -> Iterator[Text]:
    rule = by_symbol[finding.rule]
    yield Text(finding.rule, "message", rule.text(finding.args))
    yield from (Text(finding.rule, "note", one.message) for one in finding.related)
    if finding.fix is not None:
        yield Text(finding.rule, "title", finding.fix.title)
        yield Text(finding.rule, "reason", finding.fix.reason)


pytestmark = pytest.mark.xdist_group("fixtures")


@pytest.fixture(scope="module")
def texts(reports: dict[Case, Report]) -> list[Text]:
    """Every text of every finding of the fixtures, each once."""
    whole = [engine.run([one], Config.load(one), base=one) for one in sorted(PROJECTS.iterdir()) if one.is_dir()]
    found = {text for report in (*reports.values(), *whole) for finding in report.findings for text in texts_of(finding)}
    return sorted(one for one in found if one.text)


def prose(text: str) -> str:
    """A text without the code that it quotes."""
    return CODE.sub("it", text)


def test_backquotes_are_balanced_and_quote_something(texts: list[Text]) -> None:
    assert [one for one in texts if one.text.count("`") % 2 or "``" in one.text.replace("`` ", "").replace(" ``", "")] == []


def test_no_text_has_a_template_left_over_or_two_blanks(texts: list[Text]) -> None:
    assert [one for one in texts if "%(" in one.text or "  " in prose(one.text)] == []
    assert [one for one in texts if one.part == "message" and re.search(r"\bNone\b|[{}]", prose(one.text))] == []


def test_a_shortened_expression_keeps_its_beginning(texts: list[Text]) -> None:
    assert [one for one in texts if re.search(r"`(?:\.\.\.|…)|…", one.text)] == []


def test_a_message_has_at_most_two_sentences_and_a_bounded_length(texts: list[Text]) -> None:
    messages = [one for one in texts if one.part == "message"]
    assert [one for one in messages if len(re.findall(r"[.?!] [A-Za-z`]", prose(one.text))) > 1] == []
    # What the user wrote counts for no more than two short names.
    assert [one for one in messages if len(CODE.sub("`name`", one.text)) > LONGEST_MESSAGE] == []


def test_a_note_and_a_title_are_short(texts: list[Text]) -> None:
    assert [one for one in texts if one.part == "note" and len(one.text) > LONGEST_NOTE] == []


def test_no_text_is_archaic_or_a_riddle(texts: list[Text]) -> None:
    found = [
        (word, one)
        for one in texts
        for word in ARCHAIC
        if re.search(rf"(?<!\w){re.escape(word)}(?!\w)", prose(one.text))
    ]
    assert found == []


@for_every("symbol", sorted(by_symbol))
def test_the_texts_of_a_rule_are_not_archaic(symbol: str) -> None:
    rule = by_symbol[symbol]
    assert [one for text in (rule.message, rule.summary) for one in ARCHAIC if one in prose(text)] == []


def test_a_line_that_a_message_names_has_a_name_itself(texts: list[Text]) -> None:
    """``(line 12)`` alone says nothing of what is there."""
    assert [one for one in texts if one.part == "message" and re.search(r"^\(?line \d|[a-z]{2,} \((?:lines? \d+|[\w.]+:\d+)\)", one.text)] == []


# The worst messages of old, and what they say now.
EXPECTED = {
    ("reentrant-checkpoint-misuse", "bad"): "`checkpoint()` is called with `context=` and `mask=`, which the reentrant implementation (used when "
    "`use_reentrant` is omitted) rejects: this line raises ValueError as soon as it runs; pass `use_reentrant=False`",
    ("deprecated-amp-api", "bad"): '`torch.cuda.amp.autocast` is deprecated and warns since torch 2.4; write `torch.amp.autocast("cuda", ...)`, which does the same',
    ("gradient-accumulation-fixed", "bad_shapes"): "`--gradient_accumulation_steps` is always 2, but the number of GPUs can change (`--num_gpus $COUNT`): "
    "twice the GPUs silently doubles the effective batch size; compute the steps from a target batch size",
    ("dataloader-too-many-workers", "bad"): "16 DataLoader workers per rank means 16 x (ranks on the node) processes on one node's CPU cores and memory, which "
    "can slow loading down; start with 8",
    ("optimizer-not-fused", "bad"): "AdamW runs torch's default CUDA implementation, which launches more kernels per step than the fused one; torch never picks "
    "fused by itself: pass `fused=True`",
    ("missing-activation-checkpointing", "bad"): "`Denoiser` keeps the activations of every `Block` until the backward pass (24 of width "
    "1024: 816 KiB per token, 82 with checkpointing), and nothing in the project can switch recomputation on for it: if memory limits the batch or sequence length, checkpoint each layer (about one extra forward pass)",
    ("batch-size-drift", "bad"): "`GRAD_ACCUM` is an integer division: where `MICRO_BATCH * NUM_GPUS` does not divide `TARGET_BATCH`, the remainder is lost and "
    "training runs with another batch size than configured; stop with an error when a remainder is left",
    ("dataloader-without-prefetch", "bad"): "`prefetch_factor` is left at 2 batches per worker: when some batches load slowly this buffer can run empty and the "
    "GPU waits; try `prefetch_factor=4` (uses more host memory)",
    ("host-sync-in-training-loop", "bad_epoch_names"): "`loss.item()` makes Python wait in every step of the loop at line 9 until the GPU has finished all queued "
    "work, and the GPU then idles until new kernels arrive: keep `loss.detach()` and call `.item()` only when you log",
    ("host-sync-in-training-loop", "bad_codes"): "the condition `torch.any(expired)` makes Python wait in every step of the loop at line 36 until the GPU "
    "has finished all queued work, and the GPU then idles until new kernels arrive: decide it on the GPU: `torch.where`, `clamp` and `torch.maximum` "
    "take tensors",
    ("checkpoint-without-use-reentrant", "bad"): "`checkpoint()` without `use_reentrant` falls back to the reentrant implementation, which silently drops gradients "
    "when no tensor input requires one and rejects keyword arguments: pass `use_reentrant=False`",
    ("unbounded-checkpoints", "bad_abstract"): "the file name contains `epoch`, so every save makes a new file, and nothing deletes old ones: the disk fills until a "
    "save fails; keep only the last few",
}


@for_every(("symbol", "name"), EXPECTED, ids=lambda one: str(one))
def test_the_ten_worst_messages_read_well(symbol: str, name: str, tmp_path: Path) -> None:
    (case,) = (one for one in cases() if (one.symbol, one.path.stem) == (symbol, name))
    report = lint(materialize(case, case.path, tmp_path / "project"))
    assert EXPECTED[symbol, name] in {by_symbol[symbol].text(one.args) for one in report.findings if one.rule == symbol}


STEP = """\
import torch
from torch import optim


def train(model, loader, threshold):
    optimizer = optim.SGD(model.cuda().parameters(), lr=0.1)
    for batch in loader:
        batch = batch.cuda()
        loss = model(batch).mean()
        loss.backward()
        optimizer.step()
        {line}
        {use}
"""
EARLY = "compute it on the CPU before the batch is moved, or use `torch.where`"
DECIDED = "decide it on the GPU: `torch.where`, `clamp` and `torch.maximum` take tensors"
RUNS = "it decides which code runs, and no tensor operation can: decide only every N steps, or count in Python"
RUNS_EARLY = "it decides which code runs: compute it on the CPU before the batch is moved, or decide only every N steps"
INDEXED = "use `index_select` or `gather`, which take the index as a tensor"
SIZED = "use a fixed size and a mask, or read all sizes with one `.tolist()`"
LOGGED = "keep `loss.detach()` and call `.item()` only when you log"
KEPT = "keep `loss.detach()` if you only log it, otherwise use it as a tensor: `torch.where`, `clamp` and `torch.maximum` take one"
WEIGHED = "keep all rows and weigh them with the mask: `(x * mask).sum() / mask.sum()`"
COUNTED = "only the GPU knows the size of its result; use a mask or a fixed size"
SIZE_FIRST = "compute the size on the CPU before the batch is moved"
SELECTED = "select on the CPU before the batch is moved, or keep all rows and weigh them with the mask"
EXTREME = "`torch.maximum`, `torch.minimum` and `clamp` give a tensor without a wait"


@for_every(
    ("line", "use", "advice"),
    [
        pytest.param("print(loss.item())", "pass", LOGGED, id="shown"),
        pytest.param("value = loss.item()", "print(value)", LOGGED, id="a-variable-that-is-shown"),
        pytest.param("total = {'loss': loss.item()}", "pass", LOGGED, id="collected"),
        pytest.param("value = loss.item()", "model.note(batch[value])", INDEXED, id="an-index"),
        pytest.param("rest = batch[: int(loss.item())]", "pass", SIZED, id="the-end-of-a-slice"),
        pytest.param("value = 2 * loss.item()", "while value > threshold: break", DECIDED, id="a-decision"),
        pytest.param("values = [loss.item() for _ in range(3)]", "rest = batch[values]", INDEXED, id="a-list-of-indexes"),
        pytest.param("kept = loss[loss > 0]", "pass", WEIGHED, id="rows-by-what-the-model-computed"),
        pytest.param("places = (loss > 0).nonzero()", "pass", COUNTED, id="places-in-what-the-model-computed"),
        pytest.param("if (loss > 0).all(): loss = 2 * loss", "pass", DECIDED, id="a-decision-of-the-model"),
        pytest.param("if (loss > 0).all(): break", "pass", RUNS, id="a-decision-to-leave"),
        pytest.param("if int(loss.sum().item()) % 5 == 0: model.save()", "pass", RUNS, id="a-decision-to-save"),
        pytest.param("if (loss > 0).all(): model.kept.append(loss)", "pass", DECIDED, id="a-decision-to-collect"),
        pytest.param("loss = loss / max(loss.sum(), 1)", "pass", EXTREME, id="a-lower-bound"),
        pytest.param("counts = loss.sum(0)", "rows = [int(counts[i]) for i in range(3)]", "read all of them at once with one `.tolist()`", id="one-after-another"),
        pytest.param("if (batch > 0).all(): loss = 2 * loss", "pass", EARLY, id="a-decision-of-the-batch"),
        pytest.param("if (batch > 0).all(): break", "pass", RUNS_EARLY, id="a-decision-of-the-batch-to-leave"),
        pytest.param("count = int((batch > 0).sum())", "model.note(batch[:count])", SIZE_FIRST, id="a-size-of-the-batch"),
        pytest.param("rows = batch[batch > 0]", "pass", SELECTED, id="rows-of-the-batch"),
        pytest.param("rest = model.rest(loss.item())", "pass", KEPT, id="handed-to-another-function"),
        pytest.param("if not torch.isfinite(loss): break", "pass", "use `torch.where`, or test only every N steps", id="a-finite-loss"),
        pytest.param("print(f'{loss:.2f}')", "pass", "show it only every N steps", id="a-text"),
        pytest.param("model.seen.append(loss.cpu())", "pass", "keep `loss.detach()` on the GPU and copy it to the CPU only when you log", id="a-copy"),
    ],
)
def test_the_advice_fits_what_the_value_is_read_for(line: str, use: str, advice: str, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(STEP.format(line=line, use=use))
    report = engine.run([tmp_path], Config.load(tmp_path), base=tmp_path)
    found = [by_symbol[one.rule].text(one.args) for one in report.findings if one.rule == "host-sync-in-training-loop"]
    assert [one.partition("arrive: ")[2] for one in found] == [advice]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        pytest.param("loss.item()", "`loss.item()`", id="short"),
        pytest.param("a(\n    b,\n)", "`a( b, )`", id="one-line"),
        pytest.param("echo `nproc`", "`` echo `nproc` ``", id="a-backquote"),
        pytest.param("16", "16", id="a-number"),
        pytest.param("loss" * 30, f"`{('loss' * 30)[: LONGEST - 3]}...`", id="long"),
    ],
)
def test_code_is_quoted_from_its_beginning_on(text: str, shown: str) -> None:
    assert quoted(text) == shown


def test_names_and_places_are_listed() -> None:
    assert listed(["a"]) == "`a`"
    assert listed(["a", "b", "c"]) == "`a`, `b` and `c`"
    assert located("/p/a.py", 3, "/p/a.py") == "line 3"
    assert located("/p/a.py", 3, "/p/b.py") == "a.py:3"


@for_every(
    ("line", "loop", "function"),
    [
        ("for x in y:", True, ""),
        ("async for x in y:", True, ""),
        ("while True:", True, ""),
        ("def train(x):", False, "train"),
        ("async def step():", False, "step"),
        ("fortune(x)", False, ""),
        ("", False, ""),
    ],
)
def test_what_a_line_begins(line: str, loop: bool, function: str) -> None:
    assert (begins_loop(line), function_begun(line)) == (loop, function)
