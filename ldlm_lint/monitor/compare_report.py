"""The report of a comparison of two runs, as text and as JSON (``ldlm-monitor-compare/1``)."""

from __future__ import annotations

from typing import Any, TextIO

from ldlm_lint.evidence.model import Verdict
from ldlm_lint.monitor.compare import Compared, Comparison
from ldlm_lint.monitor.remarks import Remark
from ldlm_lint.monitor.report import WIDTH, figure, listed, plain
from ldlm_lint.report.cells import clean

SCHEMA = "ldlm-monitor-compare/1"
_WORDS = {Verdict.VERIFIED: "yes", Verdict.REFUTED: "no", Verdict.INCONCLUSIVE: "not known"}


def write(a: str, b: str, compared: Compared, stream: TextIO) -> None:
    """Write the comparison: quantities of only one run, a table, and a sentence for each quantity."""
    from rich import box
    from rich.console import Console
    from rich.table import Table

    console = Console(file=stream, highlight=False, markup=False, emoji=False)
    if not console.is_terminal:
        console.width = WIDTH
    console.print(f"A {clean(a)}\nB {clean(b)}", soft_wrap=True)
    rows = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for name in ("quantity", "common steps", "median A, B", "last tenth A, B", "worst A, B", "differ"):
        rows.add_column(name, justify="left" if name in ("quantity", "differ") else "right")
    for one in compared.quantities:
        pairs = (pair((one.a, one.b)), pair(one.last, "nan"), pair(one.worst))
        rows.add_row(f"{one.key} [{one.split}]", f"{one.steps:,}", *pairs, _WORDS[one.verdict])
    console.print(rows)
    for remark in sorted(compared.remarks, key=lambda one: not one.differs):
        console.print(clean(f"{'differ' if remark.differs else 'note'}: {remark.text}"), soft_wrap=True)
    for one in compared.quantities:
        console.print(f"{one.key} [{one.split}]: {clean(one.reason)}", soft_wrap=True)
    if any(one.key != "loss" and one.ratio for one in compared.quantities):
        console.print(
            "The runs were not interleaved, so other load on the machines can cause a difference in speed "
            "(ldlm-lint bench interleaves its runs).",
            soft_wrap=True,
        )
    if compared.differ:
        console.print("The runs differ.")
    elif compared.uncompared:
        said = f"No difference was seen in what was compared; not compared, since it is not a known quantity: {listed(compared.uncompared)}."
        console.print(clean(said), soft_wrap=True)
    else:
        console.print("No difference between the runs was seen.")


def pair(values: tuple[float, float] | None, lost: str = "-") -> str:
    """The values of A and B, ``lost`` for one that is not a number."""
    return "-" if values is None else ", ".join(figure(one) if one == one else lost for one in values)


def document(a: str, b: str, compared: Compared) -> dict[str, Any]:
    """The comparison as plain JSON values, after docs/monitor.schema.json."""
    return {
        "schema": SCHEMA,
        "a": a,
        "b": b,
        "differ": compared.differ,
        "uncompared": compared.uncompared,
        "remarks": [_remark(one) for one in compared.remarks],
        "compared": [_quantity(one) for one in compared.quantities],
    }


def _remark(one: Remark) -> dict[str, Any]:
    return {"kind": one.kind, "text": one.text, "differs": one.differs}


def _quantity(one: Comparison) -> dict[str, Any]:
    return {
        "key": one.key,
        "split": one.split,
        "steps": one.steps,
        "a": plain(one.a),
        "b": plain(one.b),
        "same": one.same,
        "ratio": one.ratio and one.ratio.value,
        "ci95": one.ratio and [one.ratio.low, one.ratio.high],
        "rounds": one.ratio.n if one.ratio else 0,
        "noise_band": one.noise,
        "nonfinite": list(one.nonfinite),
        "last": one.last and [plain(value) for value in one.last],
        "worst": one.worst and [plain(value) for value in one.worst],
        "mean_seconds": one.mean and [plain(value) for value in one.mean],
        "remarks": [_remark(remark) for remark in one.remarks],
        "differ": one.verdict.value,
        "reason": one.reason,
    }
