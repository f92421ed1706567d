"""The pages of ``bench --html`` and ``probe ... --html``: what they hold, and that no text of a run acts in them."""

from __future__ import annotations

import json
import math
import random
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from calling import Run as Command
from dossiers import INCONCLUSIVE, REFUTED, UNUSED, VERIFIED, judged, site, written
from pages import Element, checked

from ldlm_lint.bench import compare
from ldlm_lint.bench import page as bench
from ldlm_lint.bench.invocation import Invocation
from ldlm_lint.bench.losses import losses
from ldlm_lint.bench.samples import Logged, Sample
from ldlm_lint.bench.trees import AFTER, AGAIN, BEFORE
from ldlm_lint.evidence.model import Environment, Evidence, Judgement, Measurement, Run, Scope, Site, Status
from ldlm_lint.report.html import intervals, memory, verdicts
from ldlm_lint.report.html.charts import Scale

ROOT = Path(__file__).resolve().parent.parent
RECORD = ROOT / "docs" / "evidence" / "latent-captions"
HOSTILE = "</code></script><script>alert(1)</script><img src=x onerror=alert(2)>\"' \u202etxt.exe\x1b[2J\x00\udcff {{ 7 * 7 }}"
PROGRAM = 'for step in range(5):\n    print(f"iter {step}: loss {2.5 - step / 10:.4f}, time 3.00ms, mfu 1.00%")\n'
CURVE = {step: 2.5 * 0.9**step for step in range(20)}


def samples(gain: float, *, after: dict[int, float] | None = None, memory: float = 1.0) -> list[Sample]:
    """Seven rounds whose second tree takes ``1 / gain`` of the time and prints the losses ``after``."""
    draw = random.Random(0)
    found = []
    for number in range(7):
        for arm in (BEFORE, AGAIN, AFTER):
            second = arm == AFTER
            step = 0.05 * draw.lognormvariate(0, 0.01) / (gain if second else 1)
            curve = after if second and after is not None else CURVE
            size = 8e9 * (memory if second else 1)
            found.append(Sample(arm, number, 20 * step, 20 * step, 20, step, size, "device", Logged(curve), False))
    return found


def compared(found: list[Sample], *, fixes: dict[str, int] | None = None, **invocation: object) -> bench.Compared:
    called = Invocation(("torchrun", "train.py", "--api-key=abc"), **{"unsafe": True, **invocation})
    results = compare.compared(found), losses(found)
    counted = {"optimizer-not-fused": 1} if fixes is None else fixes
    return bench.Compared(*results, found, counted, Environment("3.12.1", device_name="A CPU"), ["a note"], called)


def commands(page: Element) -> list[str]:
    return [code.text for box in page.all("div", kind="command") for code in box.all("code")]


def heading(page: Element) -> str:
    (found,) = page.all("h1")
    return found.text


@pytest.fixture
def trees(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "train.py").write_text(PROGRAM)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_page_of_a_comparison_has_the_figures_of_its_json(trees: Path, run: Command) -> None:
    options = ("--rounds", "5", "--warmup", "0", "--json", "out.json", "--html", "out.html")
    code, out, _ = run("bench", "--before", "a", "--after", "b", *options, "--", sys.executable, "train.py")
    assert code in (0, 1) and "whole run" in out
    page = checked((trees / "out.html").read_text(encoding="utf-8"))
    values = json.loads((trees / "out.json").read_text())
    (table,) = (one for one in page.all("table") if "A/A" in one.text)
    rows = [row.text for row in table.all("tr")][1:]
    assert len(rows) == len(values["comparisons"]) == len(list(page.all("circle", kind="point"))) - 1
    for row, one in zip(rows, values["comparisons"], strict=True):
        gain = one["gain"]
        assert one["quantity"] in row and f"{gain['value']:.3f}x [{gain['ci95'][0]:.3f}, {gain['ci95'][1]:.3f}]" in row
        assert f"within {one['noise_band'] - 1:.1%}" in row
    (runs,) = (one for one in page.all("table") if "peak memory, MiB" in one.text)
    seconds = [list(row.all("td"))[2].text for row in runs.all("tr") if list(row.all("td"))]
    assert sorted(seconds) == sorted(f"{one['seconds']:.3f}" for one in values["runs"])
    assert "identical in all printed digits at 5 common steps" in page.text
    assert all(note in page.text.replace("`", "") or note[1:] in page.text for note in values["notes"])


def test_the_answer_comes_first_with_its_interval() -> None:
    found = compared(samples(1.3))
    page = checked(bench.page(found))
    (step,) = (one for one in found.comparisons if one.quantity.name == "step time")
    assert heading(page) == f"The fixes make a step {step.gain.value:.2f}x faster [{step.gain.low:.2f}, {step.gain.high:.2f}]"
    assert commands(page)[:2] == ["ldlm-lint check --diff --unsafe-fixes", "ldlm-lint check --fix --unsafe-fixes"]
    assert "torchrun train.py '--api-key=***'" in commands(page)[-1] and "abc" not in page.text


def test_what_is_worse_is_said_first_and_as_a_ratio_above_one() -> None:
    found = compared(samples(1.3, memory=1.5), fixes={"a-rule": 2, "b-rule": 3})
    page = checked(bench.page(found))
    assert heading(page).startswith("The fixes need 1.50x more peak memory [1.50, 1.50] and make a step 1.3")
    alone = "ldlm-lint bench --select {} --unsafe-fixes -- torchrun train.py '--api-key=***'"
    assert commands(page)[:2] == [alone.format("b-rule"), alone.format("a-rule")]
    assert "--fix" not in " ".join(commands(page)).replace("--unsafe-fixes", "")


def test_equal_trees_read_as_no_difference_and_unclear_ones_ask_for_more_rounds() -> None:
    equal = checked(bench.page(compared(samples(1.0), fixes={}, unsafe=False, before="v 1", after="v2")))
    assert heading(equal) == "No difference seen in 7 rounds"
    assert commands(equal)[0] == "ldlm-lint bench --before 'v 1' --after v2 -- torchrun train.py '--api-key=***'"
    few = [one for one in samples(1.3) if one.round < 3]
    page = checked(bench.page(compared(few)))
    assert heading(page) == "Cannot tell: too few rounds (3, at least 5 are needed)"
    assert any("--rounds 10 --" in one for one in commands(page))
    (open_,) = page.all("section", kind="caveat")
    assert "step time: 3 rounds are too few" in open_.text


def test_losses_that_are_not_finite_are_marked_from_their_first_step_to_their_last() -> None:
    nan = {step: math.nan if step >= 10 else loss for step, loss in CURVE.items()}
    page = checked(bench.page(compared(samples(1.3, after=nan))))
    assert heading(page) == "The losses of the two trees differ: NaN from step 10 in after"
    (chart,) = page.all("figure", id="chart-losses")
    (mark,) = [one for one in chart.all("rect", kind="lost") if one.attributes["x"].endswith("%")]  # not the legend's
    assert float(mark.attributes["x"][:-1]) == pytest.approx(100 * 10 / 19, abs=0.1)
    assert float(mark.attributes["width"][:-1]) == pytest.approx(100 * 9 / 19, abs=0.1)
    assert not list(checked(bench.page(compared(samples(1.3)))).all("rect", kind="lost"))


def test_without_a_loss_the_page_says_so() -> None:
    page = checked(bench.page(compared(samples(1.3, after={}))))
    assert "it is unknown whether both trees train alike" in page.text
    assert "Print the loss with its step" in page.text


def test_an_interval_is_drawn_where_its_axis_says() -> None:
    one = intervals.Interval("a", 1.5, 1.2, 2.0, 1.1, (1.05,), "1.5x")
    (strip,), axis = intervals.chart([one]).strips, intervals.chart([one])
    low, high = math.log(1 / 1.12), math.log(2.0)
    margin = 0.04 * (high - low)
    scale = Scale(math.exp(low - margin), math.exp(high + margin), True)
    for shown, ratio in ((strip.value, 1.5), (strip.low, 1.2), (strip.high, 2.0), (axis.one, 1.0), (strip.bars[0], 1.05)):
        assert float(shown[:-1]) == pytest.approx(100 * scale.share(ratio), abs=0.01)
    width = scale.share(1.1) - scale.share(1 / 1.1)
    assert float(strip.noise_width[:-1]) == pytest.approx(100 * width, abs=0.01)


@pytest.mark.parametrize("bad", [math.nan, math.inf, 0.0, -1.0, 1e300])
def test_a_ratio_that_no_axis_can_hold_is_left_out(bad: float) -> None:
    good = intervals.Interval("a", 1.5, 1.2, 2.0, 1.1, (1.05,), "1.5x")
    for name in ("value", "low", "high", "band"):
        assert len(intervals.chart([good, replace(good, **{name: bad})]).strips) == 1


def test_the_page_of_a_record_has_every_verdict_of_its_json(tmp_path: Path, run: Command) -> None:
    options = ("--json", tmp_path / "out.json", "--html", tmp_path / "out.html")
    code, out, _ = run("probe", "judge", RECORD, *options)
    text = (tmp_path / "out.html").read_text(encoding="utf-8")
    page, values = checked(text), json.loads((tmp_path / "out.json").read_text())
    assert code == 1 and "6 verified, 0 refuted, 6 inconclusive, 7 not present." in out
    assert heading(page) == "6 defects verified in the run, and 6 verdicts that need another run"
    cards = {next(card.all("h3")).text: card for card in page.all("article", kind="verdict")}
    assert cards.keys() == {one["rule"] for one in values["verdicts"]}
    words = Counter(next(card.all("span", kind="badge")).text for card in cards.values())
    assert words == {"verified": 6, "inconclusive": 6, "not present": 7}
    for one in values["verdicts"]:
        card = cards[one["rule"]].text.replace("`", "")
        assert one["claim"].replace("`", "") in card
        assert f"{one['sites'][0]['path']}:{one['sites'][0]['line']}" in card
        assert "in 36 steps on 2 ranks (cpu)" in card
    assert "backward passes per step: 2" in cards["accumulation-without-no-sync"].text
    assert "bytes of gradients held twice: 3.35 MiB" in cards["ddp-gradient-copy"].text
    for note in values["notes"]:
        assert note in page.text
    assert len(text) < 80_000


def test_the_page_of_verdicts_says_what_to_do_next(tmp_path: Path, run: Command) -> None:
    _, out, _ = run("probe", "judge", RECORD, "--html", "-")
    page = checked(out)
    launch = "torchrun --standalone --nproc-per-node=2 train.py --steps 60 --batch-size 128 --save-every 6 --output runs/try"
    assert commands(page)[:4] == [
        f"ldlm-lint check --evidence {RECORD}",
        f"ldlm-lint bench --unsafe-fixes -- {launch}",
        f"ldlm-lint probe run -- {launch}",
        f"ldlm-lint probe run --steps 180 -- {launch}",
    ]
    assert "torch 2.13.0+cpu" in page.text and "Python 3.11.7" in page.text


def test_findings_of_a_report_are_named_beside_their_verdict(tmp_path: Path, run: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    run("--format", "json", "--output", tmp_path / "lint.json", "examples/latent-captions/captions/distributed.py")
    _, out, _ = run("probe", "judge", RECORD, "--findings", tmp_path / "lint.json", "--html", "-")
    page = checked(out)
    (card,) = (one for one in page.all("article", kind="verdict") if UNUSED in one.text)
    assert f"{UNUSED} at examples/latent-captions/captions/distributed.py:48" in card.text
    told = json.loads(run("probe", "judge", RECORD, "--findings", tmp_path / "lint.json", "--json", "-")[1])["notes"][-1]
    assert f"{told}." in page.text


def experiment(value: float | None = 4.4233, verdict: object = VERIFIED) -> Judgement:
    measured = Measurement("default / fused", value, "x", (4.33, 4.47), 25, 1.05, 1.006)
    return Judgement("optimizer-not-fused", "fused is faster", verdict, "it is", Scope("cpu"), (), measured)


def test_measured_ratios_of_experiments_are_drawn(tmp_path: Path, run: Command) -> None:
    folder = written(tmp_path / "e", tmp_path, experiment(), kind="micro")
    page = checked(run("probe", "judge", folder, "--target", "cpu", "--html", "-")[1])
    assert heading(page) == "1 claim verified on this machine"
    (chart,) = page.all("figure", kind="intervals")
    assert "optimizer-not-fused: default / fused" in chart.text and "4.42x [4.33, 4.47] verified" in chart.text
    assert "default / fused: 4.42x [4.33, 4.47] (25 rounds, counts from 1.05x, A/A noise 1.01x)" in page.text


def variant(name: str, peak: int, error: str = "") -> dict[str, object]:
    kinds = ("parameters", "gradients", "optimizer state", "activations", "temporaries", "inputs", "buffers")
    return {
        "name": name,
        "error": error,
        "peak_bytes": peak,
        "peak_phase": "backward",
        "bytes_at_peak": dict.fromkeys(kinds, 0) | {"activations": peak // 4 * 3, "parameters": peak // 4},
        "kept_for_backward_bytes": 3,
        "saved_by_autograd_bytes": 3,
        "recomputed_in_backward": {},
    }


def memory_evidence(capacity: int = 0) -> Evidence:
    observed = {
        "request": {"optimizer": "adamw", "device": "cuda", "autocast": "", "real": False},
        "device": "fake tensors",
        "model": HOSTILE,
        "blocks": {"Block": 3},
        "parameter_types": {"float32": 1234},
        "parameters_frozen": 0,
        "batch": ["(8, 3) int64"],
        "variants": [variant("as it is", 2**30), variant("each block checkpointed", 2**29), variant("whole", 0, HOSTILE)],
    }
    if capacity:
        observed |= {"capacity_bytes": capacity, "fits": capacity >= 2**30}
    return Evidence(Run("memory", "m"), Environment("3.12.1"), {"memory": observed})


@pytest.mark.parametrize(
    ("capacity", "said", "next_command"),
    [
        (0, "One training step needs at least 1.00 GiB; with each block checkpointed 512.00 MiB", "ldlm-lint probe memory a:b --fits 80GB"),
        (2**31, "It fits into 2.00 GiB as it is: 1.00 GiB (50%) are left for everything that is not counted", None),
        (2**29, "It does not fit into 512.00 MiB: 512.00 MiB too much as it is; with each block checkpointed it fits, and 0 B are left", "ldlm-lint explain missing-activation-checkpointing"),
    ],
)
def test_the_page_of_memory_says_whether_it_fits(capacity: int, said: str, next_command: str | None) -> None:
    words = ["ldlm-lint", "probe", "memory", "a:b"]
    page = checked(memory.page(memory_evidence(capacity), words, "512MiB"))
    assert heading(page) == said
    assert next_command is None or commands(page)[0] == next_command
    widths = [float(one.attributes["width"][:-1]) for one in page.all("rect", kind="part") if "x" in one.attributes]
    longest = max(capacity, 2**30)
    assert widths == pytest.approx([100 * share * size / longest for size in (2**30, 2**29) for share in (0.25, 0.75)], abs=0.01)
    assert "the step failed" in page.text


def test_the_page_of_memory_without_a_loss_gives_no_answer() -> None:
    found = memory_evidence(2**31)
    found.observations["memory"].update(loss=False, fits=None)
    page = checked(memory.page(found, ["ldlm-lint", "probe", "memory", "a:b"], "2GiB"))
    assert heading(page).startswith("Whether it fits into 2.00 GiB was not measured: the function returned no loss")
    assert commands(page)[0] == "ldlm-lint probe memory a:b --fits 2GiB"


def hostile_evidence() -> Evidence:
    measured = Measurement(HOSTILE, 3.0, HOSTILE, None)
    seen = Judgement(HOSTILE, HOSTILE, VERIFIED, HOSTILE, Scope(HOSTILE, HOSTILE), (Site(HOSTILE, 3),), measured, settled_by=HOSTILE)
    ratio = Judgement(UNUSED, HOSTILE, INCONCLUSIVE, HOSTILE, Scope("cpu"), (), replace(experiment().measured, metric=HOSTILE), settled_by="steps")
    run = Run("watch", "id", (HOSTILE, "--token=abc"), HOSTILE, host=HOSTILE, exception=HOSTILE, status=Status.CRASHED)
    environment = Environment(HOSTILE, HOSTILE, HOSTILE, HOSTILE, HOSTILE, variables={HOSTILE: HOSTILE})
    return Evidence(run, environment, {}, (seen, ratio), {HOSTILE: HOSTILE}, (HOSTILE,))


def hostile_pages() -> dict[str, str]:
    """Pages all of whose texts were chosen by somebody else."""
    evidence = hostile_evidence()
    subject = verdicts.Subject([evidence], [HOSTILE], places=(HOSTILE,), launch=(HOSTILE,))
    found = compared(samples(1.3), fixes={HOSTILE: 1}, before=HOSTILE, after=HOSTILE, links=(HOSTILE,))
    called = replace(found.invocation, command=(HOSTILE,), select=(HOSTILE,))
    notes = [HOSTILE]
    return {
        "verdicts": verdicts.page(evidence.judgements, subject),
        "bench": bench.page(replace(found, notes=notes, environment=evidence.environment, invocation=called)),
        "memory": memory.page(memory_evidence(2**29), ["ldlm-lint", HOSTILE], HOSTILE),
    }


@pytest.mark.parametrize("name", ["verdicts", "bench", "memory"])
def test_no_text_of_a_run_becomes_markup_or_code(name: str) -> None:
    text = hostile_pages()[name]
    page = checked(text)
    text.encode("utf-8")
    assert len(list(page.all("script"))) == 1 and not list(page.all("img"))
    assert "alert(1)" in page.text and "{{ 7 * 7 }}" in page.text
    assert not set("\u202e\x1b\x00\udcff") & set(text)


def test_a_page_of_endless_evidence_has_bounds() -> None:
    long = "<" * 5000
    many = tuple(judged(UNUSED, REFUTED, [Site(f"{number}{long}.py", 1)] * 50, reason=long) for number in range(2000))
    evidence = Evidence(Run("watch", "id", ("a",)), Environment(), judgements=many)
    text = verdicts.page(many, verdicts.Subject([evidence] * 1000, answered=many))
    page = checked(text)
    assert len(text) < 6_000_000 and len(list(page.all("article"))) == verdicts.MOST_VERDICTS
    assert f"{2000 - verdicts.MOST_VERDICTS} more verdicts are not on this page" in page.text
    assert f"and {1000 - verdicts.MOST_PROCESSES} more processes" in page.text


def test_a_long_comparison_stays_small() -> None:
    curve = {step: 1.0 + math.sin(step) for step in range(50_000)}
    found = [replace(one, logged=Logged(curve)) for one in samples(1.1)]
    assert len(bench.page(compared(found))) < 250_000


def test_a_page_that_cannot_be_written_is_said_before_anything_runs(tmp_path: Path, trees: Path, run: Command) -> None:
    place = tmp_path / "no" / "out.html"
    (trees / "b" / "train.py").write_text("open('ran', 'w')")
    for words in (
        ("bench", "--before", "a", "--after", "b", "--html", place, "--", sys.executable, "train.py"),
        ("probe", "judge", RECORD, "--html", place),
        ("probe", "run", "--html", place, "--", sys.executable, "a/train.py"),
        ("probe", "machine", "--html", place),
        ("probe", "memory", "a:b", "--html", place),
    ):
        code, _, err = run(*words)
        assert code == 2 and f"--html {place}: there is no directory" in err, words
    code, _, err = run("probe", "judge", RECORD, "--html", "-", "--json", "-")
    assert code == 2 and "cannot share stdout" in err


def test_a_place_of_a_verdict_is_where_the_evidence_says(tmp_path: Path, run: Command) -> None:
    (tmp_path / "train.py").write_text("a\nb\nc\n")
    place = site(tmp_path / "train.py", 2, tmp_path)
    folder = written(tmp_path / "e", tmp_path, judged(UNUSED, VERIFIED, [place], steps=0))
    (card,) = checked(run("probe", "judge", folder, "--html", "-")[1]).all("article", kind="verdict")
    assert "train.py:2" in [code.text for code in card.all("code")]
