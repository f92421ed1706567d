"""The child process: reads a request from stdin, runs the user's code, writes the result to the named file."""

from __future__ import annotations

import contextlib
import json
import os
import sys
import time
import traceback
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ldlm_lint.probe.memory.request import RequestError, from_plain

# By name: they are private classes, and others in other versions of torch.
VALUE_READS = frozenset(
    {"DataDependentOutputException", "DynamicOutputShapeException", "GuardOnDataDependentSymNode", "UserError"}
)
USAGE, FAILED = "usage", "failed"


def main(result: Path) -> None:
    """Measure and write the outcome: evidence, or an error as ``{"error": text, "kind": "usage" or "failed"}``."""
    with contextlib.suppress(OSError):
        # If the memory runs out, this process is to be ended and no other.
        Path("/proc/self/oom_score_adj").write_text("1000")
    request = json.load(sys.stdin)
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    result.write_text(json.dumps(outcome(request)), encoding="utf-8")


def outcome(values: Mapping[str, Any]) -> dict[str, Any]:
    """The evidence of a request as plain values, or the error that it ended with."""
    try:
        import torch
    except ImportError as error:
        from ldlm_lint.extras import install

        text = f"torch cannot be imported ({error}); {install('probe')}"
        return {"error": text, "kind": USAGE}
    from ldlm_lint.evidence.model import to_json
    from ldlm_lint.probe.memory.findings import evidence
    from ldlm_lint.probe.memory.measure import measure

    request, began = from_plain(values), time.time()
    try:
        return to_json(evidence(torch, request, measure(request, _progress), os.getcwd(), began))
    except RequestError as error:
        return {"error": f"{request.target}: {error}", "kind": USAGE}
    except (Exception, SystemExit) as error:
        if type(error).__name__ in VALUE_READS:
            return {"error": _value_read(error), "kind": FAILED}
        traceback.print_exception(error)
        text = (str(error).strip() or "no text").splitlines()[0]
        return {"error": f"{_place(error)}{type(error).__name__}: {text}", "kind": FAILED}


def _value_read(error: BaseException) -> str:
    what = (str(error).strip() or type(error).__name__).splitlines()[0]
    return (
        f"{_place(error)}the program reads a value of a tensor ({what}), but fake tensors have no values; --real uses "
        "real tensors on the CPU, which needs as much memory on this machine"
    )


def _place(error: BaseException) -> str:
    """``file:line:`` of the innermost frame of the user's own code; empty if there is none."""
    frames = traceback.extract_tb(error.__traceback__)
    own = os.path.dirname(os.path.abspath(__file__))
    users = [one for one in frames if not one.filename.startswith((own, "<")) and "site-packages" not in one.filename]
    inside = [one for one in users if one.filename.startswith(os.getcwd() + os.sep)]
    found = (inside or users)[-1:]
    return "".join(f"{os.path.relpath(one.filename)}:{one.lineno}: " for one in found)


def _progress(text: str) -> None:
    print(f"ldlm-lint: {text}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
