"""``ldlm-lint probe memory``: tells whether a training step fits, without the hardware."""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from ldlm_lint.arguments import UsageError, seconds
from ldlm_lint.commands.output import FAILURE, FINDINGS, OK, STDOUT, USAGE, check_page, fail, write_document
from ldlm_lint.options import configure_page

if TYPE_CHECKING:
    from ldlm_lint.evidence.model import Evidence
    from ldlm_lint.probe.memory.request import Request

EPILOG = """\
FUNCTION takes no argument and returns model, (model, batch) or (model, batch, loss). A mapping as batch is passed as
keyword arguments, a tuple or list as positional arguments, anything else as the only argument; loss(output, batch) returns the
scalar to differentiate (default: the output's `loss`, or a scalar in the output). It runs here, in its own process, with fake
tensors: no memory is allocated, and code that reads a value of a tensor fails.

exit codes: 0 the model fits, or no --fits was given; 1 it does not fit (with --checkpoint CLASS: not even then); 2 invalid usage or
no torch; 3 your code failed, or returned no loss, so that --fits has no answer"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``probe memory``."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = EPILOG
    parser.add_argument(
        "target", metavar="PKG.MOD:FUNCTION", help="the function that builds the model; also path/to/file.py:FUNCTION"
    )
    parser.add_argument(
        "--batch",
        nargs="+",
        metavar="N|SHAPE",
        default=[],
        help="number of rows of the batch, or its shapes: 8x3x224x224, 8x1024:int64, input_ids:8x1024:int64",
    )
    parser.add_argument(
        "--dtype", metavar="TYPE", help="type of parameters and floating-point inputs: bf16, fp16, fp32"
    )
    parser.add_argument("--autocast", metavar="TYPE", help="run forward and loss under autocast: bf16, fp16")
    parser.add_argument(
        "--optimizer", default="adamw", help="adamw, adamw-fused, sgd, sgd-momentum or none (default: adamw)"
    )
    parser.add_argument(
        "--checkpoint",
        default="auto",
        metavar="auto|none|CLASS",
        help="modules to checkpoint for comparison: auto (repeated blocks, and the whole model), none, or the modules of a class",
    )
    parser.add_argument("--fits", metavar="SIZE", help="check whether it fits into this much memory: 80GB (10**9 bytes) or 80GiB (2**30)")
    parser.add_argument(
        "--target",
        dest="device",
        choices=("cuda", "cpu"),
        default="cuda",
        help="the device whose kernels and types are counted (default: cuda)",
    )
    parser.add_argument(
        "--real", action="store_true", help="use real tensors on this machine's CPU, for code that reads values"
    )
    parser.add_argument("--max-seconds", type=seconds, default=300.0, metavar="S", help="end the process after S seconds (default: 300)")
    parser.add_argument("--json", metavar="FILE", help="write the evidence as JSON; - is stdout, without the table")
    configure_page(parser, "the figures")


def run(arguments: argparse.Namespace) -> int:
    """Measure, print the table or the evidence, and return the exit code."""
    from ldlm_lint.probe.memory.launch import MeasureError, measured
    from ldlm_lint.probe.memory.request import RequestError, size

    check_page(arguments.json, arguments.html)
    try:
        request = _request(arguments)
        capacity = size(arguments.fits) if arguments.fits else 0
    except RequestError as error:
        raise UsageError(str(error)) from error
    print(
        f"ldlm-lint: running {request.target}, with all its side effects, in its own process",
        file=sys.stderr,
        flush=True,
    )
    try:
        found = measured(request, Path.cwd(), arguments.max_seconds)
    except RequestError as error:
        return fail(USAGE, str(error))
    except MeasureError as error:
        return fail(FAILURE, str(error))
    found = _with_capacity(found, capacity)
    try:
        _output(found, arguments.json, capacity, table=arguments.html != STDOUT)
    except OSError as error:
        if isinstance(error, BrokenPipeError):
            raise
        return fail(FAILURE, f"{arguments.json}: {error.strerror or error}")
    if arguments.html:
        from ldlm_lint.report.html import memory as page

        write_document(arguments.html, page.page(found, _words(arguments), arguments.fits or ""), "--html")
    if not capacity:
        return OK
    fits = found.observations["memory"]["fits"]
    return FAILURE if fits is None else OK if fits else FINDINGS


def _request(arguments: argparse.Namespace) -> Request:
    from ldlm_lint.probe.memory.request import OPTIMIZERS, Request, RequestError, batch, floating

    if arguments.optimizer not in OPTIMIZERS:
        raise RequestError(f"--optimizer {arguments.optimizer!r} is not one of {', '.join(OPTIMIZERS)}")
    rows, shapes = batch(arguments.batch)
    return Request(
        target=arguments.target,
        rows=rows,
        shapes=shapes,
        dtype=floating(arguments.dtype) if arguments.dtype else "",
        autocast=floating(arguments.autocast) if arguments.autocast else "",
        optimizer=arguments.optimizer,
        checkpoint=arguments.checkpoint,
        device="cpu" if arguments.real else arguments.device,
        real=arguments.real,
    )


def _words(arguments: argparse.Namespace) -> list[str]:
    """The command line that measures the same, without ``--fits``."""
    words = ["ldlm-lint", "probe", "memory", arguments.target]
    for option, value, default in (
        ("--dtype", arguments.dtype, None),
        ("--autocast", arguments.autocast, None),
        ("--optimizer", arguments.optimizer, "adamw"),
        ("--checkpoint", arguments.checkpoint, "auto"),
        ("--target", arguments.device, "cuda"),
    ):
        words += [option, value] if value != default else []
    words += ["--batch", *arguments.batch] if arguments.batch else []
    return [*words, "--real"] if arguments.real else words


def _with_capacity(found: Evidence, capacity: int) -> Evidence:
    """The evidence with the answer to ``--fits``: of the model as it is, or with checkpointing of the named class.

    Without a loss the peak is too low: it may be too large already, but it never fits.
    """
    if not capacity:
        return found
    memory = dict(found.observations["memory"])
    named = memory["request"]["checkpoint"] not in ("auto", "none")
    decides = memory["variants"][1 if named else 0]
    fits = not decides["error"] and decides["peak_bytes"] <= capacity
    memory |= {"capacity_bytes": capacity, "fits": None if fits and not memory["loss"] else fits}
    return dataclasses.replace(found, observations={**found.observations, "memory": memory})


def _output(found: Evidence, place: str | None, capacity: int, *, table: bool) -> None:
    from ldlm_lint.evidence.model import to_json
    from ldlm_lint.report.memory import write_memory

    text = json.dumps(to_json(found), indent=1) + "\n" if place else ""
    if place == STDOUT:
        sys.stdout.write(text)
        return
    if place:
        Path(place).write_text(text, encoding="utf-8")
    if table:
        write_memory(found.observations["memory"], sys.stdout, notes=found.notes, capacity=capacity)
